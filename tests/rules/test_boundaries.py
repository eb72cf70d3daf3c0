"""Tests of every rule at its boundary, with the last legal value and the first illegal value."""

from dataclasses import replace

import pytest

from cuda_tma.rules import RULES, check
from tests.rules._boundaries import ALIGN8, IM3, IM5, INTER, INTER32, PACKED_WIDE, U6
from tests.rules._rules import FEW_CHANNELS, LEGAL_WIDE, PACKED, PACKED_IM2COL, PLAIN, SMALL_BOX
from tests.support.descriptors import LEGAL, LEGAL_IM2COL

U6_WIDE = replace(PACKED_WIDE, data_type=15)

# Each row contains legal params, a compute capability, an argument, its legal values, and illegal values with all
# violations.
# fmt: off
CASES = [
    (PLAIN, (9, 0), "data_type", [0, 12], [
        (-1, ["data_type=-1 must be 0 to 15."]),
        (13, ["data_type=13 must be 0 to 12 before compute capability 10.0. Use 0 (UINT8) and count bytes."]),
        (16, ["data_type=16 must be 0 to 15."]),
    ]),
    (ALIGN8, (10, 0), "data_type", [13, 14], [
        (16, ["data_type=16 must be 0 to 15."]),
        (-1, ["data_type=-1 must be 0 to 15."]),
    ]),
    (LEGAL_IM2COL, (9, 0), "data_type", [9], [
        (13, ["data_type=13 must be 0 to 12 before compute capability 10.0. Use 0 (UINT8) and count bytes."]),
    ]),
    (PLAIN, (9, 0), "interleave", [0, 1, 2], [
        (-1, ["interleave=-1 must be one of 0 (NONE), 1 (16B), 2 (32B)."]),
        (3, ["interleave=3 must be one of 0 (NONE), 1 (16B), 2 (32B)."]),
    ]),
    (PLAIN, (9, 0), "l2_promotion", [0, 3], [
        (-1, ["l2_promotion=-1 must be 0 to 3."]),
        (4, ["l2_promotion=4 must be 0 to 3."]),
    ]),
    (PLAIN, (9, 0), "oob_fill", [0, 1], [
        (-1, ["oob_fill=-1 must be 0 (NONE) or 1 (NAN)."]),
        (2, ["oob_fill=2 must be 0 (NONE) or 1 (NAN)."]),
    ]),
    (PLAIN, (9, 0), "allocation_class", [1, 2], [
        (0, ["allocation_class=0 must be one of 1 (SMALL), 2 (LARGE)."]),
        (3, ["allocation_class=3 must be one of 1 (SMALL), 2 (LARGE)."]),
        (-1, ["allocation_class=-1 must be one of 1 (SMALL), 2 (LARGE)."]),
    ]),
    (replace(PLAIN, data_type=5), (9, 0), "oob_fill", [0], [
        (1, ["oob_fill=1 must be 0 (NONE) unless the data type is a floating-point one. Use 0."]),
    ]),
    (replace(PLAIN, data_type=6), (9, 0), "oob_fill", [0, 1], [
    ]),
    (replace(PLAIN, data_type=12), (9, 0), "oob_fill", [0, 1], [
    ]),
    (PACKED, (10, 0), "oob_fill", [0], [
        (1, ["oob_fill=1 must be 0 (NONE) unless the data type is a floating-point one. Use 0."]),
    ]),
    (PLAIN, (9, 0), "swizzle", [0, 3], [
        (-1, ["swizzle=-1 must be 0 to 3 before compute capability 10.0."]),
        (4, ["swizzle=4 must be 0 to 3 before compute capability 10.0."]),
        (6, ["swizzle=6 must be 0 to 3 before compute capability 10.0."]),
        (7, ["swizzle=7 must be 0 to 3 before compute capability 10.0."]),
    ]),
    (SMALL_BOX, (10, 0), "swizzle", [0, 1, 3, 4, 6], [
        (7, ["swizzle=7 must be 0 to 6."]),
        (-1, ["swizzle=-1 must be 0 to 6."]),
    ]),
    (PACKED, (10, 0), "swizzle", [0, 3, 4], [
        (1, ["swizzle=1 must be one of 0 (NONE), 3 (128B), 4 (128B_ATOM_32B) for 16U4_ALIGN16B."]),
        (2, ["swizzle=2 must be one of 0 (NONE), 3 (128B), 4 (128B_ATOM_32B) for 16U4_ALIGN16B."]),
        (5, ["swizzle=5 must be one of 0 (NONE), 3 (128B), 4 (128B_ATOM_32B) for 16U4_ALIGN16B."]),
        (6, ["swizzle=6 must be one of 0 (NONE), 3 (128B), 4 (128B_ATOM_32B) for 16U4_ALIGN16B."]),
        (7, ["swizzle=7 must be 0 to 6."]),
    ]),
    (U6, (10, 0), "swizzle", [0, 3, 4, 6], [
        (1, ["swizzle=1 must be one of 0 (NONE), 3 (128B), 4 (128B_ATOM_32B), 6 (128B_ATOM_64B) for 16U6_ALIGN16B."]),
        (2, ["swizzle=2 must be one of 0 (NONE), 3 (128B), 4 (128B_ATOM_32B), 6 (128B_ATOM_64B) for 16U6_ALIGN16B."]),
        (5, ["swizzle=5 must be one of 0 (NONE), 3 (128B), 4 (128B_ATOM_32B), 6 (128B_ATOM_64B) for 16U6_ALIGN16B."]),
        (7, ["swizzle=7 must be 0 to 6."]),
        (-1, ["swizzle=-1 must be 0 to 6."]),
    ]),
    (ALIGN8, (10, 0), "swizzle", [3], [
        (1, ["box_dim[0]=128 must be at most 64: a row is 64 bytes and the swizzle span 32. Use 64."]),
    ]),
    (LEGAL_WIDE, (10, 0), "swizzle", [3, 4], [
        (0, ["swizzle=0 must be one of 2 (64B), 3 (128B), 4 (128B_ATOM_32B) for im2col wide."]),
        (1, [
            "channels_per_pixel=64 must be at most 16: a row is 128 bytes and the swizzle span 32. Use 16.",
            "swizzle=1 must be one of 2 (64B), 3 (128B), 4 (128B_ATOM_32B) for im2col wide.",
        ]),
        (5, ["swizzle=5 must be one of 2 (64B), 3 (128B), 4 (128B_ATOM_32B) for im2col wide."]),
        (6, ["swizzle=6 must be one of 2 (64B), 3 (128B), 4 (128B_ATOM_32B) for im2col wide."]),
        (7, ["swizzle=7 must be 0 to 6."]),
        (-1, ["swizzle=-1 must be 0 to 6."]),
    ]),
    (replace(LEGAL_WIDE, channels_per_pixel=32), (10, 0), "swizzle", [2, 3], [
        (1, [
            "channels_per_pixel=32 must be at most 16: a row is 64 bytes and the swizzle span 32. Use 16.",
            "swizzle=1 must be one of 2 (64B), 3 (128B), 4 (128B_ATOM_32B) for im2col wide.",
        ]),
    ]),
    (PACKED_WIDE, (10, 0), "swizzle", [3, 4], [
        (0, ["swizzle=0 must be one of 2 (64B), 3 (128B), 4 (128B_ATOM_32B) for im2col wide."]),
        (2, ["swizzle=2 must be one of 3 (128B), 4 (128B_ATOM_32B) for 16U4_ALIGN16B."]),
        (6, ["swizzle=6 must be one of 2 (64B), 3 (128B), 4 (128B_ATOM_32B) for im2col wide."]),
        (7, ["swizzle=7 must be 0 to 6."]),
    ]),
    (U6_WIDE, (10, 0), "swizzle", [2, 3, 4], [
        (1, ["swizzle=1 must be one of 2 (64B), 3 (128B), 4 (128B_ATOM_32B) for im2col wide."]),
        (5, ["swizzle=5 must be one of 2 (64B), 3 (128B), 4 (128B_ATOM_32B) for im2col wide."]),
        (7, ["swizzle=7 must be 0 to 6."]),
    ]),
    (LEGAL_WIDE, (10, 0), "mode", [0, 1], [
        (2, ["mode=2 must be 0 (W) or 1 (W128)."]),
        (-1, ["mode=-1 must be 0 (W) or 1 (W128)."]),
    ]),
    (PACKED, (10, 0), "interleave", [0, 1, 2], [
        (3, ["interleave=3 must be one of 0 (NONE), 1 (16B), 2 (32B)."]),
    ]),
    (U6, (10, 0), "interleave", [0], [
        (1, ["interleave=1 must be 0 (NONE) for 16U6_ALIGN16B. Use 0."]),
        (2, ["interleave=2 must be 0 (NONE) for 16U6_ALIGN16B. Use 0."]),
    ]),
    (PLAIN, (9, 0), "global_address", [0, 16, 18446744073709551600], [
        (-16, ["global_address=-16 must be 0 to less than 2^64. Use 0."]),
        (8, ["global_address=8 must be a multiple of 16. Use 0."]),
        (4104, ["global_address=4104 must be a multiple of 16. Use 4096."]),
        (18446744073709551616, [
            "global_address=18446744073709551616 must be 0 to less than 2^64. Use 18446744073709551600.",
        ]),
    ]),
    (INTER, (9, 0), "global_address", [16], [
        (8, ["global_address=8 must be a multiple of 16. Use 0."]),
    ]),
    (INTER32, (9, 0), "global_address", [32], [
        (16, ["global_address=16 must be a multiple of 32. Use 0."]),
        (48, ["global_address=48 must be a multiple of 32. Use 32."]),
    ]),
    (PACKED, (10, 0), "global_address", [32], [
        (16, ["global_address=16 must be a multiple of 32. Use 0."]),
    ]),
    (U6, (10, 0), "global_address", [32], [
        (16, ["global_address=16 must be a multiple of 32. Use 0."]),
    ]),
    (ALIGN8, (10, 0), "global_address", [16], [
        (8, ["global_address=8 must be a multiple of 16. Use 0."]),
    ]),
    (LEGAL_IM2COL, (9, 0), "global_address", [16], [
        (24, ["global_address=24 must be a multiple of 16. Use 16."]),
    ]),
    (replace(LEGAL_IM2COL, interleave=2), (9, 0), "global_address", [64], [
        (16, ["global_address=16 must be a multiple of 32. Use 0."]),
    ]),
    (PLAIN, (9, 0), "global_strides", [(0, 0), (256, 1099511627760)], [
        ((-16, 12288), ["global_strides[0]=-16 must be from 0 to less than 2^40."]),
        ((256, 1099511627776), [
            "global_strides[1]=1099511627776 must be from 0 to less than 2^40. Use 1099511627760.",
        ]),
        ((264, 12289), [
            "global_strides[0]=264 must be a multiple of 16. Use 272.",
            "global_strides[1]=12289 must be a multiple of 16. Use 12304.",
        ]),
    ]),
    (INTER32, (9, 0), "global_strides", [(256, 1099511627744)], [
        ((272, 12288), ["global_strides[0]=272 must be a multiple of 32. Use 288."]),
        ((256, 1099511627776), [
            "global_strides[1]=1099511627776 must be from 0 to less than 2^40. Use 1099511627744.",
        ]),
    ]),
    (PACKED, (10, 0), "global_strides", [(96, 3072)], [
        ((80, 3072), ["global_strides[0]=80 must be a multiple of 32. Use 96."]),
    ]),
    (U6, (10, 0), "global_strides", [(96, 3072)], [
        ((80, 3072), ["global_strides[0]=80 must be a multiple of 32. Use 96."]),
    ]),
    (ALIGN8, (10, 0), "global_strides", [(80, 3072)], [
        ((72, 3072), ["global_strides[0]=72 must be a multiple of 16. Use 80."]),
    ]),
    (PLAIN, (9, 0), "global_dim", [(1, 1, 1), (4294967296, 1, 1)], [
        ((0, 1, 1), ["global_dim[0]=0 must be 1 to 4294967296. Use 1."]),
        ((64, 4294967297, 0), [
            "global_dim[1]=4294967297 must be 1 to 4294967296. Use 4294967296.",
            "global_dim[2]=0 must be 1 to 4294967296. Use 1.",
        ]),
    ]),
    (ALIGN8, (10, 0), "global_dim", [(2, 1, 1)], [
        ((1, 48, 40), ["global_dim[0]=1 must be a multiple of 2. Use 2."]),
        ((127, 1, 1), ["global_dim[0]=127 must be a multiple of 2. Use 128."]),
    ]),
    (PACKED, (10, 0), "global_dim", [(128, 1, 1)], [
        ((127, 48, 40), ["global_dim[0]=127 must be a multiple of 128. Use 128."]),
        ((129, 48, 40), ["global_dim[0]=129 must be a multiple of 128. Use 256."]),
        ((0, 48, 40), ["global_dim[0]=0 must be 1 to 4294967296. Use 1."]),
    ]),
    (U6, (10, 0), "global_dim", [(256, 1, 1)], [
        ((64, 48, 40), ["global_dim[0]=64 must be a multiple of 128. Use 128."]),
    ]),
    (PLAIN, (9, 0), "box_dim", [(4, 1, 1), (4, 256, 1), (4, 1, 256)], [
        ((0, 1, 1), ["box_dim[0]=0 must be 1 to 256. Use 1."]),
        ((-4, 1, 1), ["box_dim[0]=-4 must be 1 to 256. Use 1."]),
        ((4, 257, 0), ["box_dim[1]=257 must be 1 to 256. Use 256.", "box_dim[2]=0 must be 1 to 256. Use 1."]),
        ((3, 1, 1), ["box_dim[0]=3 must be a multiple of 4, in whole 16 bytes. Use 4."]),
        ((5, 16, 2), ["box_dim[0]=5 must be a multiple of 4, in whole 16 bytes. Use 8."]),
    ]),
    (ALIGN8, (10, 0), "box_dim", [(32, 1, 1), (256, 1, 1)], [
        ((31, 1, 1), ["box_dim[0]=31 must be a multiple of 32, in whole 16 bytes. Use 32."]),
        ((16, 1, 1), ["box_dim[0]=16 must be a multiple of 32, in whole 16 bytes. Use 32."]),
    ]),
    (PACKED, (10, 0), "box_dim", [(128, 1, 1)], [
        ((64, 1, 1), ["box_dim[0]=64 must be 128 for 16U4_ALIGN16B. Use 128."]),
        ((256, 1, 1), ["box_dim[0]=256 must be 128 for 16U4_ALIGN16B. Use 128."]),
        ((127, 1, 1), ["box_dim[0]=127 must be 128 for 16U4_ALIGN16B. Use 128."]),
    ]),
    (U6, (10, 0), "box_dim", [(128, 1, 1)], [
        ((64, 1, 1), ["box_dim[0]=64 must be 128 for 16U6_ALIGN16B. Use 128."]),
    ]),
    (LEGAL, (9, 0), "box_dim", [(32, 1, 1)], [
        ((36, 1, 1), ["box_dim[0]=36 must be at most 32: a row is 144 bytes and the swizzle span 128. Use 32."]),
    ]),
    (replace(LEGAL, swizzle=1), (9, 0), "box_dim", [(8, 1, 1)], [
        ((12, 1, 1), ["box_dim[0]=12 must be at most 8: a row is 48 bytes and the swizzle span 32. Use 8."]),
    ]),
    (replace(LEGAL, swizzle=2), (9, 0), "box_dim", [(16, 1, 1)], [
        ((20, 1, 1), ["box_dim[0]=20 must be at most 16: a row is 80 bytes and the swizzle span 64. Use 16."]),
    ]),
    (replace(LEGAL, swizzle=4), (10, 0), "box_dim", [(32, 1, 1)], [
        ((36, 1, 1), ["box_dim[0]=36 must be at most 32: a row is 144 bytes and the swizzle span 128. Use 32."]),
    ]),
    (replace(LEGAL, swizzle=6), (10, 0), "box_dim", [(32, 1, 1)], [
        ((36, 1, 1), ["box_dim[0]=36 must be at most 32: a row is 144 bytes and the swizzle span 128. Use 32."]),
    ]),
    (replace(LEGAL, interleave=1), (9, 0), "box_dim", [(36, 1, 1), (256, 1, 1)], [
        ((35, 1, 1), ["box_dim[0]=35 must be a multiple of 4, in whole 16 bytes. Use 36."]),
    ]),
    (replace(PLAIN, data_type=0), (9, 0), "box_dim", [(16, 1, 1)], [
        ((15, 1, 1), ["box_dim[0]=15 must be a multiple of 16, in whole 16 bytes. Use 16."]),
        ((17, 1, 1), ["box_dim[0]=17 must be a multiple of 16, in whole 16 bytes. Use 32."]),
    ]),
    (replace(PLAIN, data_type=1), (9, 0), "box_dim", [(8, 1, 1)], [
        ((7, 1, 1), ["box_dim[0]=7 must be a multiple of 8, in whole 16 bytes. Use 8."]),
        ((9, 1, 1), ["box_dim[0]=9 must be a multiple of 8, in whole 16 bytes. Use 16."]),
    ]),
    (replace(PLAIN, data_type=2), (9, 0), "box_dim", [(4, 1, 1)], [
        ((3, 1, 1), ["box_dim[0]=3 must be a multiple of 4, in whole 16 bytes. Use 4."]),
        ((5, 1, 1), ["box_dim[0]=5 must be a multiple of 4, in whole 16 bytes. Use 8."]),
    ]),
    (replace(PLAIN, data_type=4), (9, 0), "box_dim", [(2, 1, 1)], [
        ((1, 1, 1), ["box_dim[0]=1 must be a multiple of 2, in whole 16 bytes. Use 2."]),
        ((3, 1, 1), ["box_dim[0]=3 must be a multiple of 2, in whole 16 bytes. Use 4."]),
    ]),
    (replace(PLAIN, data_type=8), (9, 0), "box_dim", [(2, 1, 1)], [
        ((1, 1, 1), ["box_dim[0]=1 must be a multiple of 2, in whole 16 bytes. Use 2."]),
        ((3, 1, 1), ["box_dim[0]=3 must be a multiple of 2, in whole 16 bytes. Use 4."]),
    ]),
    (PLAIN, (9, 0), "box_dim", [(256, 228, 1), (228, 256, 1)], [
        ((256, 229, 1), [
            "box_dim=(256, 229, 1) must be at most 233472 bytes in one load (it is 234496). Shrink the box.",
        ]),
        ((64, 32, 29), [
            "box_dim=(64, 32, 29) must be at most 233472 bytes in one load (it is 237568). Shrink the box.",
        ]),
    ]),
    (replace(PLAIN, element_strides=(1, 2, 1)), (9, 0), "box_dim", [(256, 256, 1)], [
        ((256, 457, 1), ["box_dim[1]=457 must be 1 to 256. Use 256."]),
        ((256, 256, 2), [
            "box_dim=(256, 256, 2) must be at most 233472 bytes in one load (it is 262144). Shrink the box.",
        ]),
    ]),
    (replace(PLAIN, element_strides=(2, 1, 1)), (9, 0), "box_dim", [(256, 228, 2)], [
        ((256, 229, 2), [
            "box_dim=(256, 229, 2) must be at most 233472 bytes in one load (it is 234496). Shrink the box.",
        ]),
    ]),
    (LEGAL_IM2COL, (9, 0), "channels_per_pixel", [8, 256], [
        (0, ["channels_per_pixel=0 must be 1 to 256. Use 1."]),
        (7, ["channels_per_pixel=7 must be a multiple of 8, in whole 16 bytes. Use 8."]),
        (9, ["channels_per_pixel=9 must be a multiple of 8, in whole 16 bytes. Use 16."]),
        (257, [
            "channels_per_pixel=257 must be 1 to 256. Use 256.",
            "channels_per_pixel=257 must be a multiple of 8, in whole 16 bytes. Use 256.",
        ]),
        (264, ["channels_per_pixel=264 must be 1 to 256. Use 256."]),
    ]),
    (replace(LEGAL_IM2COL, swizzle=3), (9, 0), "channels_per_pixel", [64], [
        (72, ["channels_per_pixel=72 must be at most 64: a row is 144 bytes and the swizzle span 128. Use 64."]),
    ]),
    (LEGAL_WIDE, (10, 0), "channels_per_pixel", [64], [
        (72, ["channels_per_pixel=72 must be at most 64: a row is 144 bytes and the swizzle span 128. Use 64."]),
        (0, ["channels_per_pixel=0 must be 1 to 256. Use 1."]),
    ]),
    (PACKED_IM2COL, (10, 0), "channels_per_pixel", [128], [
        (64, ["channels_per_pixel=64 must be 128 for 16U4_ALIGN16B. Use 128."]),
        (256, ["channels_per_pixel=256 must be 128 for 16U4_ALIGN16B. Use 128."]),
    ]),
    (PACKED_WIDE, (10, 0), "channels_per_pixel", [128], [
        (64, ["channels_per_pixel=64 must be 128 for 16U4_ALIGN16B. Use 128."]),
    ]),
    (FEW_CHANNELS, (9, 0), "pixels_per_column", [1, 1024], [
        (0, ["pixels_per_column=0 must be 1 to 1024. Use 1."]),
        (1025, ["pixels_per_column=1025 must be 1 to 1024. Use 1024."]),
    ]),
    (replace(LEGAL_IM2COL, channels_per_pixel=256), (9, 0), "pixels_per_column", [456], [
        (457, [
            "pixels_per_column=457 must be at most 233472 bytes in one load (it is 233984). Take fewer pixels or "
            "channels.",
        ]),
    ]),
    (replace(LEGAL_WIDE, channels_per_pixel=8), (10, 0), "pixels_per_column", [1024], [
        (0, ["pixels_per_column=0 must be 1 to 1024. Use 1."]),
        (1025, ["pixels_per_column=1025 must be 1 to 1024. Use 1024."]),
    ]),
    (IM3, (9, 0), "pixel_box_lower_corner", [(-32768,)], [
        ((-32769,), ["pixel_box_lower_corner[0]=-32769 must be -32768 to 32767. Use -32768."]),
        ((32768,), [
            "pixel_box_lower_corner[0]=32768 must be -32768 to 32767. Use 32767.",
            "pixel_box_upper_corner[0]=1 must be at least 32721, or the pixel box is empty (global_dim[1] 48 + "
            "upper 1 - lower 32768 is not above 0). Use 32721.",
        ]),
    ]),
    (IM3, (9, 0), "pixel_box_upper_corner", [(32767,)], [
        ((32768,), ["pixel_box_upper_corner[0]=32768 must be -32768 to 32767. Use 32767."]),
        ((-32769,), [
            "pixel_box_upper_corner[0]=-32769 must be -32768 to 32767. Use -32768.",
            "pixel_box_upper_corner[0]=-32769 must be at least -48, or the pixel box is empty (global_dim[1] 48 "
            "+ upper -32769 - lower -1 is not above 0). Use -48.",
        ]),
    ]),
    (LEGAL_IM2COL, (9, 0), "pixel_box_lower_corner", [(-128, -128)], [
        ((-129, -2), ["pixel_box_lower_corner[0]=-129 must be -128 to 127. Use -128."]),
        ((-1, 128), [
            "pixel_box_lower_corner[1]=128 must be -128 to 127. Use 127.",
            "pixel_box_upper_corner[1]=3 must be at least 89, or the pixel box is empty (global_dim[2] 40 + "
            "upper 3 - lower 128 is not above 0). Use 89.",
        ]),
    ]),
    (LEGAL_IM2COL, (9, 0), "pixel_box_upper_corner", [(127, 127)], [
        ((128, 3), ["pixel_box_upper_corner[0]=128 must be -128 to 127. Use 127."]),
        ((1, 128), ["pixel_box_upper_corner[1]=128 must be -128 to 127. Use 127."]),
    ]),
    (IM5, (9, 0), "pixel_box_lower_corner", [(-16, -16, -16)], [
        ((-17, 0, 0), ["pixel_box_lower_corner[0]=-17 must be -16 to 15. Use -16."]),
        ((0, 16, 0), ["pixel_box_lower_corner[1]=16 must be -16 to 15. Use 15."]),
        ((0, 0, 16), ["pixel_box_lower_corner[2]=16 must be -16 to 15. Use 15."]),
    ]),
    (IM5, (9, 0), "pixel_box_upper_corner", [(15, 15, 15)], [
        ((16, 0, 0), ["pixel_box_upper_corner[0]=16 must be -16 to 15. Use 15."]),
        ((0, 0, -17), ["pixel_box_upper_corner[2]=-17 must be -16 to 15. Use -16."]),
    ]),
    (LEGAL_WIDE, (10, 0), "pixel_box_lower_corner_width", [-32768, 48], [
        (-32769, ["pixel_box_lower_corner_width=-32769 must be -32768 to 32767. Use -32768."]),
        (49, [
            "pixel_box_upper_corner_width=1 must be at least 2, or the pixel box is empty (global_dim[1] 48 + "
            "upper 1 - lower 49 is not above 0). Use 2.",
        ]),
        (32768, [
            "pixel_box_lower_corner_width=32768 must be -32768 to 32767. Use 32767.",
            "pixel_box_upper_corner_width=1 must be at least 32721, or the pixel box is empty (global_dim[1] 48 "
            "+ upper 1 - lower 32768 is not above 0). Use 32721.",
        ]),
    ]),
    (LEGAL_WIDE, (10, 0), "pixel_box_upper_corner_width", [32767, -48], [
        (32768, ["pixel_box_upper_corner_width=32768 must be -32768 to 32767. Use 32767."]),
        (-49, [
            "pixel_box_upper_corner_width=-49 must be at least -48, or the pixel box is empty (global_dim[1] 48 "
            "+ upper -49 - lower -1 is not above 0). Use -48.",
        ]),
        (-32769, [
            "pixel_box_upper_corner_width=-32769 must be -32768 to 32767. Use -32768.",
            "pixel_box_upper_corner_width=-32769 must be at least -48, or the pixel box is empty (global_dim[1] "
            "48 + upper -32769 - lower -1 is not above 0). Use -48.",
        ]),
    ]),
    (LEGAL_IM2COL, (9, 0), "pixel_box_upper_corner", [(-48, -41)], [
        ((-49, 3), [
            "pixel_box_upper_corner[0]=-49 must be at least -48, or the pixel box is empty (global_dim[1] 48 + "
            "upper -49 - lower -1 is not above 0). Use -48.",
        ]),
        ((1, -42), [
            "pixel_box_upper_corner[1]=-42 must be at least -41, or the pixel box is empty (global_dim[2] 40 + "
            "upper -42 - lower -2 is not above 0). Use -41.",
        ]),
    ]),
    (replace(LEGAL_IM2COL, interleave=1), (9, 0), "pixel_box_upper_corner", [(-64, -49)], [
        ((-65, 3), [
            "pixel_box_upper_corner[0]=-65 must be at least -64, or the pixel box is empty (global_dim[0] 64 + "
            "upper -65 - lower -1 is not above 0). Use -64.",
        ]),
        ((1, -50), [
            "pixel_box_upper_corner[1]=-50 must be at least -49, or the pixel box is empty (global_dim[1] 48 + "
            "upper -50 - lower -2 is not above 0). Use -49.",
        ]),
    ]),
    (IM5, (9, 0), "pixel_box_upper_corner", [(1, 3, -16)], [
    ]),
    (replace(IM3, global_dim=(64, 2**31 - 1, 8)), (9, 0), "pixel_box_upper_corner", [(0,)], [
        ((1,), [
            "pixel_box_upper_corner[0]=1 must be at most 0, or the pixel box is empty (global_dim[1] 2147483647 "
            "+ upper 1, in 32 bits, - lower -1 is not above 0). Use 0.",
        ]),
    ]),
    (replace(IM3, global_dim=(64, 2**31, 8)), (9, 0), "pixel_box_upper_corner", [(-1,)], [
        ((0,), [
            "pixel_box_upper_corner[0]=0 must be at most -1, or the pixel box is empty (global_dim[1] 2147483648 "
            "+ upper 0, in 32 bits, - lower -1 is not above 0). Use -1.",
        ]),
    ]),
    (replace(IM3, global_dim=(64, 2**32, 8), pixel_box_lower_corner=(-1,)), (9, 0), "pixel_box_upper_corner", [(0,)], [
        ((-1,), [
            "pixel_box_upper_corner[0]=-1 must be at least 0, or the pixel box is empty (global_dim[1] "
            "4294967296 + upper -1, in 32 bits, - lower -1 is not above 0). Use 0.",
        ]),
    ]),
    (LEGAL_IM2COL, (9, 0), "pixel_box_lower_corner", [], [
        ((0,), ["rank=4 must be matched by pixel_box_lower_corner, which has length 1 and needs 2."]),
        ((1, 2, 3), ["rank=4 must be matched by pixel_box_lower_corner, which has length 3 and needs 2."]),
        ((), ["rank=4 must be matched by pixel_box_lower_corner, which has length 0 and needs 2."]),
    ]),
    (LEGAL_IM2COL, (9, 0), "pixel_box_upper_corner", [], [
        ((1,), ["rank=4 must be matched by pixel_box_upper_corner, which has length 1 and needs 2."]),
        ((1, 2, 3), ["rank=4 must be matched by pixel_box_upper_corner, which has length 3 and needs 2."]),
    ]),
    (PLAIN, (9, 0), "element_strides", [(8, 8, 8)], [
        ((0, 1, 1), ["element_strides[0]=0 must be 1 to 8. Use 1."]),
        ((1, 9, -1), ["element_strides[1]=9 must be 1 to 8. Use 8.", "element_strides[2]=-1 must be 1 to 8. Use 1."]),
    ]),
    (LEGAL_IM2COL, (9, 0), "element_strides", [(1, 8, 8, 8)], [
        ((1, 1, 1, 9), ["element_strides[3]=9 must be 1 to 8. Use 8."]),
        ((1, 1, 1), ["rank=4 must be matched by element_strides, which has length 3 and needs 4."]),
    ]),
    (LEGAL_WIDE, (10, 0), "element_strides", [(1, 8, 1)], [
        ((1, 1, 0), ["element_strides[2]=0 must be 1 to 8. Use 1."]),
        ((1, 1), ["rank=3 must be matched by element_strides, which has length 2 and needs 3."]),
        ((1, 1, 1, 1), ["rank=3 must be matched by element_strides, which has length 4 and needs 3."]),
    ]),
    (PLAIN, (9, 0), "box_dim", [], [
        ((32, 16), ["rank=3 must be matched by box_dim, which has length 2 and needs 3."]),
        ((32, 16, 2, 1), ["rank=3 must be matched by box_dim, which has length 4 and needs 3."]),
    ]),
    (PLAIN, (9, 0), "element_strides", [], [
        ((1, 1), ["rank=3 must be matched by element_strides, which has length 2 and needs 3."]),
        ((1, 1, 1, 1), ["rank=3 must be matched by element_strides, which has length 4 and needs 3."]),
    ]),
    (PLAIN, (9, 0), "global_strides", [], [
        ((256,), ["rank=3 must be matched by global_strides, which has length 1 and needs 2."]),
        ((256, 12288, 12288), ["rank=3 must be matched by global_strides, which has length 3 and needs 2."]),
    ]),
    (LEGAL_IM2COL, (9, 0), "global_strides", [], [
        ((128, 6144), ["rank=4 must be matched by global_strides, which has length 2 and needs 3."]),
    ]),
    (LEGAL_WIDE, (10, 0), "global_strides", [], [
        ((128,), ["rank=3 must be matched by global_strides, which has length 1 and needs 2."]),
    ]),
]
# fmt: on


@pytest.mark.parametrize(("base", "capability", "name", "legal", "illegal"), CASES)
def test_a_rule_at_its_boundary(base, capability, name, legal, illegal):
    assert [(value, check(replace(base, **{name: value}), capability)) for value in legal] == [(v, ()) for v in legal]
    said = [(value, [v.message for v in check(replace(base, **{name: value}), capability)]) for value, _ in illegal]
    assert said == illegal


def test_every_rule_about_one_argument_is_tested_at_its_boundary():
    broken = {
        violation.rule
        for base, capability, name, _, illegal in CASES
        for value, _ in illegal
        for violation in check(replace(base, **{name: value}), capability)
    }
    assert broken == {rule.name for rule in RULES} - {"rank", "compute_capability"}
