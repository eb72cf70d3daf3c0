"""Tests of the comparison of two tensor maps, which lists the fields and bytes that differ."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_tma._errors import TensorMapError
from cuda_tma.codec import decode, diff, encode
from tests.support.descriptors import LEGAL, LEGAL_IM2COL, golden

_PATH = Path(__file__).parents[2] / "examples" / "explain_sm120.py"
_SPEC = importlib.util.spec_from_file_location("explain_sm120", _PATH)
example = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(example)


def test_the_public_sm120_case_is_explained():
    found = [
        (d.field, d.a, d.b, d.byte_offsets, d.read_by_load) for d in diff(example.compiler_descriptor(), example.DRIVER)
    ]
    assert found == [
        ("rank", "2", "3", (8,), True),
        ("data_type", "16U4_ALIGN8B", "16U4_ALIGN16B", (8, 9), True),
        ("global_strides[1]", "absent", "8192 bytes", (17,), True),
        ("swizzle", "NONE", "128B", (9,), True),
        ("swizzle_repeat_bytes", "0", "1024", (73,), False),
        ("bit 1 of word 2", "1", "0", (8,), False),
    ]
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "two-descriptors.md").read_text()
    printed = [f"{number}. {d}" for number, d in enumerate(diff(example.compiler_descriptor(), example.DRIVER), 1)]
    assert len(printed) == 6 and "\n".join(printed) in page
    lost = diff(example.compiler_descriptor(), example.DRIVER)[2]
    assert lost.meaning.startswith("lost in a: every index but 0 of this dimension is read from another address")


def test_equal_maps_do_not_differ():
    class Descriptor:
        def __bytes__(self):
            return encode(LEGAL)

    for same in (LEGAL, encode(LEGAL), bytearray(encode(LEGAL)), memoryview(encode(LEGAL)), Descriptor()):
        assert diff(LEGAL, same) == ()


@pytest.mark.parametrize(
    "change,field,a,b,offsets",
    [
        ({"global_address": 8192}, "global_address", "0x1000", "0x2000", (1,)),
        ({"global_dim": (64, 47, 40)}, "global_dim[1]", "48", "47", (36,)),
        ({"global_strides": (256, 2**36)}, "global_strides[1]", "12288 bytes", "68719476736 bytes", (17, 28)),
        ({"l2_promotion": 3}, "l2_promotion", "NONE", "256B", (10,)),
        ({"oob_fill": 1}, "oob_fill", "NONE", "NAN_REQUEST_ZERO_FMA", (9,)),
        ({"data_type": 12}, "data_type", "FLOAT32", "TFLOAT32_FTZ", (8, 9, 10)),
        ({"interleave": 1}, "interleave", "NONE", "16B", (9,)),
    ],
)
def test_one_changed_parameter_is_one_field(change, field, a, b, offsets):
    (found,) = diff(LEGAL, replace(LEGAL, **change))
    assert (found.field, found.a, found.b, found.read_by_load) == (field, a, b, True)
    assert set(found.byte_offsets) <= set(range(128)) and found.byte_offsets == offsets


def test_modes_are_distinguished():
    fields = [d.field for d in diff(LEGAL_IM2COL, replace(LEGAL_IM2COL, swizzle=3))]
    assert fields == ["swizzle", "swizzle_repeat_bytes"]
    found = {d.field: (d.a, d.b) for d in diff(LEGAL, LEGAL_IM2COL)}
    assert found["im2col"] == ("tiled", "im2col") and found["rank"] == ("3", "4")
    assert found["pixels_per_column"] == ("absent", "100")


def test_unknown_bits_are_reported_by_word():
    raw = bytearray(encode(LEGAL))
    raw[100] = 7
    (found,) = diff(LEGAL, raw)
    assert (found.field, found.a, found.b, found.byte_offsets) == ("unknown bits of word 25", "0x0", "0x7", (100,))
    raw = bytearray(encode(LEGAL))
    raw[10] |= 0x20
    (found,) = diff(LEGAL, raw)
    assert (found.field, found.a, found.b, found.byte_offsets) == ("allocation_class", "SMALL", "LARGE", (10,))


def flipped(raw, *bits):
    number = int.from_bytes(raw, "little")
    for word, low in bits:
        number ^= 1 << 32 * word + low
    return number.to_bytes(128, "little")


def test_bytes_that_are_not_a_map_are_compared_as_stored():
    raw = encode(LEGAL)
    # The changes are the rank 7, an interleave that is 2 higher, an extent, and an unknown bit.
    other = flipped(raw, (2, 6), (2, 12), (8, 0), (31, 5))
    found = [(d.field, d.a, d.b, d.byte_offsets, d.read_by_load) for d in diff(raw, other, stored=True)]
    assert found == [
        ("rank", "2", "6", (8,), True),
        ("global_dim[0]", "63", "62", (32,), True),
        ("interleave", "0", "2", (9,), True),
        ("unknown bits of word 31", "0x0", "0x20", (124,), True),
    ]
    assert diff(raw, raw, stored=True) == ()


@pytest.mark.parametrize("rank,field", [(3, "pixel_box_lower_corner[0]"), (4, "pixel_box_lower_corner[1]")])
def test_stored_corners_are_those_of_the_rank(rank, field):
    """An im2col corner has 16, 8 or 5 bits, which depends on the rank. Bit 15 of the word belongs to the first corner
    for rank 3, and to the second corner for rank 4."""
    raw = bytes(8) + bytes([1 | rank - 1 << 4]) + bytes(119)
    (found,) = diff(raw, flipped(raw, (14, 15)), stored=True)
    assert (found.field, found.a) == (field, "0")


@pytest.mark.parametrize("rank", [1, 2, 6, 7, 8])
def test_stored_corners_of_a_rank_that_im2col_lacks_are_those_of_the_highest(rank):
    raw = bytes(8) + bytes([1 | rank - 1 << 4]) + bytes(119)
    (found,) = diff(raw, flipped(raw, (14, 14)), stored=True)
    assert (found.field, found.b) == ("pixel_box_lower_corner[2]", str(1 << 4))


def test_stored_numbers_that_no_load_reads_are_marked():
    raw = encode(LEGAL)
    found = {d.field: d for d in diff(raw, flipped(raw, (16, 0), (18, 0), (2, 1)), stored=True)}
    assert list(found) == ["transfer_bytes", "swizzle_repeat_bytes", "bit 1 of word 2"]
    assert not any(d.read_by_load for d in found.values())
    assert all(d.meaning.endswith("; a load does not read it") for d in found.values())


@given(st.lists(st.integers(0, 1023), min_size=1, max_size=5, unique=True), st.integers(0, 2**20))
def test_every_byte_that_differs_is_reported_and_no_other(bits, seed):
    rows = [row.raw for row in golden() if row.accepted]
    raw = rows[seed % len(rows)]
    other = int.from_bytes(raw, "little")
    for bit in bits:
        other ^= 1 << bit
    other = other.to_bytes(128, "little")
    try:
        decode(other)
    except TensorMapError:
        return
    reported = {offset for d in diff(raw, other) for offset in d.byte_offsets}
    assert reported == {i for i in range(128) if raw[i] != other[i]}


@pytest.mark.parametrize("wrong", [0, "00" * 128, [0] * 128, None, object(), {}, {300}, bytes(129)])
def test_invalid_tensor_map_is_refused(wrong):
    with pytest.raises(TensorMapError, match="^b is .*; pass the 128 bytes of a tensor map, params or a descriptor"):
        diff(LEGAL, wrong)
