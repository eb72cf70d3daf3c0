"""The test double for users: failures name the element, strategies draw legal tensor maps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_tma import emulate
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.params import TiledParams
from cuda_tma.rules import check
from cuda_tma.swizzle import smem_offset
from cuda_tma.testing import assert_tile_equal, load_cases, params_from_recording, store_cases, view_bytes

from .test_given import LARGE, LARGE_SHOWN, refuses

PARAMS = TiledParams(
    data_type=T.FLOAT32,
    global_address=0,
    global_dim=(64, 64),
    global_strides=(256,),
    box_dim=(16, 8),
    element_strides=(1, 2),
    swizzle=3,
)
MEMORY = view_bytes(np.arange(64 * 64, dtype=np.float32))
TILE = emulate.load(PARAMS, MEMORY, (16, 10))


def test_equal_tiles_pass_whatever_lies_in_the_gaps():
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
    with pytest.raises(AssertionError, match="actual holds 16 bytes; the box takes 512"):
        assert_tile_equal(PARAMS, TILE.smem[:16], TILE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"expected": LARGE}, f"expected is {LARGE_SHOWN}; give the Tile that cuda_tma.emulate.load"),
        ({"expected": TILE.smem}, r"expected is a numpy.ndarray of shape \(512,\) and dtype uint8; give the Tile"),
        ({"expected": None}, "expected is None; give the Tile"),
        ({"actual": TILE}, "actual is a cuda_tma.Tile; give shared memory as an array in host memory"),
        ({"actual": None}, "actual is None; give shared memory"),
        ({"actual": [[1, 2], [3]]}, r"actual is \[\[1, 2\], \[3\]\]; give shared memory"),
        ({"coordinates": (1,)}, r"coordinates=\(1,\) has 1 values, and needs 2"),
        ({"coordinates": LARGE}, f"coordinates is {LARGE_SHOWN}; give 2 integers"),
        ({"coordinates": 3}, "coordinates is 3; give 2 integers"),
    ],
)
def test_a_wrong_argument_is_no_failure_of_the_kernel(change, message):
    arguments = {"params": PARAMS, "actual": TILE.smem, "expected": TILE} | change
    refuses(message, lambda: assert_tile_equal(**arguments))


def test_coordinates_may_be_an_array():
    for coordinates in (np.array([16, 10]), [16, 10]):
        assert_tile_equal(PARAMS, TILE.smem, TILE, coordinates)
        with pytest.raises(AssertionError, match=r"tensor index \(16, 10\)"):
            assert_tile_equal(PARAMS, ~TILE.smem, TILE, coordinates)


def test_view_bytes_refuses_gaps():
    refuses("array is None; give a numpy.ndarray", view_bytes, None)
    with pytest.raises(ValueError, match="array is not contiguous"):
        view_bytes(np.zeros((4, 4))[:, :2])


def test_recorded_arrays_are_cut_and_padded_to_the_rank():
    recorded = {
        "kind": "tiled",
        "data_type": 7,
        "rank": 2,
        "global_offset": 32,
        "global_dim": [4, 5, 0, 0, 0],
        "global_strides": [16, 0, 0, 0],
        "box_dim": [4],
        "element_strides": [1, 1, 0, 0, 0],
        "interleave": 0,
        "swizzle": 0,
        "l2_promotion": 0,
        "oob_fill": 1,
    }
    params = params_from_recording(recorded)
    assert (params.global_address, params.global_dim, params.global_strides) == (32, (4, 5), (16,))
    assert (params.box_dim, params.element_strides, params.oob_fill) == ((4, 0), (1, 1), 1)


@settings(max_examples=100)
@given(st.one_of(load_cases(), store_cases()))
def test_drawn_cases_obey_the_rules_and_are_small(case):
    params, memory, coordinates, *offsets = case
    emulate.load(params, memory, coordinates, *offsets)
    assert memory.nbytes < 1 << 20
    assert check(params, compute_capability=(9, 0)) == ()
    assert (params.interleave, params.swizzle) in {(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (2, 1)}
    assert 1 <= params.rank <= 5
