"""The functions and values that the tests of pictures share."""

from __future__ import annotations

import dataclasses

from cuda_tma import TensorSpec, params_of
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.params import Im2colParams

PARAMS = params_of(TensorSpec((60, 128), "bfloat16"), box_dim=(8, 64), swizzle="128B")
IM2COL = Im2colParams(
    data_type=T.UINT8,
    global_address=0,
    global_dim=(32, 8, 4, 2),
    global_strides=(32, 256, 1024),
    pixel_box_lower_corner=(-1, -1),
    pixel_box_upper_corner=(-1, -1),
    channels_per_pixel=16,
    pixels_per_column=12,
    element_strides=(1, 1, 1, 1),
)
INTERLEAVED = params_of(
    TensorSpec((11, 18, 8, 6), "float16", strides=(4608, 256, 32, 1)),
    box_dim=(5, 2, 2, 8),
    swizzle="32B",
    interleave="32B",
)


def changed(params=PARAMS, **changes):
    return dataclasses.replace(params, **changes)
