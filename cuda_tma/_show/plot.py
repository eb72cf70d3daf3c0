"""Pictures of a tensor map: the place of a tile in shared memory, its banks, and its box in the tensor.

The pictures need matplotlib (the extra ``cuda-tma[plot]``). Every function draws into `figure`, or into a new figure,
and returns the figure. The pictures show only possible loads. For a tensor map that the driver always refuses, or whose
box exceeds shared memory, the functions raise a TensorMapError. For a load that ends the context, the functions raise
the TensorMapFault of :func:`cuda_tma.emulate.load`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import TensorMapError
from .._given import shown
from .._params_checks import check_params
from ..emulate import tensor_index
from ..emulate._legal import emulated_rows
from ..enums import TensorMapSwizzle
from ..params import Params, TiledParams
from ..smem import bank_conflicts, box_extents, smem_bytes, smem_index, worst_read
from ..smem._layout import CHUNK_BYTES
from .divide import Division, divided, tiles
from .explorer import explorer
from .figure import MARK_COLOR, load_start, new_figure, plane, title_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Division", "banks", "box", "divided", "explorer", "tile", "tiles"]

_LINE_BYTES = 128
_WORD_BYTES = 4
_MOST_LINES = 32  # The picture has at most 32 lines, because every swizzle repeats within 8 lines.
_COLORS = "viridis"  # The color map viridis changes evenly in brightness and is suitable for color-blind readers.
_GAP_COLOR = "0.93"


def _lines(params: Params) -> int:
    return min(_MOST_LINES, -(-smem_bytes(params) // _LINE_BYTES))


def _shown(params: Params) -> str:
    lines = -(-smem_bytes(params) // _LINE_BYTES)
    return "" if lines <= _MOST_LINES else f"first {_MOST_LINES} of {lines} lines"


def _elements(params: Params, step: int) -> list[list[tuple[int, ...] | None]]:
    """Return an entry for every `step` bytes of each line of 128 bytes.

    An entry is the element that starts at these bytes or contains them, or None.
    """
    return [
        [
            smem_index(params, offset) if offset < smem_bytes(params) else None
            for offset in range(line * _LINE_BYTES, (line + 1) * _LINE_BYTES, step)
        ]
        for line in range(_lines(params))
    ]


def _row_number(params: Params, index: tuple[int, ...]) -> int:
    """Return the number of an element's row within the box; with interleave, return its number within the slice."""
    extents, number = box_extents(params), 0
    start = 0 if params.interleave else 1
    for i, n in zip(reversed(index[start:]), reversed(extents[start:]), strict=True):
        number = number * n + i
    return number


def _row_grid(params: Params, elements: list) -> np.ndarray:
    """Return the row numbers, with NaN in gaps."""
    return np.array([[np.nan if e is None else _row_number(params, e) for e in line] for line in elements])


def _draw_grid(axes: Any, grid: np.ndarray) -> Any:
    import matplotlib

    colors = matplotlib.colormaps[_COLORS].with_extremes(bad=_GAP_COLOR)
    largest = max(1.0, np.nanmax(grid))
    image = axes.imshow(np.ma.masked_invalid(grid), cmap=colors, vmin=0, vmax=largest, aspect="auto")
    axes.set_xticks(np.arange(grid.shape[1]) - 0.5, minor=True)
    axes.set_yticks(np.arange(grid.shape[0]) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=0.6)
    axes.tick_params(which="both", length=0)
    every = max(1, grid.shape[0] // 8)
    axes.set_yticks(
        range(0, grid.shape[0], every), [str(line * _LINE_BYTES) for line in range(0, grid.shape[0], every)]
    )
    axes.set_ylabel("byte offset")
    return image


def tile(
    params: Params,
    coordinates: Sequence[int] = (),
    offsets: Sequence[int] = (),
    *,
    figure: Figure | None = None,
) -> Figure:
    """Draw the place of each element in shared memory, colored by row of the box. Hatch elements out of bounds.

    Parameters
    ----------
    params : TiledParams, Im2colParams or Im2colWideParams
    coordinates, offsets : sequence of int, optional
        The arguments of the load, innermost first (default: the tensor's origin).
    figure : matplotlib.figure.Figure, optional
        The figure to draw into.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, which shows shared memory in lines of 128 bytes. A cell is 16 bytes, and its label is the tensor
        index of its first element.

    Examples
    --------
    >>> params = TiledParams(data_type=9, global_address=0, global_dim=(64, 64), global_strides=(128,),
    ...                      box_dim=(64, 8), element_strides=(1, 1), swizzle=3)
    >>> tile(params).axes[0].get_title()
    'BFLOAT16 box 64 x 8, swizzle 128B'
    """
    coordinates = load_start(params, coordinates, offsets)
    elements = _elements(params, CHUNK_BYTES)
    figure = new_figure((9, 1.9 + 0.3 * len(elements)), figure)
    axes = figure.subplots()
    grid = _row_grid(params, elements)
    image = _draw_grid(axes, grid)
    for line, chunks in enumerate(elements):
        for chunk, index in enumerate(chunks):
            if index is not None:
                at = tensor_index(params, index, coordinates, offsets)
                _label_chunk(
                    axes, (chunk, line), at, params.global_dim, dark=grid[line, chunk] < 0.45 * image.get_clim()[1]
                )
    axes.set_xticks(range(8), [str(chunk * CHUNK_BYTES) for chunk in range(8)])
    axes.set_xlabel("byte within the line of 128; labels: tensor index of the first element, innermost first")
    axes.set_title("; ".join(filter(None, [title_of(params), _shown(params)])))
    _draw_key(figure, image, [axes], "slice of the box" if params.interleave else "row of the box")
    return figure


def _label_chunk(axes: Any, place: tuple[int, int], at: tuple[int, ...], dims: Sequence[int], *, dark: bool) -> None:
    from matplotlib.patches import Rectangle

    outside = not all(0 <= i < n for i, n in zip(at, dims, strict=True))
    if outside:
        corner = (place[0] - 0.5, place[1] - 0.5)
        axes.add_patch(Rectangle(corner, 1, 1, facecolor="white", edgecolor="0.7", hatch="////", linewidth=0))
    text = "fill" if outside else ", ".join(map(str, at))
    background = {"facecolor": "white", "edgecolor": "none", "pad": 2} if outside else None
    color = "black" if outside or not dark else "white"
    axes.text(*place, text, ha="center", va="center", fontsize=7, color=color, bbox=background)


def banks(params: Params, access: str = "column", *, figure: Figure | None = None) -> Figure:
    """Draw shared memory as 32 banks, without and with the swizzle. Mark the read with the most conflicts.

    Parameters
    ----------
    params : TiledParams, Im2colParams or Im2colWideParams
    access : {"row", "column", "ldmatrix"}
        The reads of a warp, as in :func:`cuda_tma.smem.bank_conflicts`.
    figure : matplotlib.figure.Figure, optional
        The figure to draw into.

    Examples
    --------
    >>> params = TiledParams(data_type=7, global_address=0, global_dim=(64, 64), global_strides=(256,),
    ...                      box_dim=(32, 32), element_strides=(1, 1), swizzle=3)
    >>> [axes.get_title() for axes in banks(params).axes[:2]]
    ['swizzle NONE: column read is 32-way', 'swizzle 128B: column read is 4-way']
    """
    emulated_rows(params, check=True)
    compared = [params] if not params.swizzle else [replace(params, swizzle=0), params]
    figure = new_figure((6.5 * len(compared), 2.3 + 0.14 * max(map(_lines, compared))), figure)
    panels = np.atleast_1d(figure.subplots(1, len(compared)))
    for axes, drawn in zip(panels, compared, strict=True):
        image = _draw_grid(axes, _row_grid(drawn, _elements(drawn, _WORD_BYTES)))
        _mark_words(axes, worst_read(drawn, access))
        axes.set_xticks(range(0, 32, 4), [str(bank) for bank in range(0, 32, 4)])
        axes.set_xlabel("; ".join(filter(None, ["bank (4 bytes)", _shown(drawn)])))
        ways = bank_conflicts(drawn, access)
        conflict = f"{ways}-way" if ways > 1 else "free of conflicts"
        axes.set_title(f"swizzle {TensorMapSwizzle(drawn.swizzle).short_name}: {access} read is {conflict}")
    _draw_key(figure, image, list(panels), "slice of the box" if params.interleave else "row of the box")
    figure.legend(handles=panels[0].lines[:1], loc="outside lower center", frameon=False)
    return figure


def _draw_key(figure: Figure, image: Any, beside: list, label: str) -> None:
    from matplotlib.ticker import MaxNLocator

    figure.colorbar(image, ax=beside, label=label, pad=0.02, ticks=MaxNLocator(integer=True, nbins=6))


def _mark_words(axes: Any, words: np.ndarray) -> None:
    lines, columns = words // 32, words % 32
    seen = lines < _MOST_LINES
    label = "4-byte word of one read by a warp"
    colors = {"markerfacecolor": MARK_COLOR, "markeredgecolor": "black"}
    axes.plot(columns[seen], lines[seen], "s", markersize=5.5, markeredgewidth=0.6, label=label, **colors)


def box(params: TiledParams, coordinates: Sequence[int] = (), *, figure: Figure | None = None) -> Figure:
    """Draw dimensions 0 and 1 of the tensor, the box, and the elements that the load visits.

    The start of the box gives the indices of the other dimensions.

    Parameters
    ----------
    params : TiledParams
        A map without interleave.
    coordinates : sequence of int, optional
        Coordinates of the load, innermost first (default: the tensor's origin).
    figure : matplotlib.figure.Figure, optional
        The figure to draw into.

    Examples
    --------
    >>> params = TiledParams(data_type=7, global_address=0, global_dim=(64, 48), global_strides=(256,),
    ...                      box_dim=(16, 8), element_strides=(1, 2))
    >>> box(params, (56, 4)).axes[0].get_title()
    'FLOAT32 box 16 x 8, delivers 16 x 4, swizzle NONE: 32 of 64 elements inside'
    """
    check_params(params)
    if not isinstance(params, TiledParams) or params.interleave:
        given = f"{shown(params)} with interleave={params.interleave}"
        raise TensorMapError(f"plot.box cannot draw {given}, only tiled tensor maps without interleave; use plot.tile")
    coordinates = load_start(params, coordinates)
    dims, extents, start = plane(params.global_dim, 1), plane(params.box_dim, 1), plane(coordinates, 0)
    step = plane(params.element_strides, 1)[1]
    figure = new_figure((7, 5), figure)
    axes = figure.subplots()
    _draw_rectangles(axes, dims, extents, start)
    inside = _draw_visited(axes, dims, extents, start, step)
    _frame(axes, dims, extents, start, params.rank)
    at = ", ".join(f"dimension {d} = {c}" for d, c in enumerate(coordinates) if d > 1)
    slice_shown = f"\nslice at {at}" if at else ""
    total = extents[0] * -(-extents[1] // step)
    axes.set_title(f"{title_of(params)}{slice_shown}: {inside} of {total} elements inside", fontsize=10)
    return figure


def _draw_rectangles(axes: Any, dims: tuple[int, int], extents: tuple[int, int], start: tuple[int, int]) -> None:
    from matplotlib.patches import Rectangle

    if any(s < 0 or s + e > n for s, e, n in zip(start, extents, dims, strict=True)):
        hatched: Any = {"facecolor": "white", "edgecolor": "0.5", "hatch": "////"}
        axes.add_patch(Rectangle(start, *extents, **hatched, linewidth=0, label="fill"))
    axes.add_patch(Rectangle((0, 0), *dims, facecolor="#cfe3f1", edgecolor="#0072b2", linewidth=1.5, label="tensor"))
    axes.add_patch(Rectangle(start, *extents, fill=False, edgecolor=MARK_COLOR, linewidth=2, label="box"))


def _draw_visited(axes: Any, dims: Sequence[int], extents: Sequence[int], start: Sequence[int], step: int) -> int:
    """Draw a line from left to right for each visited row. Return the number of elements inside the tensor."""
    left, right = max(0, start[0]), min(dims[0], start[0] + extents[0])
    rows = [r for r in range(start[1], start[1] + extents[1], step) if 0 <= r < dims[1]]
    if right <= left:
        return 0
    width = min(1, 24 / max(1, len(rows)))
    for number, r in enumerate(rows):
        label = "visited, row by row" if number == 0 else None
        line: Any = {"color": "#0072b2", "linewidth": width, "solid_capstyle": "butt", "label": label}
        axes.plot([left, right], [r + 0.5, r + 0.5], **line)
    return (right - left) * len(rows)


# The picture shows only the part around the box if the tensor is more than _ZOOM times larger.
_ZOOM = 8


def _span(start: int, extent: int, dim: int) -> tuple[int, int]:
    """Return the range of a dimension that the picture shows."""
    low, high = min(0, start), max(dim, start + extent)
    if high - low <= _ZOOM * extent:
        return low, high
    reach = (_ZOOM - 1) * extent // 2
    return max(low, start - reach), min(high, start + extent + reach)


def _frame(axes: Any, dims: Sequence[int], extents: Sequence[int], start: Sequence[int], rank: int) -> None:
    spans = [_span(s, e, n) for s, e, n in zip(start, extents, dims, strict=True)]
    margins = [0.05 * (high - low) + 0.5 for low, high in spans]
    axes.set_xlim(spans[0][0] - margins[0], spans[0][1] + margins[0])
    axes.set_ylim(spans[1][1] + margins[1], spans[1][0] - margins[1])
    axes.set_xlabel("dimension 0 (innermost), elements")
    axes.xaxis.get_major_locator().set_params(integer=True)
    if rank > 1:
        axes.set_ylabel("dimension 1, elements")
        axes.yaxis.get_major_locator().set_params(integer=True)
    else:
        axes.set_yticks([])
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=4, frameon=False)
