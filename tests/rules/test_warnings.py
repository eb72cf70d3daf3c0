"""Tests of the complete text of every warning, and of tensor map bytes that no driver writes."""

import struct
from dataclasses import replace

import pytest

from cuda_tma import TensorSpec, params_of
from cuda_tma.codec import decode, encode
from cuda_tma.rules import WARNINGS, check
from cuda_tma.rules._explain import sentence
from cuda_tma.smem import smem_bytes
from cuda_tma.smem._layout import MAX_SMEM_BYTES
from tests.rules._boundaries import ALIGN8
from tests.rules._rules import LEGAL_WIDE, PACKED, PLAIN
from tests.support.descriptors import LEGAL, LEGAL_IM2COL

SM = params_of(TensorSpec((128, 1024), "uint8"), box_dim=(64, 64))
U8 = params_of(TensorSpec((8, 256, 256), "uint8"), box_dim=(4, 227, 256))
# In an interleaved layout, the extent 64 is the number of slices, which have 16 or 32 bytes.
SLICES = {"interleave": 1, "global_strides": (2048, 98304)}
SLICES_IM2COL = {"interleave": 1, "global_strides": (1024, 49152, 1966080)}
W = replace(LEGAL_WIDE, swizzle=3, channels_per_pixel=64)


def warnings(params, capability=(9, 0)):
    return [v for v in check(params, capability, warnings=True) if v.severity == "warning"]


# Each row contains params, a compute capability, changes, and all warnings.
# fmt: off
WARNED = [
    (PLAIN, (9, 0), {"global_dim": (64, 2147483648, 40)}, [
        "global_strides[1]=12288 should be at least 549755813888, or indices share memory and stores race.",
    ]),
    (PLAIN, (9, 0), {"global_dim": (2147483649, 4294967296, 40)}, [
        "global_dim[0]=2147483649 should be at most 2^31, as CUDA 13.5 documents. Use 2147483648.",
        "global_dim[1]=4294967296 should be at most 2^31, as CUDA 13.5 documents. Use 2147483648.",
        "global_dim[0]=2147483649 should be a whole number of 16 bytes for stores and reductions: they also "
        "overwrite the bytes after a row's end.",
        "global_strides[0]=256 should be at least 8589934596, or indices share memory and stores race.",
        "global_strides[1]=12288 should be at least 1108101562116, or indices share memory and stores race.",
    ]),
    (PLAIN, (9, 0), {"global_dim": (4, 48, 40)}, [
        "box_dim[0]=32 should be at most the tensor's extent, 4: the rest of the box is fill.",
    ]),
    (PLAIN, (9, 0), {"global_dim": (63, 48, 40)}, [
        "global_dim[0]=63 should be a whole number of 16 bytes for stores and reductions: they also "
        "overwrite the bytes after a row's end.",
    ]),
    (PLAIN, (9, 0), {"global_dim": (62, 48, 40)}, [
        "global_dim[0]=62 should be a whole number of 16 bytes for stores and reductions: they also "
        "overwrite the bytes after a row's end.",
    ]),
    (PLAIN, (9, 0), {"global_dim": (60, 48, 40)}, []),
    (replace(PLAIN,**SLICES), (9, 0), {"global_dim": (63, 48, 40)}, []),
    # A slice has 16 bytes, and is not a narrow row.
    (replace(PLAIN,**SLICES), (9, 0), {"global_dim": (1, 48, 40)}, [
        "box_dim[0]=32 should be at most the tensor's extent, 1: the rest of the box is fill.",
    ]),
    (replace(PLAIN,**SLICES), (9, 0), {"global_strides": (1024, 49152)}, []),
    (replace(PLAIN,**SLICES), (9, 0), {"global_strides": (1008, 49152)}, [
        "global_strides[0]=1008 should be at least 1024, or indices share memory and stores race.",
    ]),
    (replace(PLAIN,**SLICES), (10, 0), {"global_dim": (64, 48, 1), "box_dim": (32, 16, 1)}, [
        "global_address=4096 should be in an allocation of 131072 bytes or more (the tensor ends after 97280), or a "
        "load may fault. Have the driver set SMALL (CUDA 13.5; earlier ones choose), or a larger allocation.",
    ]),
    (PLAIN, (9, 0), {"global_dim": (4, 48, 40)}, [
        "box_dim[0]=32 should be at most the tensor's extent, 4: the rest of the box is fill.",
    ]),
    (PLAIN, (9, 0), {"global_dim": (3, 48, 40)}, [
        "global_dim[0]=3 should be a whole number of 16 bytes for stores and reductions: they also "
        "overwrite the bytes after a row's end.",
        "global_dim[0]=3 should be 16 bytes or more: a row is 12, and the rest is fill.",
        "box_dim[0]=32 should be at most the tensor's extent, 3: the rest of the box is fill.",
    ]),
    (replace(PLAIN,data_type=99), (9, 0), {"global_dim": (1, 48, 40)}, [
        "box_dim[0]=32 should be at most the tensor's extent, 1: the rest of the box is fill.",
    ]),
    (SM, (10, 0), {}, []),
    (SM, (10, 0), {"global_dim": (1023, 128)}, [
        "global_address=0 should be in an allocation of 131072 bytes or more (the tensor ends after 131071), "
        "or a load may fault. Have the driver set SMALL (CUDA 13.5; earlier ones choose), or a larger "
        "allocation.",
        "global_dim[0]=1023 should be a whole number of 16 bytes for stores and reductions: they also "
        "overwrite the bytes after a row's end.",
    ]),
    (SM, (9, 9), {"global_dim": (1008, 128)}, []),
    (SM, (10, 0), {"global_dim": (1008, 128)}, [
        "global_address=0 should be in an allocation of 131072 bytes or more (the tensor ends after 131056), "
        "or a load may fault. Have the driver set SMALL (CUDA 13.5; earlier ones choose), or a larger "
        "allocation.",
    ]),
    (SM, (10, 0), {"global_dim": (1008, 128), "allocation_class": 2}, [
        "global_address=0 should be in an allocation of 131072 bytes or more (the tensor ends after 131056), "
        "or a load may fault. Use the SMALL allocation class, or a larger allocation.",
    ]),
    (PACKED, (10, 0), {"global_dim": (128, 1, 1)}, [
        "global_address=4096 should be in an allocation of 131072 bytes or more (the tensor ends after 64), "
        "or a load may fault. Have the driver set SMALL (CUDA 13.5; earlier ones choose), or a larger "
        "allocation.",
        "box_dim[1]=16 should be at most the tensor's extent, 1: the rest of the box is fill.",
        "box_dim[2]=2 should be at most the tensor's extent, 1: the rest of the box is fill.",
    ]),
    (SM, (10, 0), {"global_dim": (131072,), "global_strides": (), "box_dim": (64,), "element_strides": (1,)}, []),
    (SM, (10, 0), {"global_dim": (131056,), "global_strides": (), "box_dim": (64,), "element_strides": (1,)}, [
        "global_address=0 should be in an allocation of 131072 bytes or more (the tensor ends after 131056), "
        "or a load may fault. Have the driver set SMALL (CUDA 13.5; earlier ones choose), or a larger "
        "allocation.",
    ]),
    (SM, (10, 0), {"global_dim": (1024, 2, 2), "global_strides": (2048, 128000),
     "box_dim": (64, 1, 1), "element_strides": (1, 1, 1)}, []),
    (LEGAL, (9, 0), {"global_strides": (256, 12288)}, []),
    (LEGAL, (9, 0), {"global_strides": (240, 12288)}, [
        "global_strides[0]=240 should be at least 256, or indices share memory and stores race.",
    ]),
    (LEGAL, (9, 0), {"global_strides": (256, 12272)}, [
        "global_strides[1]=12272 should be at least 12288, or indices share memory and stores race.",
    ]),
    (LEGAL, (9, 0), {"global_strides": (0, 12288)}, [
        "global_strides[0]=0 should be at least 256, or indices share memory and stores race.",
    ]),
    (LEGAL, (9, 0), {"global_strides": (10240, 256)}, []),
    (LEGAL, (9, 0), {"global_strides": (10224, 256)}, [
        "global_strides[0]=10224 should be at least 10240, or indices share memory and stores race.",
    ]),
    (LEGAL, (9, 0), {"global_dim": (64, 1, 40), "global_strides": (16, 256)}, [
        "box_dim[1]=16 should be at most the tensor's extent, 1: the rest of the box is fill.",
    ]),
    (LEGAL, (9, 0), {"global_dim": (64, 48, 1), "global_strides": (256, 16)}, [
        "box_dim[2]=2 should be at most the tensor's extent, 1: the rest of the box is fill.",
    ]),
    (PACKED, (10, 0), {"global_strides": (32, 3072)}, [
        "global_address=4096 should be in an allocation of 131072 bytes or more (the tensor ends after "
        "121376), or a load may fault. Have the driver set SMALL (CUDA 13.5; earlier ones choose), or a "
        "larger allocation.",
        "global_strides[0]=32 should be at least 64, or indices share memory and stores race.",
    ]),
    (LEGAL, (9, 0), {"global_dim": (64, 2, 2), "global_strides": (0, 16)}, [
        "global_strides[0]=0 should be at least 256, or indices share memory and stores race.",
        "global_strides[1]=16 should be at least 256, or indices share memory and stores race.",
        "box_dim[1]=16 should be at most the tensor's extent, 2: the rest of the box is fill.",
    ]),
    (LEGAL, (9, 0), {"global_dim": (64, 48, 40), "global_strides": (0, 256)}, [
        "global_strides[0]=0 should be at least 256, or indices share memory and stores race.",
    ]),
    (LEGAL, (9, 0), {"box_dim": (32, 48, 2)}, []),
    (LEGAL, (9, 0), {"box_dim": (32, 49, 1), "global_dim": (16, 48, 40)}, [
        "box_dim[0]=32 should be at most the tensor's extent, 16: the rest of the box is fill.",
        "box_dim[1]=49 should be at most the tensor's extent, 48: the rest of the box is fill.",
    ]),
    (LEGAL, (9, 0), {"box_dim": (28, 16, 2)}, [
        "box_dim[0]=28 should be 32: a row of 112 bytes takes the whole span of 128 bytes in shared memory.",
    ]),
    (replace(LEGAL, data_type=0), (9, 0), {"box_dim": (48, 16, 2)}, [
        "box_dim[0]=48 should be 128: a row of 48 bytes takes the whole span of 128 bytes in shared memory.",
    ]),
    (replace(LEGAL,swizzle=1), (9, 0), {"box_dim": (4, 16, 2)}, [
        "box_dim[0]=4 should be 8: a row of 16 bytes takes the whole span of 32 bytes in shared memory.",
    ]),
    (replace(LEGAL,swizzle=2), (9, 0), {"box_dim": (16, 16, 2)}, []),
    (replace(LEGAL,swizzle=2), (9, 0), {"box_dim": (12, 16, 2)}, [
        "box_dim[0]=12 should be 16: a row of 48 bytes takes the whole span of 64 bytes in shared memory.",
    ]),
    (replace(LEGAL,**SLICES), (9, 0), {"box_dim": (16, 16, 2)}, []),
    (PACKED, (10, 0), {}, [
        "global_address=4096 should be in an allocation of 131072 bytes or more (the tensor ends after "
        "122880), or a load may fault. Have the driver set SMALL (CUDA 13.5; earlier ones choose), or a "
        "larger allocation.",
    ]),
    (ALIGN8, (10, 0), {"box_dim": (32, 1, 1)}, [
        "global_address=4096 should be in an allocation of 131072 bytes or more (the tensor ends after "
        "122880), or a load may fault. Have the driver set SMALL (CUDA 13.5; earlier ones choose), or a "
        "larger allocation.",
    ]),
    (LEGAL_IM2COL, (9, 0), {"swizzle": 3, "channels_per_pixel": 56}, [
        "channels_per_pixel=56 should be 64: a row of 112 bytes takes the whole span of 128 bytes in shared "
        "memory.",
    ]),
    (LEGAL_WIDE, (10, 0), {"channels_per_pixel": 32}, [
        "channels_per_pixel=32 should be 64: a row of 64 bytes takes the whole span of 128 bytes in shared "
        "memory.",
    ]),
    (LEGAL, (9, 0), {"element_strides": (1, 2, 1)}, [
        "element_strides=(1, 2, 1) should be accounted for in expect_tx: a load delivers 2048 bytes, not the "
        "4096 of the whole box.",
    ]),
    (LEGAL, (9, 0), {"element_strides": (1, 3, 1)}, [
        "element_strides=(1, 3, 1) should be accounted for in expect_tx: a load delivers 1536 bytes, not the "
        "4096 of the whole box.",
    ]),
    (LEGAL, (9, 0), {"element_strides": (2, 1, 1)}, [
        "element_strides[0]=2 should be 1 without an interleaved layout: a load ignores it. Use 1.",
    ]),
    (replace(LEGAL,**SLICES), (9, 0), {"element_strides": (2, 1, 1), "interleave": 1}, [
        "element_strides=(2, 1, 1) should be accounted for in expect_tx: a load delivers 512 bytes, not the "
        "1024 of the whole box.",
    ]),
    (replace(LEGAL,**SLICES), (9, 0), {"element_strides": (3, 1, 2), "interleave": 1, "box_dim": (32, 16, 2)}, [
        "element_strides=(3, 1, 2) should be accounted for in expect_tx: a load delivers 176 bytes, not the "
        "1024 of the whole box.",
    ]),
    (LEGAL, (9, 0), {"element_strides": (1, 1, 8), "box_dim": (32, 16, 1)}, []),
    (LEGAL, (9, 0), {"element_strides": (1, 0, 1)}, []),
    (LEGAL, (9, 0), {"element_strides": (8, 1, 1)}, [
        "element_strides[0]=8 should be 1 without an interleaved layout: a load ignores it. Use 1.",
    ]),
    (LEGAL_IM2COL, (9, 0), {"element_strides": (2, 1, 1, 1)}, [
        "element_strides[0]=2 should be 1 without an interleaved layout: a load ignores it. Use 1.",
    ]),
    (LEGAL_IM2COL, (9, 0), {"element_strides": (2, 1, 1, 1), **SLICES_IM2COL}, []),
    (replace(LEGAL,**SLICES), (9, 0), {"interleave": 2, "swizzle": 1}, []),
    (replace(LEGAL,**SLICES), (9, 0), {"interleave": 2}, [
        "swizzle=3 should be 1 (32B) with INTERLEAVE_32B. Use 1.",
    ]),
    (replace(LEGAL,**SLICES), (9, 0), {"interleave": 1, "swizzle": 0}, []),
    (U8, (9, 0), {}, []),
    (U8, (9, 0), {"box_dim": (256, 228, 4)}, [
        "box_dim=(256, 228, 4) should be within the 232448 bytes of shared memory that a block has: it takes "
        "233472. Shrink the box.",
    ]),
    (U8, (12, 0), {"box_dim": (256, 99, 4)}, []),
    (U8, (12, 0), {"box_dim": (256, 198, 2)}, []),
    (U8, (12, 0), {"box_dim": (256, 199, 2)}, [
        "box_dim=(256, 199, 2) should be within the 101376 bytes of shared memory that a block has: it takes "
        "101888. Shrink the box.",
    ]),
    (U8, (11, 0), {"box_dim": (256, 227, 4)}, []),
    (U8, (12, 1), {"box_dim": (256, 227, 4)}, [
        "box_dim=(256, 227, 4) should be within the 101376 bytes of shared memory that a block has: it takes "
        "232448. Shrink the box.",
    ]),
    (LEGAL_IM2COL, (9, 0), {"channels_per_pixel": 256, "pixels_per_column": 454}, []),
    (LEGAL_IM2COL, (9, 0), {"channels_per_pixel": 256, "pixels_per_column": 455}, [
        "pixels_per_column=455 should be within the 232448 bytes of shared memory that a block has: it takes "
        "232960. Take fewer pixels.",
    ]),
    (LEGAL_IM2COL, (9, 0), {"channels_per_pixel": 8, "pixels_per_column": 1024, "swizzle": 3}, [
        "channels_per_pixel=8 should be 64: a row of 16 bytes takes the whole span of 128 bytes in shared "
        "memory.",
    ]),
    (W, (10, 0), {"pixels_per_column": 1024}, []),
    (W, (12, 0), {"pixels_per_column": 792}, []),
    (W, (12, 0), {"pixels_per_column": 793}, [
        "pixels_per_column=793 should be within the 101376 bytes of shared memory that a block has: it takes "
        "101504. Take fewer pixels.",
    ]),
    (W, (12, 0), {"pixels_per_column": 793, "mode": 1}, []),
    (U8, (9, 0), {"box_dim": (256, 0, 4)}, []),
    (U8, (9, 0), {"element_strides": (1, 0, 1)}, []),
    (U8, (9, 0), {"box_dim": (256, 0)}, []),
    (U8, (9, 0), {"data_type": 99}, []),
    (U8, (9, 0), {"swizzle": 99}, []),
]
# fmt: on


@pytest.mark.parametrize(("base", "capability", "changes", "said"), WARNED)
def test_a_warning_at_its_boundary(base, capability, changes, said):
    assert [v.message for v in warnings(replace(base, **changes), capability)] == said


def test_every_warning_except_those_of_bytes_is_tested_at_its_boundary():
    found = {v.rule for base, capability, changes, _ in WARNED for v in warnings(replace(base, **changes), capability)}
    assert found == {rule.name for rule in WARNINGS} - {"unexplained"}


def test_warnings_for_params_without_dimensions():
    nothing = replace(SM, global_dim=(), global_strides=(), box_dim=(), element_strides=())
    assert warnings(nothing) == warnings(nothing, (10, 0)) == []
    assert [v.rule for v in check(nothing)] == ["rank"]


def test_warnings_name_the_next_value_if_there_is_one():
    (documented,) = warnings(replace(PLAIN, global_dim=(64, 48, 2**32), global_strides=(256, 12288)))
    assert (documented.index, documented.value, documented.nearest) == (2, 2**32, 2**31)
    (ignored,) = warnings(replace(PLAIN, element_strides=(2, 1, 1)))
    assert (ignored.index, ignored.value, ignored.nearest) == (0, 2, 1)
    (interleaved,) = warnings(replace(LEGAL, **SLICES | {"interleave": 2}))
    assert (interleaved.index, interleaved.value, interleaved.nearest) == (None, 3, 1)


@pytest.mark.parametrize("changes", [{"data_type": 16}, {"data_type": -1}, {"interleave": 3}, {"global_dim": ()}])
def test_rows_without_a_size_give_no_warning(changes):
    params = replace(LEGAL, **{"global_dim": (1, 48, 1), "global_strides": (0, 0)} | changes)
    said = {v.rule for v in warnings(params, (10, 0))}
    assert not said & {"small_tensor", "global_dim_narrow", "global_strides_overlap"}


def test_a_box_as_large_as_shared_memory_fits():
    assert MAX_SMEM_BYTES == 232448
    assert smem_bytes(U8) == MAX_SMEM_BYTES and warnings(U8) == []


def with_words(params, changes):
    words = list(struct.unpack("<32I", encode(params)))
    for word, mask in changes.items():
        words[word] ^= mask
    return decode(struct.pack("<32I", *words))


@pytest.mark.parametrize("params", [LEGAL, LEGAL_IM2COL])
def test_bits_that_no_driver_writes_are_warned_of(params):
    odd = with_words(params, {31: 0xFFFFFFFF, 2: 1 << 23})
    assert check(odd) == ()
    assert [v.message for v in warnings(odd)] == [
        "unexplained=(2, 8388608) should be none: bits 0x800000 of word 2 differ from the driver's encoding, and "
        "their effect is unknown. Encode the params without them.",
        "unexplained=(31, 4294967295) should be none: bits 0xffffffff of word 31 differ from the driver's encoding, "
        "and their effect is unknown. Encode the params without them.",
    ]
    assert sentence(odd, warnings(odd)[1], "float32") == (
        "the bytes contain bits that belong to no parameter; better: none: bits 0xffffffff of word 31 differ "
        "from the driver's encoding, and their effect is unknown. Encode the params without them. "
        "[driver: unexplained=(31, 4294967295)]"
    )


@pytest.mark.parametrize("word,mask,read", [(2, 2, False), (16, 4096, False), (18, 1, False), (2, 3 << 22, True)])
def test_bits_that_no_load_reads_are_distinguished(word, mask, read):
    """No load reads bit 1 of word 2, the transfer size, or the period of the swizzle. Tensor maps of CuTe DSL have
    other values of these bits than the driver's maps."""
    odd = replace(LEGAL, unexplained=((word, mask),))
    (warning,) = warnings(odd)
    assert warning.value == (word, mask) and warning.requirement == (
        f"none: bits {mask:#x} of word {word} differ from the driver's encoding, and "
        + ("their effect is unknown" if read else "no load reads them")
    )


def test_a_bit_that_is_read_is_not_hidden_by_one_that_is_not():
    (warning,) = warnings(replace(LEGAL, unexplained=((2, 3 << 1),)))
    assert "their effect is unknown" in warning.requirement
