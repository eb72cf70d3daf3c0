"""Tests of the picture that shows a tensor's division into tiles, with the coordinates that load each tile."""

from itertools import product

import numpy as np
import pytest

from cuda_tma import TensorSpec, emulate, params_of
from cuda_tma._errors import TensorMapError
from cuda_tma._show import plot

EVEN = params_of(TensorSpec((4, 24, 128), "bfloat16"), box_dim=(2, 8, 64), swizzle="128B")
UNEVEN = params_of(TensorSpec((60, 128), "bfloat16"), box_dim=(8, 64), swizzle="128B")


def test_it_equals_cutes_zipped_divide():
    """In the picture, the first element of every tile has the offset of the coordinates that load the tile."""
    cute = pytest.importorskip("tensor_layouts")
    division = plot.divided(EVEN)
    found = cute.zipped_divide(cute.Layout(EVEN.global_dim, division.strides), EVEN.box_dim)
    assert str(division).replace(" ", "") == str(found).replace(" ", "")
    for tile in product(*map(range, division.counts)):
        coordinates = division.coordinates(tile)
        assert found((0, 0, 0), tile) == sum(c * s for c, s in zip(coordinates, division.strides, strict=True))
        assert division.tile_at(coordinates) == tile


def test_the_tiles_cover_the_tensor_once():
    memory = np.arange(60 * 128, dtype=np.uint16).view(np.uint8)
    division, seen = plot.divided(UNEVEN), []
    for tile in product(*map(range, division.counts)):
        loaded = emulate.load(UNEVEN, memory, division.coordinates(tile))
        seen += loaded.smem.view(np.uint16).tolist()
    # The other elements of the tiles are fill.
    assert sorted(seen)[-60 * 128 :] == [*range(60 * 128)] and len(seen) == 64 * 128


def test_the_picture_names_the_loaded_tile():
    pytest.importorskip("matplotlib")
    whole, one = plot.tiles(UNEVEN, (64, 56)).axes
    assert whole.get_title() == "2 x 8 tiles: ((64, 8), (2, 8)) : ((1, 128), (64, 1024))"
    assert "(1, 7)  {64, 56}" in [text.get_text() for text in whole.texts] and len(whole.texts) == 16
    assert one.get_title() == "tile (1, 7), loaded at {64, 56}"
    assert [text.get_text() for text in one.texts] == ["(0, 0) is (64, 56)", "(63, 7) is (127, 63)"]
    assert plot.tiles(UNEVEN, (64, 57)).axes[1].get_title() == "no tile, loaded at {64, 57}"
    assert plot.tiles(EVEN, (64, 8, 2)).axes[1].get_title() == "tile (1, 1, 1), loaded at {64, 8, 2}"
    many = params_of(TensorSpec((512, 512), "float32"), box_dim=(8, 32))
    assert not plot.tiles(many).axes[0].texts


def test_a_map_without_tiles_is_refused():
    strided = params_of(TensorSpec((60, 128), "bfloat16"), box_dim=(8, 64), element_strides=(2, 1))
    with pytest.raises(TensorMapError, match="cannot be divided; pass a tiled map"):
        plot.divided(strided)
    with pytest.raises(TensorMapError, match=r"tile=\(2, 0\) is not the index of a tile; .* of \(2, 8\) tiles"):
        plot.divided(UNEVEN).coordinates((2, 0))


def test_a_start_outside_of_the_tensor_is_in_the_picture():
    """Both pictures contain the whole tensor and the whole box, and the filled part of the box is outside the
    tensor."""
    pytest.importorskip("matplotlib")
    figure = plot.tiles(UNEVEN, (-32, -4))
    whole, one = figure.axes
    (left, right), (bottom, top) = whole.get_xlim(), whole.get_ylim()
    assert left < -32 and right > 128 and top < -4 and bottom > 60
    inside = one.patches[1]
    assert (inside.get_x(), inside.get_y(), inside.get_width(), inside.get_height()) == (32, 4, 32, 4)
    figure = plot.tiles(UNEVEN, (160, 70))
    whole, one = figure.axes
    assert whole.get_xlim()[1] > 160 + 64 and whole.get_ylim()[0] > 70 + 8
    assert whole.get_xlim()[0] < 0 and whole.get_ylim()[1] < 0
    assert (one.patches[1].get_width(), one.patches[1].get_height()) == (0, 0)
