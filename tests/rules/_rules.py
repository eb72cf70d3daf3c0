"""The functions and values that several tests of the rules share."""

from __future__ import annotations

from dataclasses import replace

from cuda_tma.params import Im2colWideParams
from tests.support.descriptors import LEGAL, LEGAL_IM2COL

LEGAL_WIDE = Im2colWideParams(
    data_type=9,
    global_address=4096,
    global_dim=(64, 48, 40),
    global_strides=(128, 6144),
    pixel_box_lower_corner_width=-1,
    pixel_box_upper_corner_width=1,
    channels_per_pixel=64,
    pixels_per_column=100,
    element_strides=(1, 1, 1),
    swizzle=3,
)
PLAIN = replace(LEGAL, swizzle=0)
SMALL_BOX = replace(PLAIN, box_dim=(4, 1, 1))
FEW_CHANNELS = replace(LEGAL_IM2COL, channels_per_pixel=8)
PACKED = replace(LEGAL, data_type=14, global_dim=(128, 48, 40), box_dim=(128, 16, 2), global_strides=(64, 3072))
PACKED_IM2COL = replace(LEGAL_IM2COL, data_type=14, global_dim=(128, 48, 40, 8), channels_per_pixel=128)
