"""Tests that the labels, hatches, marks and titles of pictures show the emulator's results."""

import dataclasses
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from cuda_tma._errors import TensorMapFault
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.smem import smem_offset

matplotlib = pytest.importorskip("matplotlib")

_ROOT = Path(__file__).parents[2]
sys.path.append(str(_ROOT / "tools"))

from draw_docs import drawings, pictures  # noqa: E402

from cuda_tma._show import plot  # noqa: E402
from tests._given import LARGE, LARGE_SHOWN, refuses  # noqa: E402
from tests._show._plot import IM2COL, INTERLEAVED, PARAMS, changed  # noqa: E402


def texts(figure):
    return {tuple(map(int, t.get_position())): t.get_text() for t in figure.axes[0].texts}


def test_a_chunk_is_labeled_with_its_element():
    labels = texts(plot.tile(PARAMS, (64, 10)))
    assert len(labels) == 64
    for column, row in ((0, 0), (8, 0), (0, 3), (56, 7)):
        line, byte = divmod(smem_offset(PARAMS, (column, row)), 128)
        assert labels[byte // 16, line] == f"{64 + column}, {10 + row}"


# Drawn elements -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "title"),
    [
        (PARAMS, "BFLOAT16 box 64 x 8, swizzle 128B"),
        (changed(box_dim=(64, 9), element_strides=(2, 2)), "BFLOAT16 box 64 x 9, delivers 64 x 5, swizzle 128B"),
        (changed(element_strides=(8, 1)), "BFLOAT16 box 64 x 8, swizzle 128B"),
        (INTERLEAVED, "FLOAT16 box 8 x 2 x 2 x 5, delivers 8 x 2 x 1 x 5, swizzle 32B, interleave 32B"),
        (IM2COL, "UINT8 column of 16 channels x 12 pixels, swizzle NONE"),
        (changed(IM2COL, interleave=1), "UINT8 column of 12 pixels, swizzle NONE, interleave 16B"),
    ],
)
def test_a_title_names_the_box_and_its_elements(params, title):
    assert plot.tile(params).axes[0].get_title() == title


@pytest.mark.parametrize("draw", [plot.tile, plot.banks, plot.box])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"global_strides": (260,)}, r"no driver accepts this tensor map:\nglobal_strides\[0\]=260 must be a mu"),
        ({"box_dim": (300, 300)}, r"no driver accepts this tensor map:\nbox_dim\[0\]=300 must be 1 to 256"),
        ({"box_dim": (0, 16)}, r"no driver accepts this tensor map:\nbox_dim\[0\]=0 must be 1 to 256"),
        ({"box_dim": (2**31, 2**31)}, r"no driver accepts this tensor map:\nbox_dim\[0\]=2147483648 must be 1 to 256"),
        (
            {
                "global_dim": (16, 256, 57),
                "global_strides": (32, 8192),
                "data_type": T.UINT8,
                "box_dim": (16, 256, 56),
                "element_strides": (1,) * 3,
            },
            "the box takes 1835008 bytes of shared memory, but a thread block has at most 232448; "
            "divide the box among several loads",
        ),
    ],
)
def test_an_impossible_load_is_not_drawn(draw, changes, message):
    refuses(message, draw, changed(**changes))


@pytest.mark.parametrize("draw", [plot.tile, plot.box])
def test_a_load_that_kills_the_context_is_not_drawn(draw):
    with pytest.raises(TensorMapFault, match=r"coordinates\[0\]=100 is not a multiple of 8 elements of BFLOAT16"):
        draw(PARAMS, (100, -32))
    with pytest.raises(TensorMapFault, match=r"coordinates\[1\]=7 is outside the pixel box, .* spans -1 to 6"):
        plot.tile(IM2COL, (0, 7, 0, 0))


def test_offsets_move_the_picture():
    assert texts(plot.tile(IM2COL, (0, -1, 0, 0)))[0, 0] == "fill"
    assert texts(plot.tile(IM2COL, (0, -1, 0, 0), (3, 2)))[0, 0] == "0, 2, 2, 0"
    refuses(r"offsets=\(1,\) has length 1; it needs length 2", plot.tile, IM2COL, (0, 0, 0, 0), (1,))


@pytest.mark.parametrize("draw", [plot.tile, plot.banks, plot.box])
def test_without_matplotlib_the_remedy_is_named(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(
        ImportError, match=r"^drawing needs matplotlib \(.*\): pip install matplotlib, or install cuda-tma"
    ):
        draw(PARAMS)


# Shared memory ------------------------------------------------------------------------------------------------------


def ticks(axis):
    return [(float(at), label.get_text()) for at, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)]


def test_cells_are_colored_by_row_and_gaps_are_gray():
    narrow = changed(box_dim=(32, 3, 2), global_dim=(128, 60, 2), global_strides=(256, 15360), element_strides=(1,) * 3)
    figure = plot.tile(narrow)
    axes, key = figure.axes
    image = axes.images[0]
    rows = np.repeat(np.arange(6), 4).reshape(6, 4)
    assert image.get_array().count() == 24  # The image masks the gaps between the rows.
    assert (np.sort(image.get_array(), axis=1)[:, :4] == rows).all()
    assert (image.get_clim(), image.get_cmap().name, key.get_ylabel()) == ((0, 5), "viridis", "row of the box")
    assert tuple(image.get_cmap().get_bad()) == (0.93, 0.93, 0.93, 1)
    assert ticks(axes.yaxis) == [(line, str(128 * line)) for line in range(6)]
    assert ticks(axes.xaxis) == [(chunk, str(16 * chunk)) for chunk in range(8)]
    assert (axes.get_xlim(), axes.get_ylim()) == ((-0.5, 7.5), (5.5, -0.5))
    assert list(axes.xaxis.get_ticklocs(minor=True)) == [at - 0.5 for at in range(8)]
    assert list(axes.yaxis.get_ticklocs(minor=True)) == [at - 0.5 for at in range(6)]
    assert axes.get_ylabel() == "byte offset"
    assert axes.get_xlabel().startswith("byte within the line of 128; labels: tensor index of the first element")
    assert figure.get_size_inches().tolist() == [9, pytest.approx(1.9 + 0.3 * 6)]


def test_slices_are_rows_of_an_interleaved_box():
    figure = plot.tile(INTERLEAVED)
    axes, key = figure.axes
    linear = [index for index in range(80) for _ in range(2)]  # Each of 80 slices of 32 bytes has two cells.
    assert key.get_ylabel() == "slice of the box"
    assert sorted(axes.images[0].get_array().ravel()) == linear
    assert axes.get_title().endswith("interleave 32B")


def test_labels_are_white_on_dark_and_inside_their_cells():
    figure = plot.tile(PARAMS, (64, 56))
    colors = {int(t.get_position()[1]): t.get_color() for t in figure.axes[0].texts}
    assert colors == {0: "white", 1: "white", 2: "white", 3: "white", **dict.fromkeys(range(4, 8), "black")}
    # Cells of row 3 are dark, because 3 is less than 0.45 * 7.
    assert plot.tile(PARAMS).axes[0].texts[31].get_color() == "white"
    assert plot.tile(PARAMS).axes[0].texts[32].get_color() == "black"
    hatched = [patch.get_xy() for patch in figure.axes[0].patches]
    assert hatched == [(chunk - 0.5, line - 0.5) for line in range(4, 8) for chunk in range(8)]
    assert {(patch.get_width(), patch.get_height()) for patch in figure.axes[0].patches} == {(1, 1)}
    boxes = {t.get_text(): t.get_bbox_patch() is not None for t in figure.axes[0].texts}
    assert boxes.pop("fill") and not any(boxes.values())


def test_an_element_at_the_end_of_the_tensor_is_inside_and_the_next_is_not():
    labels = texts(plot.tile(changed(swizzle=0), (64, 54))).values()
    assert list(labels).count("fill") == 2 * 8
    assert "120, 59" in labels and "64, 59" in labels
    assert "fill" not in texts(plot.tile(changed(swizzle=0), (0, 0))).values()
    assert list(texts(plot.tile(changed(swizzle=0), (-8, 0))).values()).count("fill") == 8


@pytest.mark.parametrize(("rows", "shown"), [(31, ""), (32, ""), (33, "; first 32 of 33 lines")])
def test_mismatches_are_reported(rows, shown):
    figure = plot.tile(changed(box_dim=(64, rows)))
    assert figure.axes[0].get_title() == f"BFLOAT16 box 64 x {rows}, swizzle 128B{shown}"
    assert figure.axes[0].images[0].get_array().shape == (min(rows, 32), 8)
    labels = [int(label) for _, label in ticks(figure.axes[0].yaxis)]
    assert labels == list(range(0, 128 * min(rows, 32), 128 * (min(rows, 32) // 8)))


def test_a_last_line_that_is_not_full_is_drawn():
    axes = plot.tile(changed(swizzle=0, box_dim=(40, 2))).axes[0]  # 160 bytes
    assert axes.images[0].get_array().shape == (2, 8) and axes.images[0].get_array().count() == 10


def test_out_of_bounds_is_hatched():
    figure = plot.tile(PARAMS, (64, 56))
    assert list(texts(figure).values()).count("fill") == 4 * 8
    assert sum(patch.get_hatch() == "////" for patch in figure.axes[0].patches) == 4 * 8


def test_large_tiles_name_the_shown_part():
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


def test_banks_of_a_map_without_a_swizzle_are_one_panel():
    figure = plot.banks(changed(swizzle=0, box_dim=(64, 64)), "column")
    axes, key = figure.axes
    assert axes.get_title() == "swizzle NONE: column read is 32-way"
    assert axes.get_xlabel() == "bank (4 bytes); first 32 of 64 lines"
    assert key.get_ylabel() == "row of the box"
    assert ticks(axes.xaxis) == [(bank, str(bank)) for bank in range(0, 32, 4)]
    assert axes.images[0].get_array().shape == (32, 32)
    assert (axes.lines[0].get_xdata() == 0).all() and axes.lines[0].get_ydata().tolist() == list(range(32))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["4-byte word of one read by a warp"]
    assert figure.get_size_inches().tolist() == [6.5, pytest.approx(2.3 + 0.14 * 32)]


def test_banks_compare_with_no_swizzle():
    figure = plot.banks(changed(box_dim=(32, 40)), "column")
    plain, swizzled, _ = figure.axes
    assert plain.get_xlabel() == "bank (4 bytes)"  # The tile has 40 rows of 64 bytes.
    assert swizzled.get_xlabel() == "bank (4 bytes); first 32 of 40 lines"
    assert plain.images[0].get_array().shape == (20, 32)
    assert swizzled.lines[0].get_ydata().tolist() == list(range(32))
    assert figure.get_size_inches().tolist() == [13, pytest.approx(2.3 + 0.14 * 32)]
    assert plot.banks(INTERLEAVED).axes[-1].get_ylabel() == "slice of the box"
    worst_last = changed(swizzle=0, box_dim=(8, 40))
    assert plot.banks(worst_last, "row").axes[0].get_title() == "swizzle NONE: row read is free of conflicts"


def test_words_outside_the_picture_are_not_marked():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    plot._mark_words(axes, np.array([31, 32 * 31 + 5, 32 * 32, 32 * 40 + 1]))
    assert axes.lines[0].get_xydata().tolist() == [[31, 0], [5, 31]]


@pytest.mark.parametrize("draw", [plot.tile, plot.box])
def test_coordinates_fit_the_tensor(draw):
    refuses(r"coordinates=\(8,\) has length 1; it needs length 2: one for each dimension", draw, PARAMS, (8,))
    refuses("coordinates is 8; pass 2 integers", draw, PARAMS, 8)
    refuses(f"coordinates is {LARGE_SHOWN}; pass 2 integers", draw, PARAMS, LARGE)
    title = draw(PARAMS, (0, 58)).axes[0].get_title()
    assert draw(PARAMS, np.array([0, 58], np.uint8)).axes[0].get_title() == title


@pytest.mark.parametrize("draw", [plot.tile, plot.banks, plot.box])
def test_invalid_figure(draw):
    for figure, shown in (("tile.png", "'tile.png'"), (LARGE, LARGE_SHOWN), (plot.Params, "the class cuda_tma.Params")):
        message = f"figure is {shown}; pass a matplotlib figure to draw into, or None"
        refuses(message, lambda figure: draw(PARAMS, figure=figure), figure)
    figure = matplotlib.figure.Figure()
    assert draw(PARAMS, figure=figure) is figure and figure.axes
    part = matplotlib.figure.Figure().subfigures()
    assert draw(PARAMS, figure=part) is part and part.axes


def test_the_page_of_pictures_shows_those_that_are_drawn():
    shown = re.findall(r"!\[[^]]*\]\(images/([\w.]+)\)", (_ROOT / "docs" / "pictures.md").read_text())
    files = list((_ROOT / "docs" / "images").iterdir())
    assert [name for name in shown if name.endswith(".png")] == [f"{name}.png" for name in pictures()]
    assert {file.name for file in files} == {*shown}
    assert sum(file.stat().st_size for file in files) < 600_000


def test_drawings_of_the_page_are_those_that_would_be_drawn():
    """The drawings in the documentation have the same words and header lines as newly drawn pictures. After a change of
    a kernel or a picture, run `make docs`."""

    def words(svg):
        return {re.sub(r"[\d,]+", "0", word) for word in re.findall(r">([^<>]+)</text>", svg)}

    for name, drawn in drawings().items():
        shown = (_ROOT / "docs" / "images" / f"{name}.svg").read_text("utf-8")
        assert words(shown) == words(drawn), name
        assert _lines_of_headers(shown) == _lines_of_headers(drawn), name


def _lines_of_headers(svg):
    return re.findall(r"\w+\.cuh:\d+", svg)
