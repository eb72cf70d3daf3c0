"""The functions and values that several tests of the rules' boundaries share."""

from __future__ import annotations

from dataclasses import replace

from tests.rules._rules import LEGAL_WIDE, PACKED, PLAIN
from tests.support.descriptors import LEGAL_IM2COL

INTER, INTER32 = replace(PLAIN, interleave=1), replace(PLAIN, interleave=2)
ALIGN8, U6 = replace(PACKED, data_type=13), replace(PACKED, data_type=15)
PACKED_WIDE = replace(LEGAL_WIDE, data_type=14, global_dim=(128, 48, 40), channels_per_pixel=128)
IM3 = replace(
    LEGAL_IM2COL,
    global_dim=(64, 48, 8),
    global_strides=(128, 6144),
    pixel_box_lower_corner=(-1,),
    pixel_box_upper_corner=(1,),
    element_strides=(1, 1, 1),
)
IM5 = replace(
    LEGAL_IM2COL,
    global_dim=(64, 48, 40, 30, 8),
    global_strides=(128, 6144, 245760, 7372800),
    pixel_box_lower_corner=(-1, -2, -3),
    pixel_box_upper_corner=(1, 3, 2),
    element_strides=(1,) * 5,
)
