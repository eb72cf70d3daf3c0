"""The functions and values that several tests of the emulator's limits share."""

from __future__ import annotations

import dataclasses

import numpy as np

from cuda_tma import TensorSpec, params_of
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.params import Im2colParams

MATRIX = params_of(TensorSpec((6, 24), "uint16"), box_dim=(4, 8))
MEMORY = np.arange(24 * 6, dtype=np.uint16).view(np.uint8)
IM2COL = Im2colParams(
    data_type=T.UINT8,
    global_address=0,
    global_dim=(16, 8, 4, 2),
    global_strides=(16, 128, 512),
    pixel_box_lower_corner=(0, 0),
    pixel_box_upper_corner=(0, 0),
    channels_per_pixel=16,
    pixels_per_column=12,
    element_strides=(1, 1, 1, 1),
)


def changed(params=MATRIX, **changes):
    return dataclasses.replace(params, **changes)
