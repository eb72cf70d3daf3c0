"""Pictures of synthetic values as text, which ``tests/data/pictures`` contains.

``make bless`` (``python -m tests.support.picture_snapshots``) writes the texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

from cuda_tma import TensorSpec, params_of, plot
from cuda_tma._show.svg import element
from cuda_tma._show.timeline_svg import Chart, Scale, rows_of, timeline_svg
from cuda_tma._show.tracks import Span, Track
from cuda_tma.layouts import _picture
from cuda_tma.layouts._element_layout import ElementLayout
from cuda_tma.layouts._picture import Side, side_by_side_svg
from tests._show._plot import IM2COL, PARAMS
from tests.support.traced_kernel import tracks

FOLDER = Path(__file__).parents[1] / "data" / "pictures"
CTA = (0, 1, 0)
WARPS = Track("warps", "warps 0-3", CTA, 10, 900, (
    Span("wait", 50, 300, "full", "waits for full[0]", "k.cu:7"),
    Span("wgmma", 310, 420, "wgmma", "two products", "k.cu:9"),
    Span("wait", 430, 440, "short", "a short wait"),
    Span("tcgen05", 500, 600, "tcgen05", "a product"),
    Span("wait", 700, 900, "empty", "waits for <empty>", "k.cu:12", in_vain=True),
))  # fmt: skip
COPIES = Track("copies", "copies", CTA, 0, 1000, (
    Span("load", 20, 280, "load 16 KB", "16384 bytes", "k.cu:3", 16384),
    Span("store", 280, 400, "store", "to c", "k.cu:20", 64),
    Span("reduce", 300, 420, "reduce", "to d", "k.cu:21", 64),
    Span("copy", 300, 310, "copy", "a copy", "k.cu:22", 16, in_vain=True),
))  # fmt: skip
MANY = replace(COPIES, spans=tuple(
    Span("load", 10 * (i % 6) + 100 * (i // 6), 500 + i, f"load {i}", f"detail {i}", f"k.cu:{i // 8}")
    for i in range(17)
))  # fmt: skip
BARRIER = Track("mbarrier", "full[0]", CTA, 0, 1000, (
    Span("phase", 0, 280, "0", "phase 0"), Span("phase", 280, 285, "1", "phase 1"),
    Span("phase", 285, 1000, "2", "phase 2 never completes", in_vain=True),
), ((0, 2, 0), (20, 1, 16384), (100, 1, 4096), (280, 2, 0), (285, 2, 0), (400, 1, 0), (990, 0, 32)))  # fmt: skip
QUIET = replace(BARRIER, name="empty[0]", levels=((0, 1, 0), (1000, 0, 0)))
CHART = Chart("k <1>", "One step is one statement of a warp. " * 4, 1000, (
    WARPS, COPIES, BARRIER, replace(QUIET, block=(1, 0, 0)), replace(MANY, block=(1, 0, 0)),
))  # fmt: skip


def lines_of(svg: str) -> str:
    """Return an SVG with each element on a line."""
    return svg.replace("><", ">\n<") + "\n"


def live_rows() -> str:
    """Return the rows of a page with zoom, where each element keeps its steps."""
    rows = rows_of(CHART, Scale(500, 1000, live=True, marked=frozenset(["k.cu:3", "k.cu:9"])))
    return "\n".join(f"{row.label} {row.height} {row.is_head}\n{lines_of(element('g', *row.parts))}" for row in rows)


def layouts() -> str:
    """Return pictures of two layouts: complete, and with fewer rows and columns than the layouts have."""
    row, column = np.indices((4, 6))
    written = ElementLayout("a:f32:4x6", "registers", 32, np.stack([row % 32, column], -1), "written")
    read = ElementLayout("b:f32:4x6", "registers", 32, np.stack([row % 32, column ^ 1], -1), "read")
    differs, found = (row + column) % 3 == 0, np.stack([row, column ^ 1], -1)
    found[2] = -1
    sides = Side("written", written, differs), Side("read", read, differs, found)
    whole = side_by_side_svg("a and b differ", sides)
    with patch.multiple(_picture, _MOST_ROWS=3, _MOST_COLUMNS=2):
        return lines_of(whole + side_by_side_svg(f"a and b differ: {'many words ' * 12}", sides))


def drawn(figure) -> Iterator[str]:
    """Yield the elements of a figure of Matplotlib: ranges, texts, rectangles and lines."""
    yield f"size {figure.get_size_inches().tolist()}, title {figure.get_suptitle()!r}"
    for axes in figure.axes:
        yield f"axes {axes.get_title()!r}, x {axes.get_xlabel()!r}, y {axes.get_ylabel()!r}"
        yield f"  ranges {np.round([*axes.get_xlim(), *axes.get_ylim()], 3).tolist()}"
        for shape in axes.patches:
            places = np.round(shape.get_bbox().bounds, 3).tolist()
            yield f"  patch {places} {shape.get_fill()} {shape.get_linewidth()} {shape.get_hatch()}"
        for each in axes.texts:
            yield f"  text {np.round(each.get_position(), 3).tolist()} {each.get_text()!r} {each.get_color()}"
        for line in axes.lines:
            yield f"  line {np.round(line.get_xydata(), 3).tolist()} {line.get_marker()}"
        for collection in axes.collections:
            yield f"  points {np.round(collection.get_offsets(), 3).tolist()}"
        for image in axes.images:
            shown = np.ma.filled(np.ma.asarray(image.get_array(), float), -1)
            yield f"  image {shown.shape} {np.round(image.get_extent(), 3).tolist()}"
            yield from ("    " + " ".join(f"{value:g}" for value in np.ravel(row)) for row in shown[:9])


def figures() -> Iterator[str]:
    """Yield the elements of figures of maps."""
    one = params_of(TensorSpec((40,), "uint8"), box_dim=(16,))
    wide = params_of(TensorSpec((70, 1024), "float32"), box_dim=(3, 64))
    apart = replace(PARAMS, element_strides=(1, 2))
    given = (
        (plot.tile, PARAMS), (plot.tile, IM2COL), (plot.banks, wide, "row"), (plot.box, PARAMS, (96, 56)),
        (plot.box, one, (32,)), (plot.box, apart, (8, 4)), (plot.tiles, PARAMS, (-8, 60)), (plot.tiles, wide, (64, 9)),
    )  # fmt: skip
    for function, *arguments in given:
        yield f"==== {function.__name__} {arguments[1:]}"
        yield from drawn(function(*arguments))


PICTURES = {
    "timeline.svg": lambda: lines_of(timeline_svg(CHART, 900, frozenset(["k.cu:7", "k.cu:20"]), has_styles=False)),
    "timeline_live.txt": live_rows,
    "tracks.txt": tracks,
    "layouts.svg": layouts,
    "figures.txt": lambda: "\n".join(figures()) + "\n",
}

if __name__ == "__main__":
    for name, picture in PICTURES.items():
        (FOLDER / name).parent.mkdir(exist_ok=True)
        (FOLDER / name).write_text(picture())
