"""Tests of swizzles, offsets and bank conflicts of tiles in shared memory."""

import dataclasses
import itertools
import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_tma import TensorSpec, params_of
from cuda_tma import smem as shared
from cuda_tma._errors import TensorMapError
from cuda_tma._swizzle_pattern import PATTERNS, SPAN_BYTES
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.enums import TensorMapSwizzle as S
from cuda_tma.params import Im2colParams, Im2colWideParams
from cuda_tma.smem import _banks, _layout
from cuda_tma.testing import im2col_params, tiled_params
from tests._given import LARGE, LARGE_SHOWN, refuses

ANY_PARAMS = st.one_of(tiled_params(), im2col_params())


MATRIX = params_of(TensorSpec((512, 512), "bfloat16", strides=(2048, 1)), box_dim=(8, 8))
INTERLEAVED = params_of(
    TensorSpec((11, 18, 8, 6), "float64", strides=(1152, 64, 8, 1)),
    box_dim=(5, 2, 2, 4),
    swizzle="32B",
    interleave="32B",
)


def matrix(box, data_type=T.BFLOAT16, **changes):
    return dataclasses.replace(MATRIX, box_dim=box, data_type=data_type, **changes)


# The table contains rows of 16-byte chunks, as in PTX ISA 5.5.7. Each number is the index of the chunk at that place of
# the row.
TABLES = {
    S.NONE: ["01234567"],
    S.SWIZZLE_32B: ["01234567", "10325476"],
    S.SWIZZLE_64B: ["01234567", "10325476", "23016745", "32107654"],
    S.SWIZZLE_128B: [
        *("01234567", "10325476", "23016745", "32107654"),
        *("45670123", "54761032", "67452301", "76543210"),
    ],
    S.SWIZZLE_128B_ATOM_32B: ["01234567", "23016745", "45670123", "67452301"],
    S.SWIZZLE_128B_ATOM_32B_FLIP_8B: ["01234567", "23016745", "45670123", "67452301"],
    S.SWIZZLE_128B_ATOM_64B: ["01234567", "45670123"],
}


@pytest.mark.parametrize("mode", TABLES, ids=lambda mode: mode.short_name)
def test_chunks_have_the_places_in_the_isa(mode):
    for line, table_row in zip(range(16), itertools.cycle(TABLES[mode])):
        places = [shared.swizzle_offset(mode, line * 128 + place * 16) for place in range(8)]
        assert [(p - line * 128) // 16 for p in places] == [int(chunk) for chunk in table_row]


@pytest.mark.parametrize("mode", S, ids=lambda mode: mode.short_name)
def test_the_permutation_is_its_own_inverse_and_repeats(mode):
    pattern = shared.pattern(mode)
    offsets = np.arange(4096)
    moved = shared.swizzle_offset(mode, offsets)
    assert (shared.swizzle_offset(mode, moved) == offsets).all()
    assert sorted(moved) == list(offsets)
    assert (moved // pattern.span_bytes == offsets // pattern.span_bytes).all()
    assert (moved[: -pattern.repeat_bytes] + pattern.repeat_bytes == moved[pattern.repeat_bytes :]).all()
    assert (moved % pattern.atom_bytes == offsets % pattern.atom_bytes).all()


def test_flip_swaps_halves_of_every_other_line():
    plain = shared.swizzle_offset(S.SWIZZLE_128B_ATOM_32B, np.arange(512))
    flipped = shared.swizzle_offset(S.SWIZZLE_128B_ATOM_32B_FLIP_8B, np.arange(512))
    odd_line = (np.arange(512) // 128) % 2
    assert (flipped == plain ^ (odd_line * 8)).all()


@pytest.mark.parametrize(
    ("mode", "alignment"),
    [
        ("NONE", 128),
        ("32B", 256),
        ("64B", 512),
        ("128B", 1024),
        ("128B_ATOM_32B", 1024),
        ("128B_ATOM_64B", 1024),
        ("128B_ATOM_32B_FLIP_8B", 1024),
    ],
)
def test_alignment(mode, alignment):
    params = matrix((8, 8), swizzle=S.parse(mode, "swizzle"))
    assert shared.smem_alignment(params) == alignment
    assert alignment % shared.pattern(params.swizzle).repeat_bytes == 0


@pytest.mark.parametrize(
    ("params", "extents", "tx", "smem"),
    [
        (matrix((64, 64), swizzle=3), (64, 64), 8192, 8192),
        # With the 128-byte swizzle, a row of 16 bytes occupies 128 bytes.
        (matrix((8, 64), swizzle=3), (8, 64), 1024, 8192),
        (matrix((8, 64), swizzle=1), (8, 64), 1024, 2048),
        (matrix((8, 7), element_strides=(8, 2)), (8, 4), 64, 64),
        (INTERLEAVED, (4, 2, 1, 5), 1280, 1280),
        (matrix((128, 2), T.PACKED_16U4_ALIGN8B), (128, 2), 128, 128),
        (matrix((128, 2), T.PACKED_16U4_ALIGN16B), (128, 2), 128, 256),
        (matrix((128, 2), T.PACKED_16U6_ALIGN16B), (128, 2), 192, 256),
    ],
)
def test_footprint(params, extents, tx, smem):
    assert shared.box_extents(params) == extents
    assert (shared.tx_bytes(params), shared.smem_bytes(params)) == (tx, smem)


def test_footprint_of_im2col():
    common = {
        "data_type": T.FLOAT16,
        "global_address": 0,
        "global_dim": (64, 9, 9, 2),
        "global_strides": (128, 1152, 10368),
        "element_strides": (1, 1, 1, 1),
        "channels_per_pixel": 16,
        "pixels_per_column": 5,
        "swizzle": 3,
    }
    params = Im2colParams(**common, pixel_box_lower_corner=(0, 0), pixel_box_upper_corner=(0, 0))
    assert shared.box_extents(params) == (16, 5)
    assert (shared.tx_bytes(params), shared.smem_bytes(params)) == (160, 640)
    wide = Im2colWideParams(**common, pixel_box_lower_corner_width=0, pixel_box_upper_corner_width=0, mode=1)
    # The mode W128 ignores pixels_per_column.
    assert shared.box_extents(wide) == (16, 128)


@settings(max_examples=50)
@given(ANY_PARAMS)
def test_offset_and_index_are_inverse_over_the_whole_footprint(params):
    extents = shared.box_extents(params)
    unit = _layout.slice_bytes(params) or shared.tx_bytes(params) // math.prod(extents)
    offsets = set()
    for index in itertools.product(*map(range, extents)):
        offset = shared.smem_offset(params, index)
        assert shared.smem_index(params, offset) == index
        assert offset % min(unit, 16) == 0
        offsets.add(offset)
    assert len(offsets) == math.prod(extents) and max(offsets) < shared.smem_bytes(params)


@given(ANY_PARAMS, st.data())
def test_every_byte_is_an_element_or_a_gap(params, data):
    offset = data.draw(st.integers(0, shared.smem_bytes(params) - 1))
    index = shared.smem_index(params, offset)
    if index is not None:
        unit = _layout.slice_bytes(params) or _layout.rows(params).data_bytes // shared.box_extents(params)[0]
        start = _layout.linear_offset(params, index)
        assert start <= shared.swizzle_offset(params.swizzle, offset) < start + unit


@pytest.mark.parametrize("data_type", [T.PACKED_16U4_ALIGN8B, T.PACKED_16U4_ALIGN16B, T.PACKED_16U6_ALIGN16B])
def test_packed_elements_are_found_again(data_type):
    params = matrix((128, 3), data_type, swizzle=3)
    for index in itertools.product(range(0, 128, 4), range(3)):
        assert shared.smem_index(params, shared.smem_offset(params, index)) == index
    gaps = [offset for offset in range(shared.smem_bytes(params)) if shared.smem_index(params, offset) is None]
    assert len(gaps) == shared.smem_bytes(params) - shared.tx_bytes(params)


def test_refusals_name_the_box():
    with pytest.raises(TensorMapError, match=r"index=\(8, 0\) is outside the box: .* \(8, 4\)"):
        shared.smem_offset(matrix((8, 4)), (8, 0))
    with pytest.raises(TensorMapError, match=r"offset=64 is outside .* 0 to 63"):
        shared.smem_index(matrix((8, 4)), 64)
    with pytest.raises(TensorMapError, match=r"offset=-1 is outside the box in shared memory; pass 0 to 63"):
        shared.smem_index(matrix((8, 4)), -1)
    assert shared.smem_index(matrix((8, 4)), 0) == (0, 0) and shared.smem_index(matrix((8, 4)), 63) == (7, 3)
    with pytest.raises(
        TensorMapError, match="access='diagonal' is not known; choose one of 'row', 'column', 'ldmatrix'"
    ):
        shared.bank_conflicts(matrix((8, 4)), "diagonal")


def test_a_box_has_no_pixels():
    refuses("params is a cuda_tma.TiledParams; pass Im2colParams or Im2colWideParams", _layout.pixels, matrix((8, 4)))


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (LARGE, f"index is {LARGE_SHOWN}; pass 2 integers: one for each of box_extents, innermost first"),
        (
            LARGE.ravel(),
            r"index, a numpy.ndarray of shape \(70000,\) and dtype int64, has length 70000; it needs length 2",
        ),
        (LARGE.ravel().tolist(), r"index=\(0, 0, 0, 0, 0, 0, \.\.\.\) has length 70000; it needs length 2"),
        ((0, 0.5), r"index is \(0, 0.5\); pass 2 integers"),
        ((0, 10**400), r"index=\(0, 1000.*\.\.\..*\) has a value of more than 32 bits"),
        ((0, -1), r"index=\(0, -1\) is outside the box"),
        (3, "index is 3; pass 2 integers"),
        (None, "index is None; pass 2 integers"),
    ],
)
def test_invalid_index(index, message):
    for call in (_layout.linear_offset, shared.smem_offset):
        refuses(message, call, matrix((8, 4)), index)


@given(ANY_PARAMS, st.data())
def test_an_index_may_be_an_array_of_any_integers(params, data):
    index = tuple(data.draw(st.integers(0, n - 1)) for n in shared.box_extents(params))
    for dtype in (np.uint8, np.int16, np.int64):
        if max(index) <= np.iinfo(dtype).max:
            assert shared.smem_offset(params, np.array(index, dtype)) == shared.smem_offset(params, index)


@pytest.mark.parametrize("offset", [LARGE, LARGE.tolist(), 0.5, "0", None])
def test_invalid_offset(offset):
    refuses("offset is .*; pass an integer$", shared.smem_index, matrix((8, 4)), offset)


@pytest.mark.parametrize("mode", list(S))
@pytest.mark.parametrize(
    ("offset", "given"),
    [
        (LARGE.astype(float), r"a numpy.ndarray of shape \(100, 700\) and dtype float64"),
        ([0, 128], r"\[0, 128\]"),
        (0.5, "0.5"),
        (None, "None"),
    ],
)
def test_offsets_are_integers_in_every_mode(mode, offset, given):
    refuses(f"offset is {given}; pass an integer, or an array of integers$", shared.swizzle_offset, mode, offset)


@pytest.mark.parametrize(
    ("value", "given"),
    [
        (7, "=7 is not known"),
        (-1, "=-1 is not known"),
        ("128B", "='128B' is not known"),
        (None, " is None"),
        ([3], r" is \[3\]"),
        (LARGE, f" is {LARGE_SHOWN}"),
    ],
)
def test_invalid_swizzle(value, given):
    message = rf"swizzle{given}; choose one of 0 \(NONE\), 1 \(32B\), .*, 6 \(128B_ATOM_64B\)$"
    refuses(message, shared.pattern, value)
    refuses(message, shared.swizzle_offset, value, 0)
    if isinstance(value, int):
        refuses(message, shared.smem_alignment, matrix((8, 4), swizzle=value))


@pytest.mark.parametrize("data_type", [16, -1, None, "BFLOAT16", LARGE])
def test_invalid_data_type(data_type):
    refuses(r"data_type.* is .*; choose one of 0 \(UINT8\), 1 \(UINT16\)", _layout.chunk_elements, data_type)


@pytest.mark.parametrize("access", [LARGE, LARGE.tolist(), ["row"], None, 0])
def test_invalid_access(access):
    for call in (shared.bank_conflicts, shared.worst_read):
        refuses("access.* is .*; choose one of 'row', 'column', 'ldmatrix'$", call, matrix((8, 4)), access)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data_type": 16}, r"data_type=16 is not known; choose one of 0 \(UINT8\), .*, 15 \(16U6_ALIGN16B\)"),
        (
            {"element_strides": (1,)},
            r"box_dim=\(8, 4\) and element_strides=\(1,\) are not a box of rank 2; give one of",
        ),
        ({"element_strides": (0, 0)}, r"box_dim=\(8, 4\) and element_strides=\(0, 0\) are not a box of .* from 1 on"),
        ({"box_dim": (16,) * 999}, r"box_dim=\(16, 16, 16, 16, 16, 16, \.\.\.\) and element_strides=\(1, 1\) are not"),
        ({"data_type": -1}, "data_type=-1 is not known; choose one of"),
        ({"interleave": -1}, r"interleave=-1 is not known; choose one of 0 \(NONE\), 1 \(16B\), 2 \(32B\)"),
        ({"swizzle": 7}, r"swizzle=7 is not known; choose one of 0 \(NONE\)"),
    ],
)
def test_an_impossible_field_of_params(change, message):
    params = dataclasses.replace(matrix((8, 4)), **change)
    for call in (shared.tx_bytes, shared.smem_bytes, lambda p: shared.bank_conflicts(p, "column")):
        refuses(message, call, params)


# The expected conflicts were computed by hand. With rows of 128 bytes, all elements of a column are in one bank. The
# swizzle distributes 8 rows of 16-byte chunks over all banks.
@pytest.mark.parametrize(
    ("params", "row", "column", "ldmatrix"),
    [
        (matrix((32, 32), T.FLOAT32), 1, 32, 8),
        (matrix((32, 32), T.FLOAT32, swizzle=3), 1, 4, 1),
        (matrix((64, 64)), 1, 32, 8),
        (matrix((64, 64), swizzle=3), 1, 4, 1),
        (matrix((32, 64), swizzle=2), 1, 4, 1),
        (matrix((16, 64), swizzle=1), 1, 4, 1),
        # With rows of 32 bytes, every fourth row is in the same bank.
        (matrix((16, 64)), 1, 8, 2),
        # A memory request for elements of 8 bytes serves 16 lanes.
        (matrix((16, 32), T.FLOAT64), 1, 16, 8),
        (matrix((8, 64), swizzle=3), 1, 4, 1),
        (matrix((64, 64), swizzle=S.SWIZZLE_128B_ATOM_64B), 1, 16, 4),
        (matrix((32, 64), T.UINT8), 1, 8, 2),
        # Two memory requests read a row of 256 bytes.
        (matrix((32, 32), T.FLOAT64), 1, 16, 8),
    ],
)
def test_bank_conflicts(params, row, column, ldmatrix):
    assert [shared.bank_conflicts(params, a) for a in ("row", "column", "ldmatrix")] == [row, column, ldmatrix]


def test_the_worst_read_names_its_words():
    # Each row of the tile has 128 bytes.
    rows = matrix((32, 40), T.FLOAT32)
    assert shared.worst_read(rows, "row").tolist() == list(range(32))
    assert shared.worst_read(rows, "column").tolist() == list(range(0, 32 * 32, 32))
    assert shared.worst_read(rows, "ldmatrix").tolist() == [32 * row + word for row in range(8) for word in range(4)]
    # Each slice of the interleaved tile has 32 bytes.
    slices = [8 * number + 4 * (number > 3) + word for number in range(8) for word in range(4)]
    assert shared.worst_read(INTERLEAVED, "ldmatrix").tolist() == slices


def test_boxes_that_do_not_fit_are_compared_up_to_64_times_shared_memory(monkeypatch):
    """The test omits reads of very large boxes, because such reads take seconds."""
    monkeypatch.setitem(_banks._ACCESSES, "row", lambda params: [np.arange(3)])
    assert shared.worst_read(matrix((1024, 64 * 227), T.UINT8), "row").tolist() == [0, 1, 2]
    with pytest.raises(TensorMapError, match="the box takes 14877696 bytes of shared memory, but a thread block has"):
        shared.worst_read(matrix((1024, 64 * 227 + 1), T.UINT8), "row")


@settings(max_examples=50)
@given(ANY_PARAMS)
def test_cute_layout_is_the_same_mapping_at_every_index(params):
    pytest.importorskip("tensor_layouts")
    layout = shared.smem_layout(params)
    unit = _BYTES[params.data_type]
    for index in itertools.product(*map(range, shared.box_extents(params))):
        # The first mode of an interleaved layout counts the elements of a slice, whose 16-byte chunks may be swapped.
        if params.interleave:
            slice_start = _layout.linear_offset(params, index)
            for channel in range(_layout.slice_bytes(params) // unit):
                expected = shared.swizzle_offset(params.swizzle, slice_start + channel * unit)
                assert layout(channel, *index) * unit == expected
        else:
            assert layout(*index) * unit == shared.smem_offset(params, index)


_BYTES = {t: (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)[t] for t in T if t < 13}


@pytest.mark.parametrize("mode", S, ids=lambda mode: mode.short_name)
@pytest.mark.parametrize("data_type", [T.UINT8, T.BFLOAT16, T.FLOAT32, T.FLOAT64])
def test_cute_layout_at_every_index_of_a_full_tile(mode, data_type):
    pytest.importorskip("tensor_layouts")
    unit = _BYTES[data_type]
    span = shared.pattern(mode).span_bytes if mode else 48
    params = matrix((span // unit, 16), data_type, swizzle=mode)
    layout = shared.smem_layout(params)
    for index in itertools.product(*map(range, shared.box_extents(params))):
        assert layout(*index) * unit == shared.smem_offset(params, index)


def test_cute_layout_refuses_other_maps():
    pytest.importorskip("tensor_layouts")
    with pytest.raises(TensorMapError, match="16U4_ALIGN8B has elements of less than a byte"):
        shared.smem_layout(matrix((128, 2), T.PACKED_16U4_ALIGN8B))


def test_without_the_library_of_layouts_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensor_layouts", None)
    with pytest.raises(ImportError, match=r"^smem_layout needs tensor-layouts \(.*\): pip install tensor-layouts, "):
        shared.smem_layout(MATRIX)


@pytest.mark.parametrize(("data_type", "unit"), [(T.UINT8, 1), (T.FLOAT64, 8), (T.PACKED_16U4_ALIGN8B, 1), (15, 1)])
def test_the_unit_of_packed_elements_is_a_byte(data_type, unit):
    assert _layout.unit_bytes(matrix((128, 8), data_type)) == unit


def test_every_swizzle_has_a_card_and_a_code_of_its_own():
    assert [*PATTERNS] == [*S]
    assert len({card.code for card in PATTERNS.values()}) == len(S)
    assert SPAN_BYTES == {1: 32, 2: 64, 3: 128, 4: 128, 5: 128, 6: 128}
    assert [int(s) for s, card in PATTERNS.items() if card.is_wide] == [2, 3, 4]
    assert [int(s) for s, card in PATTERNS.items() if not card.can_store] == [5]


def test_bytes_in_global_memory_count_slices_of_interleaved_layouts():
    small = dataclasses.replace(MATRIX, data_type=T.FLOAT16, global_dim=(3, 4, 1), global_strides=(64, 4096))
    assert _layout.bytes_along(small, np.array([1, 3])).tolist() == [2, 6]
    sliced = [dataclasses.replace(small, interleave=interleave) for interleave in (1, 2)]
    assert [_layout.bytes_along(params, 3) for params in sliced] == [48, 96]
    assert [_layout.tensor_bytes(params) for params in (small, *sliced)] == [6 + 3 * 64, 48 + 3 * 64, 96 + 3 * 64]
