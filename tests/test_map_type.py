"""Tests of typed maps as values, which describe boxes of a tensor."""

import copy
import dataclasses
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cuda_tma
from cuda_tma import TensorMapDataType as T
from cuda_tma import TensorMapError, enums
from cuda_tma import TensorMapOOBFill as Fill
from cuda_tma import TensorMapSwizzle as S
from cuda_tma._map_type import MapType, box_extent
from cuda_tma.smem import tx_bytes

CHOICES = {"data_type": st.sampled_from(T), "swizzle": st.sampled_from(S), "oob_fill": st.sampled_from(Fill)}
TILED = st.builds(
    MapType, mode=st.just("tiled"), tile_dim=st.lists(st.integers(1, 256), min_size=1, max_size=5).map(tuple),
    l2_promotion=st.integers(0, 3), **CHOICES,
)  # fmt: skip
IM2COL = st.builds(
    MapType, mode=st.just("im2col"), tile_dim=st.tuples(st.integers(1, 1024), st.integers(1, 256)),
    rank=st.integers(3, 5), l2_promotion=st.integers(0, 3), **CHOICES,
)  # fmt: skip


@given(TILED | IM2COL)
def test_a_type_can_be_written_and_kept(map_type):
    names = {"MapType": MapType, **{name: getattr(enums, name) for name in enums.__all__}}
    assert eval(repr(map_type), names) == map_type
    assert pickle.loads(pickle.dumps(map_type)) == copy.deepcopy(map_type) == map_type
    assert hash(map_type) == hash(eval(repr(map_type), names))


@given(TILED, st.integers(1, 2))
def test_the_bytes_of_a_tile_are_those_of_its_boxes(map_type, width):
    """The bytes of a tile equal the bytes of the boxes in a tensor map with the tile's options."""
    map_type = dataclasses.replace(map_type, tile_dim=(*map_type.tile_dim[:-1], 128 * width))
    bits = cuda_tma._data_type.element_bits(map_type.data_type)
    shape = (8,) * (map_type.rank - 1) + (3 * 4096,)
    storage = "uint8" if bits < 8 else f"uint{bits}"
    params = cuda_tma.params_of(cuda_tma.TensorSpec(shape, storage), map_type.options)
    assert map_type.tx_bytes == map_type.box_count * tx_bytes(params)
    assert params.box_dim[::-1] == map_type.box_dim and params.data_type == map_type.data_type
    assert (params.swizzle, params.oob_fill) == (map_type.swizzle, map_type.oob_fill)
    assert params.l2_promotion == map_type.l2_promotion


@given(st.integers(1, 4096), st.sampled_from(T), st.sampled_from(S))
def test_boxes_fill_a_tile(extent, data_type, swizzle):
    tile = MapType(mode="tiled", tile_dim=(extent,), data_type=data_type, swizzle=swizzle)
    (box,) = tile.box_dim
    assert box == box_extent(extent, data_type, swizzle) <= extent
    assert box * (tile.box_count - 1) < extent <= box * tile.box_count
    assert tile.box_count == 1 or swizzle


@pytest.mark.parametrize(
    ("data_type", "swizzle", "elements"),
    [
        (T.UINT8, S.SWIZZLE_32B, 32), (T.BFLOAT16, S.SWIZZLE_64B, 32), (T.FLOAT32, S.SWIZZLE_128B, 32),
        (T.FLOAT64, S.SWIZZLE_128B_ATOM_64B, 16), (T.PACKED_16U4_ALIGN8B, S.SWIZZLE_128B, 256),
        (T.PACKED_16U4_ALIGN16B, S.SWIZZLE_128B, 128), (T.PACKED_16U6_ALIGN16B, S.SWIZZLE_128B, 128),
    ],
)  # fmt: skip
def test_elements_of_a_span(data_type, swizzle, elements):
    assert box_extent(10**6, data_type, swizzle) == elements


def test_an_im2col_type_contains_all_but_the_corners():
    column = MapType(mode="im2col", tile_dim=(128, 64), data_type=T.BFLOAT16, swizzle=3, rank=4)
    options = cuda_tma.TensorMapIm2colOptions((-1, -1), (1, 1), **column.keywords)
    assert (options.pixels_per_column, options.channels_per_pixel) == (128, 64)
    assert (options.data_type, options.swizzle) == (T.BFLOAT16, S.SWIZZLE_128B)
    assert column.tx_bytes == 128 * 64 * 2
    with pytest.raises(TensorMapError, match=r"Im2colMap<Tile<BFLOAT16, Box<128, 64>, SWIZZLE_128B>, 4> does not "
                                             r"contain the corners of the box.*\*\*map_type.keywords"):  # fmt: skip
        _ = column.options


def test_the_spelling_of_cpp():
    tile = {"mode": "tiled", "tile_dim": (32, 64), "data_type": T.PACKED_16U4_ALIGN8B}
    assert str(MapType(**tile)) == "TiledMap<Tile<U4_ALIGN8B, Box<32, 64>>>"
    promoted = MapType(**tile, l2_promotion="256B")
    assert str(promoted) == "TiledMap<Tile<U4_ALIGN8B, Box<32, 64>>, OOB_FILL_NONE, L2_PROMOTION_256B>"
    filled = MapType(mode="im2col", tile_dim=(8, 16), rank=3, data_type="float32", oob_fill="NAN")
    assert str(filled) == "Im2colMap<Tile<FLOAT32, Box<8, 16>>, 3, OOB_FILL_NAN>"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mode": "wide"}, 'mode is \'wide\'; pass "tiled" or "im2col"'),
        ({"tile_dim": ()}, r"tile_dim is \(\) and rank is 0; tiled needs an extent for each of 1 to 5 dimensions"),
        ({"tile_dim": (1,) * 6}, "rank is 6; tiled needs"),
        ({"tile_dim": (4, 0)}, r"tile_dim is \(4, 0\) and rank is 2"),
        ({"rank": 3}, r"tile_dim is \(64, 64\) and rank is 3"),
        ({"mode": "im2col"}, "rank is 0; im2col needs pixels and channels, and a rank of 3 to 5"),
        ({"mode": "im2col", "rank": 6}, "rank is 6"),
        ({"mode": "im2col", "rank": 4, "tile_dim": (8,)}, r"tile_dim is \(8,\)"),
        ({"tile_dim": (8, 1.5)}, r"tile_dim is \(8, 1.5\); pass 2 integers: in tensor order"),
        ({"swizzle": 7}, "swizzle=7 is not a TensorMapSwizzle"),
    ],
)
def test_impossible_types_of_a_kernel(values, message):
    with pytest.raises(ValueError, match=message):
        MapType(**{"mode": "tiled", "tile_dim": (64, 64), "data_type": T.FLOAT16, **values})
