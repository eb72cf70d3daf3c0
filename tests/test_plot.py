"""Pictures show what the emulator says: labels, hatches, marks and titles."""

import dataclasses
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.errors import TensorMapError
from cuda_tma.params import TiledParams
from cuda_tma.swizzle import smem_offset

matplotlib = pytest.importorskip("matplotlib")

_ROOT = Path(__file__).parent.parent
sys.path.append(str(_ROOT / "tools"))

from draw_docs import pictures  # noqa: E402

from cuda_tma import plot  # noqa: E402

from .test_given import LARGE, LARGE_SHOWN, refuses  # noqa: E402

PARAMS = TiledParams(
    data_type=T.BFLOAT16,
    global_address=0,
    global_dim=(128, 60),
    global_strides=(256,),
    box_dim=(64, 8),
    element_strides=(1, 1),
    swizzle=3,
)


def texts(figure):
    return {tuple(map(int, t.get_position())): t.get_text() for t in figure.axes[0].texts}


def test_a_chunk_is_labelled_with_the_element_that_lies_there():
    labels = texts(plot.tile(PARAMS, (64, 10)))
    assert len(labels) == 64
    for column, row in ((0, 0), (8, 0), (0, 3), (56, 7)):
        line, byte = divmod(smem_offset(PARAMS, (column, row)), 128)
        assert labels[byte // 16, line] == f"{64 + column}, {10 + row}"


def test_out_of_bounds_is_hatched():
    figure = plot.tile(PARAMS, (64, 56))
    assert list(texts(figure).values()).count("fill") == 4 * 8
    assert sum(patch.get_hatch() == "////" for patch in figure.axes[0].patches) == 4 * 8


def test_large_tiles_say_what_they_show():
    large = dataclasses.replace(PARAMS, box_dim=(64, 256))
    assert plot.tile(large).axes[0].get_title() == "BFLOAT16 box 64 x 256, swizzle 128B; first 32 of 256 lines"


def test_banks_mark_the_words_of_the_worst_read():
    figure = plot.banks(dataclasses.replace(PARAMS, box_dim=(64, 32)), "ldmatrix")
    assert [a.get_title() for a in figure.axes[:2]] == [
        "swizzle NONE: ldmatrix read is 8-way",
        "swizzle 128B: ldmatrix read is free of conflicts",
    ]
    for axes, banks in zip(figure.axes, (4, 32), strict=False):
        assert len(np.unique(axes.lines[0].get_xdata())) == banks
        assert len(axes.lines[0].get_xdata()) == 32


@pytest.mark.parametrize("draw", [plot.tile, plot.box])
def test_coordinates_fit_the_tensor(draw):
    refuses(r"coordinates=\(8,\) has 1 values, and needs 2: one for each dimension", draw, PARAMS, (8,))
    refuses("coordinates is 8; give 2 integers", draw, PARAMS, 8)
    refuses(f"coordinates is {LARGE_SHOWN}; give 2 integers", draw, PARAMS, LARGE)
    title = draw(PARAMS, (0, 58)).axes[0].get_title()
    assert draw(PARAMS, np.array([0, 58], np.uint8)).axes[0].get_title() == title


@pytest.mark.parametrize("draw", [plot.tile, plot.banks, plot.box])
def test_what_is_no_figure(draw):
    for figure, shown in (("tile.png", "'tile.png'"), (LARGE, LARGE_SHOWN), (plot.Params, "the class cuda_tma.Params")):
        message = f"figure is {shown}; give a matplotlib figure to draw into, or None"
        refuses(message, lambda figure: draw(PARAMS, figure=figure), figure)
    figure = matplotlib.figure.Figure()
    assert draw(PARAMS, figure=figure) is figure and figure.axes
    part = matplotlib.figure.Figure().subfigures()
    assert draw(PARAMS, figure=part) is part and part.axes


def test_box_counts_what_is_inside():
    strided = dataclasses.replace(PARAMS, element_strides=(1, 3))
    assert plot.box(strided, (96, -1)).axes[0].get_title().endswith("swizzle 128B: 64 of 192 elements inside")
    assert len(plot.box(strided, (96, -1)).axes[0].lines) == 2
    with pytest.raises(TensorMapError, match=r"plot\.box draws tiled tensor maps without interleave"):
        plot.box(dataclasses.replace(PARAMS, interleave=1))


def test_box_says_which_slice_it_shows():
    deep = dataclasses.replace(
        PARAMS, global_dim=(128, 60, 9, 9), global_strides=(256, 15360, 138240), box_dim=(64, 8, 2, 2), swizzle=0
    )
    deep = dataclasses.replace(deep, element_strides=(1, 1, 1, 1))
    title = plot.box(deep, (96, -1, 3, 2)).axes[0].get_title()
    assert title.endswith("\nslice at dimension 2 = 3, dimension 3 = 2: 224 of 512 elements inside")


def legend(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def test_box_names_only_what_is_there():
    assert legend(plot.box(PARAMS)) == ["tensor", "box", "visited, row by row"]
    assert legend(plot.box(PARAMS, (96, 0)))[0] == "fill"
    assert "visited, row by row" not in legend(plot.box(PARAMS, (128, 0)))


@pytest.mark.parametrize(
    ("start", "shown"), [((0, 0), (0, 288)), ((2048, 1024), (1824, 2336)), ((4032, 8), (3808, 4096))]
)
def test_box_shows_a_large_tensor_around_the_box(start, shown):
    large = dataclasses.replace(PARAMS, global_dim=(4096, 4096), global_strides=(8192,))
    low, high = plot.box(large, start).axes[0].get_xlim()
    margin = 0.05 * (shown[1] - shown[0]) + 0.5
    assert (low + margin, high - margin) == pytest.approx(shown)


def test_the_page_of_pictures_shows_those_that_are_drawn():
    shown = re.findall(r"\(images/(\w+)\.png\)", (_ROOT / "docs" / "pictures.md").read_text())
    files = list((_ROOT / "docs" / "images").iterdir())
    assert shown == list(pictures())
    assert {file.name for file in files} == {f"{name}.png" for name in shown}
    assert sum(file.stat().st_size for file in files) < 300_000
