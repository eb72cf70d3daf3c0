"""Tests that encode() gives the driver's bytes, and that decode() gives the encoded parameters."""

import re
import struct
from dataclasses import fields as dataclass_fields
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_tma import TensorSpec, params_of
from cuda_tma._errors import TensorMapError
from cuda_tma.codec import decode, encode
from cuda_tma.codec._codec import stored_value
from cuda_tma.codec._fields import TRANSFER_BYTES
from cuda_tma.enums import TensorMapSwizzle
from cuda_tma.params import Im2colParams, Im2colWideParams, Params, TiledParams
from tests._given import refuses
from tests.support.descriptors import LEGAL, LEGAL_IM2COL, golden, legal_params, legal_wide_params


def test_encode_gives_the_drivers_bytes():
    rows = [row for row in golden() if row.accepted]
    assert [row for row in rows if encode(row.params, row.compute_capability) != row.raw] == []
    assert len(rows) > 1000


def test_decode_gives_the_params_back():
    rows = [row for row in golden() if row.accepted and not isinstance(row.params, Im2colWideParams)]
    assert rows and [row for row in rows if decode(row.raw) != row.params] == []


def test_im2col_wide_decodes_to_the_im2col_map_with_the_same_bytes():
    rows = [row for row in golden() if row.accepted and isinstance(row.params, Im2colWideParams)]
    assert {row.params.mode for row in rows} == {0, 1}
    for params, _, raw, _ in rows:
        got = decode(raw)
        zeros = (0,) * (params.rank - 3)
        assert isinstance(got, Im2colParams)
        assert got.pixel_box_lower_corner == (params.pixel_box_lower_corner_width, *zeros)
        assert got.pixel_box_upper_corner == (params.pixel_box_upper_corner_width, *zeros)
        assert encode(got) == raw


@given(legal_params())
def test_legal_params_round_trip(params):
    assert decode(encode(params)) == params


@given(legal_params(compute_capability=(10, 0)))
def test_legal_params_of_later_devices_round_trip(params):
    assert decode(encode(params, compute_capability=(10, 0))) == params


@given(legal_wide_params())
def test_legal_im2col_wide_params_keep_all_but_their_kind_and_mode(params):
    got = decode(encode(params, compute_capability=(10, 0)))
    zeros = (0,) * (params.rank - 3)
    kept = {f.name: getattr(params, f.name) for f in dataclass_fields(Params)}
    assert got == Im2colParams(
        pixel_box_lower_corner=(params.pixel_box_lower_corner_width, *zeros),
        pixel_box_upper_corner=(params.pixel_box_upper_corner_width, *zeros),
        channels_per_pixel=params.channels_per_pixel,
        pixels_per_column=params.pixels_per_column,
        **kept,
    )


@given(st.binary(min_size=128, max_size=128))
def test_any_128_bytes_decode_or_are_refused(raw):
    try:
        params = decode(raw)
    except TensorMapError as error:
        assert "rank" in str(error) or "has no meaning" in str(error)
    else:
        assert encode(params) == raw


@given(st.lists(st.integers(0, 1023), max_size=6), st.sampled_from([LEGAL, LEGAL_IM2COL]))
def test_a_few_flipped_bits_are_never_lost(bits, params):
    raw = int.from_bytes(encode(params), "little")
    for bit in bits:
        raw ^= 1 << bit
    raw = raw.to_bytes(128, "little")
    try:
        assert encode(decode(raw)) == raw
    except TensorMapError as error:
        assert "rank" in str(error) or "has no meaning" in str(error)


@st.composite
def any_descriptor(draw):
    """Draw 128 bytes with a legal rank, legal codes, and otherwise random bits. Fully random bytes rarely have a legal
    rank and legal codes."""
    words = list(struct.unpack("<32I", draw(st.binary(min_size=128, max_size=128))))
    mode = draw(st.sampled_from((TiledParams, Im2colParams)))
    rank = draw(st.integers(3, 5))
    words[2] = words[2] & ~0x71 | (mode is Im2colParams) | rank - 1 << 4
    words[13] |= draw(st.sampled_from((0, 0xFF << 24)))  # The box has a wide row.
    words[14] |= draw(st.sampled_from((0, 0xFFFFFFFF)))  # The box is large.
    words[15] |= draw(st.sampled_from((0, 0x3FF)))
    return struct.pack("<32I", *words)


@given(any_descriptor())
def test_external_bytes_round_trip(raw):
    try:
        params = decode(raw)
    except TensorMapError as error:
        assert "has no meaning" in str(error)
    else:
        assert encode(params) == raw and decode(encode(params)) == params


@pytest.mark.parametrize("bits,elements", [(32, 2**32), (16, 2**31), (64, 2**40), (8, 255**5)])
def test_a_transfer_of_4_gib_or_more_wraps_in_its_word(bits, elements):
    """The transfer size wraps in word 16 without a carry into word 17. No driver accepts a tensor map with a transfer
    of 4 GiB or more."""
    data_type = {8: 0, 16: 1, 32: 2, 64: 4}[bits]
    box = {2**32: (256,) * 4, 2**31: (256, 256, 256, 128), 2**40: (256,) * 5, 255**5: (255,) * 5}[elements]
    rank = len(box)
    params = replace(
        LEGAL,
        data_type=data_type,
        global_dim=(256,) * rank,
        global_strides=tuple(4096 << 8 * i for i in range(rank - 1)),
        box_dim=box,
        element_strides=(1,) * rank,
    )
    raw = encode(params)
    assert stored_value(raw, TRANSFER_BYTES) == elements * bits // 8 % 2**32
    assert decode(raw) == params and decode(raw).unexplained == () and encode(decode(raw)) == raw


def test_bits_that_the_table_lacks_are_kept_by_word():
    raw = bytearray(encode(LEGAL))
    raw[8] |= 0x02  # CuTe DSL sets a bit whose meaning is unknown.
    raw[64:68] = bytes(4)  # CuTe DSL writes the transfer size into word 16.
    size = 32 * 16 * 2 * 4
    assert decode(raw) == replace(LEGAL, unexplained=((2, 1 << 1), (16, size)))
    assert encode(decode(raw)) == raw


def test_the_public_sm120_case_has_the_drivers_bytes():
    spec = TensorSpec((1, 128, 64), "uint8")  # Each byte contains two elements.
    options = {"data_type": "16U4_ALIGN16B", "swizzle": "128B", "l2_promotion": "L2_128B"}
    params = params_of(spec, box_dim=(1, 128, 128), **options)
    assert params.global_dim == (128, 128, 1)
    raw = encode(params, compute_capability=(12, 0))
    assert {i: raw[i] for i in (8, 9, 17, 73)} == {8: 0x20, 9: 0x66, 17: 0x02, 73: 0x04}


@pytest.mark.parametrize("swizzle,atom", [(3, 0), (4, 1), (5, 2), (6, 3)])
def test_the_atom_has_the_place_of_tensormap_replace(swizzle, atom):
    word = int.from_bytes(encode(replace(LEGAL, swizzle=swizzle))[8:12], "little")
    assert (word >> 13 & 3, word >> 19 & 3) == (3, atom)
    assert decode(encode(replace(LEGAL, swizzle=swizzle))).swizzle == TensorMapSwizzle(swizzle)


def test_the_allocation_class_is_bit_21_of_word_2():
    small, large = (encode(replace(LEGAL, allocation_class=value)) for value in (1, 2))
    assert small == encode(LEGAL) and [i for i in range(128) if small[i] != large[i]] == [10]
    assert small[10] ^ large[10] == 1 << 21 - 16
    assert decode(large) == replace(LEGAL, allocation_class=2)


def test_the_stored_transfer_size_rounds_down():
    raw = encode(replace(LEGAL, box_dim=(32, 16, 2), element_strides=(1, 5, 1)))
    assert stored_value(raw, TRANSFER_BYTES) == 32 * (16 // 5) * 2 * 4


@pytest.mark.parametrize(
    "change,message",
    [
        ({"global_dim": (1,) * 6}, "rank 6 cannot be encoded"),
        ({"global_dim": ()}, "rank 0 cannot be encoded"),
        ({"data_type": 16}, "data_type=16 cannot be encoded in a tensor map; choose 0 to 15"),
        ({"interleave": 3}, "interleave=3 cannot be encoded"),
        ({"swizzle": -1}, "swizzle=-1 cannot be encoded"),
        ({"allocation_class": 0}, "allocation_class=0 cannot be encoded in a tensor map; choose 1 to 2"),
        ({"box_dim": (32,)}, "box_dim=(32,) has too few values for rank 3"),
        ({"element_strides": (1, 0, 1)}, "element_strides=(1, 0, 1) has a zero; each must be 1 to 8"),
        ({"element_strides": (1, 0) * 999}, "element_strides=(1, 0, 1, 0, 1, 0, ...) has a zero; each must be 1 to 8"),
        ({"data_type": 10**999}, "data_type=100000000000000000...0000000000000000000 cannot be encoded in a tensor"),
        ({"global_dim": (64,) * 999}, "rank 999 cannot be encoded"),
    ],
)
def test_encode_names_fields_without_a_place(change, message):
    refuses(re.escape(message), encode, replace(LEGAL, **change))


def test_encode_cuts_arrays_that_are_longer_than_the_rank():
    longer = {
        "global_strides": (256, 12288, 99, 98),
        "box_dim": (32, 16, 2, 77, 76),
        "element_strides": (1, 2, 1, 5, 4, 3),
    }
    plain = replace(LEGAL, element_strides=(1, 2, 1))
    for name, values in longer.items():
        assert encode(replace(plain, **{name: values})) == encode(plain)
    assert encode(replace(plain, **longer)) == encode(plain)
    corners = {"pixel_box_lower_corner": (-1, -2, 9), "pixel_box_upper_corner": (1, 3, 9)}
    assert encode(replace(LEGAL_IM2COL, **corners)) == encode(LEGAL_IM2COL)


@pytest.mark.parametrize(
    ("name", "value", "wrapped"),
    [
        ("global_address", 2**64 + 4096, 4096),
        ("global_address", -16, 2**64 - 16),
        ("global_dim", (2**32 + 1, 0, 40), (1, 2**32, 40)),
        ("global_strides", (2**40, 12289), (0, 12288)),
        ("box_dim", (257, 0, 2), (1, 256, 2)),
        ("element_strides", (9, 16, 1), (1, 8, 1)),
        ("l2_promotion", 7, 3),
        ("oob_fill", 2, 0),
    ],
)
def test_a_number_too_large_for_its_field_wraps(name, value, wrapped):
    """If a number is too large for its field, the transfer size that the encoder computes from the number also
    wraps."""
    words = [struct.unpack("<32I", encode(replace(LEGAL, **{name: v}))) for v in (value, wrapped)]
    assert words[0][:16] == words[1][:16] and getattr(decode(encode(replace(LEGAL, **{name: value}))), name) == wrapped


@pytest.mark.parametrize(
    ("name", "value", "wrapped"),
    [
        ("pixel_box_lower_corner", (128, -129), (-128, 127)),
        ("pixel_box_upper_corner", (256, -128), (0, -128)),
        ("channels_per_pixel", 257, 1),
        ("pixels_per_column", 0, 1024),
    ],
)
def test_a_number_of_im2col_too_large_for_its_field_wraps(name, value, wrapped):
    assert getattr(decode(encode(replace(LEGAL_IM2COL, **{name: value}))), name) == wrapped


@pytest.mark.parametrize("raw", [b"", bytes(127), bytes(129), "text", 128, None])
def test_decode_refuses_other_sizes(raw):
    with pytest.raises(TensorMapError, match="a tensor map has 128 bytes"):
        decode(raw)


def test_decode_takes_any_buffer():
    raw = encode(LEGAL)
    assert decode(bytearray(raw)) == decode(memoryview(raw)) == LEGAL
