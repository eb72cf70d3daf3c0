"""Tests of the package's test functions for users, whose errors contain the first element that differs."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cuda_tma import TensorSpec, emulate, params_of
from cuda_tma._data_type import element_bits
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.params import Im2colParams, TiledParams
from cuda_tma.rules import check
from cuda_tma.smem import smem_offset
from cuda_tma.testing import (
    assert_tile_equal,
    im2col_params,
    load_cases,
    store_cases,
    tiled_params,
    view_bytes,
)
from tests._given import LARGE, LARGE_SHOWN, refuses

PARAMS = params_of(TensorSpec((64, 64), "float32"), box_dim=(8, 16), element_strides=(2, 1), swizzle="128B")
MEMORY = view_bytes(np.arange(64 * 64, dtype=np.float32))
TILE = emulate.load(PARAMS, MEMORY, (16, 10))


def test_equal_tiles_pass_with_any_gaps():
    assert_tile_equal(PARAMS, TILE.smem, TILE)
    assert_tile_equal(PARAMS, emulate.load(PARAMS, MEMORY, (16, 10), fill=0xEE).smem, TILE)
    assert_tile_equal(PARAMS, TILE.smem.view(np.float32).reshape(2, -1), TILE)


def test_the_first_difference_is_named_in_tensor_coordinates():
    wrong = TILE.smem.copy()
    for index in ((5, 2), (3, 3)):
        offset = smem_offset(PARAMS, index)
        wrong[offset : offset + 4] = np.array([-1], np.float32).view(np.uint8)
    with pytest.raises(AssertionError) as failure:
        assert_tile_equal(PARAMS, wrong, TILE, coordinates=(16, 10))
    assert "first at box index (5, 2), tensor index (21, 14) (innermost first)" in str(failure.value)
    assert f"byte {smem_offset(PARAMS, (5, 2))}: -1.0 (0xbf800000) instead of 917.0 (0x44654000)" in str(failure.value)


def test_without_coordinates_the_box_index_is_enough():
    with pytest.raises(AssertionError, match=r"256 of 256 .* first at box index \(0, 0\) \(innermost first\)"):
        assert_tile_equal(PARAMS, ~TILE.smem, TILE)
    with pytest.raises(AssertionError, match="actual has 16 bytes, but the box takes 512"):
        assert_tile_equal(PARAMS, TILE.smem[:16], TILE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"expected": LARGE}, f"expected is {LARGE_SHOWN}; pass the Tile that cuda_tma.emulate.load"),
        ({"expected": TILE.smem}, r"expected is a numpy.ndarray of shape \(512,\) and dtype uint8; pass the Tile"),
        ({"expected": None}, "expected is None; pass the Tile"),
        ({"actual": TILE}, "actual is a cuda_tma.Tile; pass shared memory as an array in host memory"),
        ({"actual": None}, "actual is None; pass shared memory"),
        ({"actual": [[1, 2], [3]]}, r"actual is \[\[1, 2\], \[3\]\]; pass shared memory"),
        ({"coordinates": (1,)}, r"coordinates=\(1,\) has length 1; it needs length 2"),
        ({"coordinates": LARGE}, f"coordinates is {LARGE_SHOWN}; pass 2 integers"),
        ({"coordinates": 3}, "coordinates is 3; pass 2 integers"),
    ],
)
def test_a_wrong_argument_is_not_a_failure_of_the_kernel(change, message):
    arguments = {"params": PARAMS, "actual": TILE.smem, "expected": TILE} | change
    refuses(message, lambda: assert_tile_equal(**arguments))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"box_dim": PARAMS.box_dim[::-1]},
            r"expected belongs to another map than params: its box_dim is \(.*\), but that of params is \(",
        ),
        ({"box_dim": (4, 4)}, "expected belongs to another map than params: its box_dim is"),
        ({"data_type": 2}, "expected belongs to another map than params: its data_type is"),
        ({"swizzle": 0}, "expected belongs to another map than params: its swizzle is"),
        ({"oob_fill": 1}, "expected belongs to another map than params: its oob_fill is"),
        ({"global_dim": (7, 7)}, "expected belongs to another map than params: its global_dim is"),
    ],
)
def test_a_tile_of_another_map_is_refused(change, message):
    refuses(message, lambda: assert_tile_equal(replace(PARAMS, **change), TILE.smem, TILE))


def test_a_tile_of_a_map_of_another_mode_is_refused():
    params = Im2colParams(
        data_type=7, global_address=0, global_dim=(16, 8, 8, 2), global_strides=(64, 512, 4096),
        element_strides=(1,) * 4, pixel_box_lower_corner=(0, 0), pixel_box_upper_corner=(0, 0), channels_per_pixel=8,
        pixels_per_column=4,
    )  # fmt: skip
    refuses(
        "expected has params of type TiledParams, but params is Im2colParams",
        lambda: assert_tile_equal(params, TILE.smem, TILE),
    )


@pytest.mark.parametrize(
    "change",
    [{"global_address": 1 << 20}, {"l2_promotion": 2}, {"allocation_class": 1}],
    ids=lambda change: next(iter(change)),
)
def test_a_map_that_loads_the_same_elements_is_accepted(change):
    assert_tile_equal(replace(PARAMS, **change), TILE.smem, TILE)
    assert_tile_equal(PARAMS, TILE.smem, emulate.Tile(TILE.smem, TILE.written, TILE.tx_bytes))


def test_coordinates_may_be_an_array():
    for coordinates in (np.array([16, 10]), [16, 10]):
        assert_tile_equal(PARAMS, TILE.smem, TILE, coordinates)
        with pytest.raises(AssertionError, match=r"tensor index \(16, 10\)"):
            assert_tile_equal(PARAMS, ~TILE.smem, TILE, coordinates)


def test_view_bytes_refuses_gaps():
    refuses("array is None; pass a numpy.ndarray", view_bytes, None)
    with pytest.raises(ValueError, match="array is not contiguous"):
        view_bytes(np.zeros((4, 4))[:, :2])


@settings(max_examples=100)
@given(st.one_of(load_cases(), store_cases()))
def test_drawn_cases_obey_the_rules_and_are_small(case):
    params, memory, coordinates, *offsets = case
    emulate.load(params, memory, coordinates, *offsets)
    assert memory.nbytes < 1 << 20
    assert check(params, compute_capability=(9, 0)) == ()
    assert (params.interleave, params.swizzle) in {(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (2, 1)}
    assert 1 <= params.rank <= 5


# ---- every type and mode ----

TEXTS = {
    T.UINT8: (b"\xfe", "0xfe"),
    T.UINT16: (b"\xfe\xff", "65534 (0xfffe)"),
    T.UINT32: (b"\xfe\xff\xff\xff", "4294967294 (0xfffffffe)"),
    T.INT32: (b"\xfe\xff\xff\xff", "-2 (0xfffffffe)"),
    T.UINT64: (b"\xfe" + b"\xff" * 7, "18446744073709551614 (0xfffffffffffffffe)"),
    T.INT64: (b"\xfe" + b"\xff" * 7, "-2 (0xfffffffffffffffe)"),
    T.FLOAT16: (b"\x00\xc0", "-2.0 (0xc000)"),
    T.FLOAT32: (b"\x00\x00\x20\xc0", "-2.5 (0xc0200000)"),
    T.FLOAT64: (bytes(6) + b"\x04\xc0", "-2.5 (0xc004000000000000)"),
    T.BFLOAT16: (b"\x20\xc0", "-2.5 (0xc020)"),
    T.FLOAT32_FTZ: (b"\x00\x00\x20\xc0", "-2.5 (0xc0200000)"),
    T.TFLOAT32: (b"\x00\x00\x20\xc0", "-2.5 (0xc0200000)"),
    T.TFLOAT32_FTZ: (b"\x00\x00\x20\xc0", "-2.5 (0xc0200000)"),
}


@pytest.mark.parametrize("data_type", TEXTS)
def test_values_are_shown_as_their_type_and_as_bits(data_type):
    raw, text = TEXTS[data_type]
    unit = len(raw)
    params = TiledParams(
        data_type=data_type, global_address=0, global_dim=(64 // unit,), global_strides=(), box_dim=(64 // unit,),
        element_strides=(1,),
    )  # fmt: skip
    tile = emulate.load(params, np.zeros(64, np.uint8), (0,))
    wrong = tile.smem.copy()
    wrong[2 * unit : 3 * unit] = np.frombuffer(raw, np.uint8)
    zero = {True: "0.0", False: "0"}[T.FLOAT16 <= data_type <= T.TFLOAT32_FTZ]
    bits = f"0x{'00' * unit}"
    with pytest.raises(AssertionError) as failure:
        assert_tile_equal(params, wrong, tile, (0,))
    assert f"first at box index (2,), tensor index (2,) (innermost first), shared-memory byte {2 * unit}: " in str(
        failure.value
    )
    assert str(failure.value).endswith(f": {text} instead of {bits if unit == 1 else f'{zero} ({bits})'}")


def test_a_difference_in_half_an_element_is_one_of_the_element():
    """The swizzle mode 128B_ATOM_32B_FLIP_8B keeps elements of 8 bytes together, and 16 bytes of memory contain two
    elements."""
    params = params_of(TensorSpec((8, 16), "float64"), box_dim=(8, 16), swizzle=5)
    tile = emulate.load(params, np.zeros(1024, np.uint8), (0, 0))
    for byte in range(8):
        wrong = tile.smem.copy()
        wrong[smem_offset(params, (3, 2)) + byte] = 1
        with pytest.raises(AssertionError, match=r"^1 of 1024 delivered bytes differ, first at box index \(3, 2\) "):
            assert_tile_equal(params, wrong, tile)


def test_the_first_difference_in_the_box_is_named():
    """The first difference in shared memory may be another element, because the swizzle reorders elements."""
    wrong = TILE.smem.copy()
    first, second = smem_offset(PARAMS, (0, 1)), smem_offset(PARAMS, (4, 1))
    for index in ((0, 1), (4, 1), (0, 2)):
        wrong[smem_offset(PARAMS, index)] ^= 1
    assert first > second
    with pytest.raises(AssertionError, match=r"^3 of 256 delivered bytes differ, first at box index \(0, 1\) "):
        assert_tile_equal(PARAMS, wrong, TILE)


def test_longer_memory_and_bytes_beyond_the_box_are_not_compared():
    longer = np.concatenate([TILE.smem, np.full(16, 0xEE, np.uint8)])
    assert_tile_equal(PARAMS, longer, TILE)
    with pytest.raises(AssertionError, match="actual has 511 bytes, but the box takes 512 bytes of shared memory"):
        assert_tile_equal(PARAMS, longer[:511], TILE)


def test_offsets_of_an_im2col_load_move_the_tensor_index():
    params = Im2colParams(
        data_type=T.UINT16, global_address=0, global_dim=(8, 6, 5, 2), global_strides=(16, 96, 480),
        pixel_box_lower_corner=(0, 0), pixel_box_upper_corner=(-2, -2), channels_per_pixel=8, pixels_per_column=4,
        element_strides=(1, 1, 1, 1),
    )  # fmt: skip
    memory = view_bytes(np.arange(480, dtype=np.uint16))
    tile = emulate.load(params, memory, (0, 1, 0, 1), (1, 2))
    wrong = tile.smem.copy()
    wrong[-2] ^= 1
    with pytest.raises(AssertionError, match=r"box index \(7, 3\), tensor index \(7, 1, 3, 1\) \(innermost first\)"):
        assert_tile_equal(params, wrong, tile, (0, 1, 0, 1), (1, 2))


def drawn(strategy, examples=100):
    """Return values that a Hypothesis strategy draws from a fixed seed."""
    found = []

    @settings(max_examples=examples, database=None, derandomize=True, phases=[Phase.generate])
    @given(strategy)
    def draw(value):
        found.append(value)

    draw()
    return found


def test_random_cases_cover_the_intended_range():
    tiled = drawn(tiled_params(), 200)
    assert {p.data_type for p in tiled} <= {*range(13)} and len({p.data_type for p in tiled}) >= 9
    assert {p.interleave for p in tiled} == {0, 1, 2}
    assert {p.rank for p in tiled} == {1, 2, 3, 4, 5} and {p.oob_fill for p in tiled} == {0, 1}
    assert {p.swizzle for p in tiled if not p.interleave} == {0, 1, 2, 3}
    assert all(check(p) == () and p.global_address == 256 for p in tiled)
    assert {p.rank for p in drawn(tiled_params(min_rank=3, data_types=(T.UINT8,), interleaves=(0,)), 40)} <= {3, 4, 5}
    assert {step for p in tiled for step in p.element_strides} == {1, 2, 3, 8}
    pixels = drawn(im2col_params())
    assert {p.rank for p in pixels} == {3, 4, 5} and {p.swizzle for p in pixels} == {0, 1, 2, 3}
    assert all(check(p) == () for p in pixels)
    assert any(corner > 0 for p in pixels for corner in p.pixel_box_upper_corner)
    inside = drawn(im2col_params(inside=True))
    assert all(corner >= 0 for p in inside for corner in p.pixel_box_lower_corner)
    assert all(corner <= 0 for p in inside for corner in p.pixel_box_upper_corner)
    assert any(p.pixel_box_upper_corner != (0,) * (p.rank - 2) for p in inside)


def test_the_cases_that_are_drawn_reach_outside_and_stores_do_not_on_the_low_side():
    loads, stores = drawn(load_cases()), drawn(store_cases(), 40)
    assert any(min(coordinates) < 0 for _, _, coordinates, _ in loads)
    assert any(c >= n for p, _, at, _ in loads for c, n in zip(at, p.global_dim, strict=True))
    assert {len(offsets) for p, _, _, offsets in loads if isinstance(p, TiledParams)} == {0}
    assert {o for p, _, _, offsets in loads for o in offsets} == {0, 1, 2, 3, 4}
    assert all(min(coordinates) >= 0 for _, _, coordinates in stores)
    assert {type(p) for p, *_ in stores} == {type(p) for p, *_ in loads} == {TiledParams, Im2colParams}
    for params, memory, *_ in loads:
        last = params.global_address + params.global_dim[0] * element_bits(params.data_type) // 8
        assert memory.dtype == np.uint8 and (params.interleave or memory.size >= last)
    only = drawn(load_cases(tiled_params(data_types=(T.UINT32,))), 20)
    assert {p.data_type for p, *_ in only} == {T.UINT32}


@pytest.mark.parametrize("strategy", [tiled_params, im2col_params, load_cases, store_cases])
def test_without_hypothesis_the_remedy_is_named(monkeypatch, strategy):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ImportError, match=r"^random tensor maps need Hypothesis \(.*\): pip install hypothesis$"):
        strategy()
