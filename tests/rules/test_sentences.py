"""Tests of the complete error text of every rule, with tensor order, units and the remedy."""

from dataclasses import replace

import pytest

from cuda_tma.rules import check
from cuda_tma.rules._explain import sentence
from tests.rules._boundaries import ALIGN8, IM3, IM5, INTER, INTER32, PACKED_WIDE, U6
from tests.rules._rules import FEW_CHANNELS, LEGAL_WIDE, PACKED, PACKED_IM2COL, PLAIN
from tests.support.descriptors import LEGAL, LEGAL_IM2COL

DTYPES = {7: "float32", 9: "bfloat16"}
# Each row contains legal params, a compute capability, a change, and the error text for the change.
# fmt: off
SENTENCES = [
    (PLAIN, (9, 0), {"data_type": -1},
     "data_type is -1; TMA needs 0 to 15. [driver: data_type=-1]"),
    (LEGAL_IM2COL, (9, 0), {"data_type": 13},
     "data_type is 16U4_ALIGN8B; TMA needs 0 to 12 before compute capability 10.0. Use 0 (UINT8) and count "
     "bytes. [driver: data_type=13]"),
    (PLAIN, (9, 0), {"interleave": -1},
     "interleave is -1; TMA needs one of 0 (NONE), 1 (16B), 2 (32B). [driver: interleave=-1]"),
    (PLAIN, (9, 0), {"l2_promotion": -1},
     "l2_promotion is -1; TMA needs 0 to 3. [driver: l2_promotion=-1]"),
    (PLAIN, (9, 0), {"oob_fill": -1},
     "oob_fill is -1; TMA needs 0 (NONE) or 1 (NAN). [driver: oob_fill=-1]"),
    (PLAIN, (9, 0), {"allocation_class": 0},
     'allocation_class is 0 ("AUTO"); TMA needs one of 1 (SMALL), 2 (LARGE). [driver: allocation_class=0]'),
    (replace(PLAIN, data_type=5), (9, 0), {"oob_fill": 1},
     'oob_fill is 1 ("NAN_REQUEST_ZERO_FMA"); TMA needs 0 (NONE) unless the data type is a floating-point '
     'one. Use oob_fill=0 ("NONE"). [driver: oob_fill=1]'),
    (PLAIN, (9, 0), {"swizzle": -1},
     "swizzle is -1; TMA needs 0 to 3 before compute capability 10.0. [driver: swizzle=-1]"),
    (PACKED, (10, 0), {"swizzle": 1},
     'swizzle is 1 ("32B"); TMA needs one of 0 (NONE), 3 (128B), 4 (128B_ATOM_32B) for 16U4_ALIGN16B. '
     "[driver: swizzle=1]"),
    (ALIGN8, (10, 0), {"swizzle": 1},
     "box_dim[2] is 128 (64 bytes); TMA needs at most 64: a row is 64 bytes and the swizzle span 32. Use "
     "box_dim[2]=64 (32 bytes). [driver: box_dim[0]=128]"),
    (LEGAL_WIDE, (10, 0), {"swizzle": 0},
     'swizzle is 0 ("NONE"); TMA needs one of 2 (64B), 3 (128B), 4 (128B_ATOM_32B) for im2col wide. [driver: '
     "swizzle=0]"),
    (LEGAL_WIDE, (10, 0), {"swizzle": 7},
     "swizzle is 7; TMA needs 0 to 6. [driver: swizzle=7]"),
    (PACKED_WIDE, (10, 0), {"swizzle": 2},
     'swizzle is 2 ("64B"); TMA needs one of 3 (128B), 4 (128B_ATOM_32B) for 16U4_ALIGN16B. [driver: '
     "swizzle=2]"),
    (LEGAL_WIDE, (10, 0), {"mode": 2},
     "mode is 2; TMA needs 0 (W) or 1 (W128). [driver: mode=2]"),
    (U6, (10, 0), {"interleave": 1},
     'interleave is 1 ("16B"); TMA needs 0 (NONE) for 16U6_ALIGN16B. Use interleave=0 ("NONE"). [driver: '
     "interleave=1]"),
    (PLAIN, (9, 0), {"global_address": -16},
     "the tensor begins at address -0x10; TMA needs 0 to less than 2^64. Begin the view at 0x0, or copy the "
     "tensor: a fresh allocation is aligned. [driver: global_address=-16]"),
    (PLAIN, (9, 0), {"global_address": 8},
     "the tensor begins at address 0x8; TMA needs a multiple of 16. Begin the view at 0x0, or copy the "
     "tensor: a fresh allocation is aligned. [driver: global_address=8]"),
    (INTER, (9, 0), {"global_address": 8},
     "the tensor begins at address 0x8; TMA needs a multiple of 16. Begin the view at 0x0, or copy the "
     "tensor: a fresh allocation is aligned. [driver: global_address=8]"),
    (LEGAL_IM2COL, (9, 0), {"global_address": 24},
     "the tensor begins at address 0x18; TMA needs a multiple of 16. Begin the view at 0x10, or copy the "
     "tensor: a fresh allocation is aligned. [driver: global_address=24]"),
    (replace(LEGAL_IM2COL, interleave=2), (9, 0), {"global_address": 16},
     "the tensor begins at address 0x10; TMA needs a multiple of 32. Begin the view at 0x0, or copy the "
     "tensor: a fresh allocation is aligned. [driver: global_address=16]"),
    (PLAIN, (9, 0), {"global_strides": (-16, 12288)},
     "stride of dimension 1 is -16 bytes (-4 float32 elements); TMA needs from 0 to less than 2^40. [driver: "
     "global_strides[0]=-16]"),
    (PLAIN, (9, 0), {"global_strides": (256, 1099511627776)},
     "stride of dimension 0 is 1099511627776 bytes (274877906944 float32 elements); TMA needs from 0 to less "
     "than 2^40. Make the stride 1099511627760 bytes (274877906940 float32 elements). [driver: "
     "global_strides[1]=1099511627776]"),
    (INTER32, (9, 0), {"global_strides": (272, 12288)},
     "stride of dimension 1 is 272 bytes (68 float32 elements); TMA needs a multiple of 32. Pad the row to 72 "
     "elements. [driver: global_strides[0]=272]"),
    (INTER32, (9, 0), {"global_strides": (256, 1099511627776)},
     "stride of dimension 0 is 1099511627776 bytes (274877906944 float32 elements); TMA needs from 0 to less "
     "than 2^40. Make the stride 1099511627744 bytes (274877906936 float32 elements). [driver: "
     "global_strides[1]=1099511627776]"),
    (PACKED, (10, 0), {"global_strides": (80, 3072)},
     "stride of dimension 1 is 80 bytes (160 any elements); TMA needs a multiple of 32. Pad the row to 192 "
     "elements. [driver: global_strides[0]=80]"),
    (PLAIN, (9, 0), {"global_dim": (0, 1, 1)},
     "extent of dimension 2 is 0; TMA needs 1 to 4294967296. Make the extent 1. [driver: global_dim[0]=0]"),
    (ALIGN8, (10, 0), {"global_dim": (1, 48, 40)},
     "extent of dimension 2 is 1; TMA needs a multiple of 2. Make the extent 2. [driver: global_dim[0]=1]"),
    (PLAIN, (9, 0), {"box_dim": (0, 1, 1)},
     "box_dim[2] is 0 (0 bytes); TMA needs 1 to 256. Use box_dim[2]=1 (4 bytes). [driver: box_dim[0]=0]"),
    (PLAIN, (9, 0), {"box_dim": (3, 1, 1)},
     "box_dim[2] is 3 (12 bytes); TMA needs a multiple of 4, in whole 16 bytes. Use box_dim[2]=4 (16 bytes). "
     "[driver: box_dim[0]=3]"),
    (PACKED, (10, 0), {"box_dim": (64, 1, 1)},
     "box_dim[2] is 64 (32 bytes); TMA needs 128 for 16U4_ALIGN16B. Use box_dim[2]=128 (64 bytes). [driver: "
     "box_dim[0]=64]"),
    (replace(LEGAL, interleave=1), (9, 0), {"box_dim": (35, 1, 1)},
     "box_dim[2] is 35 (140 bytes); TMA needs a multiple of 4, in whole 16 bytes. Use box_dim[2]=36 (144 "
     "bytes). [driver: box_dim[0]=35]"),
    (PLAIN, (9, 0), {"box_dim": (256, 229, 1)},
     "box_dim is (1, 229, 256); TMA needs at most 233472 bytes in one load (it is 234496). Shrink the box. "
     "[driver: box_dim=(256, 229, 1)]"),
    (replace(PLAIN, element_strides=(1, 2, 1)), (9, 0), {"box_dim": (256, 457, 1)},
     "box_dim[1] is 457; TMA needs 1 to 256. Use box_dim[1]=256. [driver: box_dim[1]=457]"),
    (LEGAL_IM2COL, (9, 0), {"channels_per_pixel": 0},
     "channels_per_pixel is 0 (0 bytes); TMA needs 1 to 256. Use channels_per_pixel=1 (2 bytes). [driver: "
     "channels_per_pixel=0]"),
    (LEGAL_IM2COL, (9, 0), {"channels_per_pixel": 7},
     "channels_per_pixel is 7 (14 bytes); TMA needs a multiple of 8, in whole 16 bytes. Use "
     "channels_per_pixel=8 (16 bytes). [driver: channels_per_pixel=7]"),
    (replace(LEGAL_IM2COL, swizzle=3), (9, 0), {"channels_per_pixel": 72},
     "channels_per_pixel is 72 (144 bytes); TMA needs at most 64: a row is 144 bytes and the swizzle span "
     "128. Use channels_per_pixel=64 (128 bytes), and load the other channels from another coordinate. "
     "[driver: channels_per_pixel=72]"),
    (LEGAL_WIDE, (10, 0), {"channels_per_pixel": 72},
     "channels_per_pixel is 72 (144 bytes); TMA needs at most 64: a row is 144 bytes and the swizzle span "
     "128. Use channels_per_pixel=64 (128 bytes), and load the other channels from another coordinate. "
     "[driver: channels_per_pixel=72]"),
    (LEGAL_WIDE, (10, 0), {"channels_per_pixel": 0},
     "channels_per_pixel is 0 (0 bytes); TMA needs 1 to 256. Use channels_per_pixel=1 (2 bytes). [driver: "
     "channels_per_pixel=0]"),
    (PACKED_IM2COL, (10, 0), {"channels_per_pixel": 64},
     "channels_per_pixel is 64 (32 bytes); TMA needs 128 for 16U4_ALIGN16B. Use channels_per_pixel=128 (64 "
     "bytes). [driver: channels_per_pixel=64]"),
    (PACKED_WIDE, (10, 0), {"channels_per_pixel": 64},
     "channels_per_pixel is 64 (32 bytes); TMA needs 128 for 16U4_ALIGN16B. Use channels_per_pixel=128 (64 "
     "bytes). [driver: channels_per_pixel=64]"),
    (FEW_CHANNELS, (9, 0), {"pixels_per_column": 0},
     "pixels_per_column is 0; TMA needs 1 to 1024. Use pixels_per_column=1. [driver: pixels_per_column=0]"),
    (replace(LEGAL_IM2COL, channels_per_pixel=256), (9, 0), {"pixels_per_column": 457},
     "pixels_per_column is 457; TMA needs at most 233472 bytes in one load (it is 233984). Take fewer pixels "
     "or channels. [driver: pixels_per_column=457]"),
    (replace(LEGAL_WIDE, channels_per_pixel=8), (10, 0), {"pixels_per_column": 0},
     "pixels_per_column is 0; TMA needs 1 to 1024. Use pixels_per_column=1. [driver: pixels_per_column=0]"),
    (IM3, (9, 0), {"pixel_box_lower_corner": (-32769,)},
     "pixel_box_lower_corner[0] is -32769 (-padding along dimension 1, W); TMA needs -32768 to 32767. Use "
     "less padding, or split the filter, with a map for each group of taps whose corners and coordinates are "
     "moved by the offset of the group's first tap. [driver: pixel_box_lower_corner[0]=-32769]"),
    (IM3, (9, 0), {"pixel_box_upper_corner": (32768,)},
     "pixel_box_upper_corner[0] is 32768 (padding - (kernel_size - 1) * dilation along dimension 1, W); TMA "
     "needs -32768 to 32767. Use a smaller kernel_size or dilation, or split the filter, with a map for each "
     "group of taps whose corners and coordinates are moved by the offset of the group's first tap. [driver: "
     "pixel_box_upper_corner[0]=32768]"),
    (LEGAL_IM2COL, (9, 0), {"pixel_box_upper_corner": (1, 128)},
     "pixel_box_upper_corner[0] is 128 (padding - (kernel_size - 1) * dilation along dimension 1, H); TMA "
     "needs -128 to 127. Use a smaller kernel_size or dilation, or split the filter, with a map for each "
     "group of taps whose corners and coordinates are moved by the offset of the group's first tap. [driver: "
     "pixel_box_upper_corner[1]=128]"),
    (IM5, (9, 0), {"pixel_box_lower_corner": (0, 16, 0)},
     "pixel_box_lower_corner[1] is 16 (-padding along dimension 2, H); TMA needs -16 to 15. Use less padding, "
     "or split the filter, with a map for each group of taps whose corners and coordinates are moved by the "
     "offset of the group's first tap. [driver: pixel_box_lower_corner[1]=16]"),
    (IM5, (9, 0), {"pixel_box_lower_corner": (0, 0, 16)},
     "pixel_box_lower_corner[0] is 16 (-padding along dimension 1, D); TMA needs -16 to 15. Use less padding, "
     "or split the filter, with a map for each group of taps whose corners and coordinates are moved by the "
     "offset of the group's first tap. [driver: pixel_box_lower_corner[2]=16]"),
    (IM5, (9, 0), {"pixel_box_upper_corner": (0, 0, -17)},
     "pixel_box_upper_corner[0] is -17 (padding - (kernel_size - 1) * dilation along dimension 1, D); TMA "
     "needs -16 to 15. Use a smaller kernel_size or dilation, or split the filter, with a map for each group "
     "of taps whose corners and coordinates are moved by the offset of the group's first tap. [driver: "
     "pixel_box_upper_corner[2]=-17]"),
    (LEGAL_WIDE, (10, 0), {"pixel_box_lower_corner_width": -32769},
     "pixel_box_lower_corner_width is -32769 (-padding along dimension 1, W); TMA needs -32768 to 32767. Use "
     "less padding, or split the filter, with a map for each group of taps whose corners and coordinates are "
     "moved by the offset of the group's first tap. [driver: pixel_box_lower_corner_width=-32769]"),
    (LEGAL_WIDE, (10, 0), {"pixel_box_lower_corner_width": 49},
     "pixel_box_upper_corner_width is 1 (padding - (kernel_size - 1) * dilation along dimension 1, W); TMA "
     "needs at least 2, or the pixel box is empty (global_dim[1] 48 + upper 1 - lower 49 is not above 0). The "
     "dilated kernel does not fit into the padded extent: pad more, or use a smaller kernel_size or dilation. "
     "[driver: pixel_box_upper_corner_width=1]"),
    (LEGAL_WIDE, (10, 0), {"pixel_box_upper_corner_width": 32768},
     "pixel_box_upper_corner_width is 32768 (padding - (kernel_size - 1) * dilation along dimension 1, W); "
     "TMA needs -32768 to 32767. Use a smaller kernel_size or dilation, or split the filter, with a map for "
     "each group of taps whose corners and coordinates are moved by the offset of the group's first tap. "
     "[driver: pixel_box_upper_corner_width=32768]"),
    (LEGAL_IM2COL, (9, 0), {"pixel_box_upper_corner": (-49, 3)},
     "pixel_box_upper_corner[1] is -49 (padding - (kernel_size - 1) * dilation along dimension 2, W); TMA "
     "needs at least -48, or the pixel box is empty (global_dim[1] 48 + upper -49 - lower -1 is not above 0). "
     "The dilated kernel does not fit into the padded extent: pad more, or use a smaller kernel_size or "
     "dilation. [driver: pixel_box_upper_corner[0]=-49]"),
    (LEGAL_IM2COL, (9, 0), {"pixel_box_upper_corner": (1, -42)},
     "pixel_box_upper_corner[0] is -42 (padding - (kernel_size - 1) * dilation along dimension 1, H); TMA "
     "needs at least -41, or the pixel box is empty (global_dim[2] 40 + upper -42 - lower -2 is not above 0). "
     "The dilated kernel does not fit into the padded extent: pad more, or use a smaller kernel_size or "
     "dilation. [driver: pixel_box_upper_corner[1]=-42]"),
    (replace(LEGAL_IM2COL, interleave=1), (9, 0), {"pixel_box_upper_corner": (-65, 3)},
     "pixel_box_upper_corner[1] is -65 (padding - (kernel_size - 1) * dilation along dimension 3, W); TMA "
     "needs at least -64, or the pixel box is empty (global_dim[0] 64 + upper -65 - lower -1 is not above 0). "
     "The dilated kernel does not fit into the padded extent: pad more, or use a smaller kernel_size or "
     "dilation. [driver: pixel_box_upper_corner[0]=-65]"),
    (replace(LEGAL_IM2COL, interleave=1), (9, 0), {"pixel_box_upper_corner": (1, -50)},
     "pixel_box_upper_corner[0] is -50 (padding - (kernel_size - 1) * dilation along dimension 2, H); TMA "
     "needs at least -49, or the pixel box is empty (global_dim[1] 48 + upper -50 - lower -2 is not above 0). "
     "The dilated kernel does not fit into the padded extent: pad more, or use a smaller kernel_size or "
     "dilation. [driver: pixel_box_upper_corner[1]=-50]"),
    (LEGAL_IM2COL, (9, 0), {"pixel_box_lower_corner": (0,)},
     "rank is 4; it must be matched by pixel_box_lower_corner, which has length 1 and needs 2. [driver: rank=4]"),
    (PLAIN, (9, 0), {"element_strides": (0, 1, 1)},
     "element_strides[2] is 0; TMA needs 1 to 8. Use element_strides[2]=1. [driver: element_strides[0]=0]"),
    (LEGAL_IM2COL, (9, 0), {"element_strides": (1, 1, 1, 9)},
     "element_strides[0] is 9; TMA needs 1 to 8. Use element_strides[0]=8. [driver: element_strides[3]=9]"),
    (LEGAL_WIDE, (10, 0), {"element_strides": (1, 1, 0)},
     "element_strides[0] is 0; TMA needs 1 to 8. Use element_strides[0]=1. [driver: element_strides[2]=0]"),
    (LEGAL_WIDE, (10, 0), {"element_strides": (1, 1)},
     "rank is 3; it must be matched by element_strides, which has length 2 and needs 3. [driver: rank=3]"),
    (PLAIN, (9, 0), {"box_dim": (32, 16)},
     "rank is 3; it must be matched by box_dim, which has length 2 and needs 3. [driver: rank=3]"),
    (replace(IM3, global_dim=(64, 2**31, 8)), (9, 0), {"pixel_box_upper_corner": (0,)},
     "pixel_box_upper_corner[0] is 0 (padding - (kernel_size - 1) * dilation along dimension 1, W); TMA needs at most "
     "-1, or the pixel box is empty (global_dim[1] 2147483648 + upper 0, in 32 bits, - lower -1 is not above 0). Use "
     "pixel_box_upper_corner[0]=-1. [driver: pixel_box_upper_corner[0]=0]"),
    (LEGAL_IM2COL, (9, 0), {"element_strides": (1, 1, 14, 1)},
     "element_strides[1] is 14 (the convolution's stride along dimension 1, H); TMA needs 1 to 8. If it is the "
     "kernel_size (patches), reshape the tensor and load them with a tiled map; else use a stride that divides it, and "
     "skip output pixels. [driver: element_strides[2]=14]"),
    (LEGAL_IM2COL, (9, 0), {"element_strides": (1, 0, 1, 1)},
     "element_strides[2] is 0 (the convolution's stride along dimension 2, W); TMA needs 1 to 8. Use "
     "element_strides[2]=1. [driver: element_strides[1]=0]"),
    (replace(PACKED, data_type=13), (10, 0), {"global_strides": (72, 3072)},
     "stride of dimension 1 is 72 bytes (144 any elements); TMA needs a multiple of 16. Pad the row to 160 elements. "
     "[driver: global_strides[0]=72]"),
    (U6, (10, 0), {"global_strides": (97, 3072)},
     "stride of dimension 1 is 97 bytes; TMA needs a multiple of 32. Make the stride 128 bytes. [driver: "
     "global_strides[0]=97]"),
    (PLAIN, (9, 0), {"global_strides": (4097, 12288)},
     "stride of dimension 1 is 4097 bytes; TMA needs a multiple of 16. Pad the row to 1028 elements. [driver: "
     "global_strides[0]=4097]"),
    (LEGAL_WIDE, (9, 0), {},
     "the device has compute capability 9.0; TMA needs 10.0 or later for im2col wide. [driver: "
     "compute_capability=(9, 0)]"),
]
# fmt: on


@pytest.mark.parametrize(("base", "capability", "change", "expected"), SENTENCES)
def test_the_sentence(base, capability, change, expected):
    params = replace(base, **change)
    (violation,) = check(params, capability)
    assert sentence(params, violation, DTYPES.get(params.data_type, "any")) == expected


def test_sentences_about_an_unknown_data_type_name_no_elements():
    params = replace(PLAIN, data_type=16, global_strides=(8, 12288), box_dim=(0, 16, 2))
    assert [sentence(params, v, "16") for v in check(params)] == [
        "data_type is 16; TMA needs 0 to 15. [driver: data_type=16]",
        "stride of dimension 1 is 8 bytes; TMA needs a multiple of 16. Make the stride 16 bytes. "
        "[driver: global_strides[0]=8]",
        "box_dim[2] is 0; TMA needs 1 to 256. Use box_dim[2]=1. [driver: box_dim[0]=0]",
    ]
    params = replace(params, data_type=-1)
    assert sentence(params, check(params)[1], "-1").startswith("stride of dimension 1 is 8 bytes; TMA needs")
