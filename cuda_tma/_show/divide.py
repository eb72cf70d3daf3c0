"""The division of a tensor into tiles of the box, with the coordinates of each tile's load (CuTe's zipped divide)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from .._data_type import ELEMENTS
from .._errors import TensorMapError
from .._given import integers, shown
from .._params_checks import check_params
from ..params import Params, TiledParams
from .figure import MARK_COLOR, load_start, new_figure, plane, times, title_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Division", "divided", "tiles"]

_MOST_LABELLED = 64  # A plane with more than 64 tiles has no labels.


@dataclass(frozen=True, slots=True)
class Division:
    """A tensor that is divided into tiles of the map's box.

    Attributes
    ----------
    box_dim : tuple of int
        Elements of a tile in each dimension, innermost first.
    counts : tuple of int
        Number of tiles in each dimension. The last tiles may extend past the end of the tensor.
    strides : tuple of int
        Strides of the tensor, in elements.
    """

    box_dim: tuple[int, ...]
    counts: tuple[int, ...]
    strides: tuple[int, ...]

    def coordinates(self, tile: Sequence[int]) -> tuple[int, ...]:
        """Return the coordinates of the load that copies a tile, innermost first.

        >>> Division((64, 8), (2, 4), (1, 128)).coordinates((1, 3))
        (64, 24)
        """
        index = integers("tile", tile, len(self.counts), "one for each dimension, innermost first")
        if not all(0 <= i < n for i, n in zip(index, self.counts, strict=True)):
            raise TensorMapError(
                f"tile={shown(tile)} is not the index of a tile; pass one index, counted from 0, for each dimension of "
                f"{self.counts} tiles, innermost first"
            )
        return tuple(i * extent for i, extent in zip(index, self.box_dim, strict=True))

    def tile_at(self, coordinates: Sequence[int]) -> tuple[int, ...] | None:
        """Return the tile that a load at `coordinates` copies, or None if no tile begins at the coordinates."""
        parts = [divmod(c, extent) for c, extent in zip(coordinates, self.box_dim, strict=True)]
        inside = all(not rest and 0 <= i < n for (i, rest), n in zip(parts, self.counts, strict=True))
        return tuple(i for i, _ in parts) if inside else None

    def __str__(self) -> str:
        """Return the layout in CuTe's notation, with the modes within a tile before the modes from tile to tile.

        >>> str(Division((64, 8), (2, 4), (1, 128)))
        '((64, 8), (2, 4)) : ((1, 128), (64, 1024))'
        """
        steps = tuple(stride * extent for stride, extent in zip(self.strides, self.box_dim, strict=True))
        return f"({self.box_dim}, {self.counts}) : ({self.strides}, {steps})"


def divided(params: Params) -> Division:
    """Divide the tensor of a map into tiles of its box.

    Parameters
    ----------
    params : TiledParams
        A map without interleave that visits every element of its box.

    Raises
    ------
    TensorMapError
        If the map does not have this form.

    Examples
    --------
    >>> from cuda_tma.params import TiledParams
    >>> params = TiledParams(data_type=9, global_address=0, global_dim=(128, 60), global_strides=(256,),
    ...                      box_dim=(64, 8), element_strides=(1, 1))
    >>> divided(params).counts, divided(params).coordinates((1, 7))
    ((2, 8), (64, 56))
    """
    check_params(params)
    if not isinstance(params, TiledParams) or params.interleave or set(params.element_strides) != {1}:
        raise TensorMapError(
            f"{shown(params)} cannot be divided; pass a tiled map without interleave and with element_strides of 1"
        )
    counts = tuple(-(-n // extent) for n, extent in zip(params.global_dim, params.box_dim, strict=True))
    bits = ELEMENTS[params.data_type].bits
    return Division(params.box_dim, counts, (1, *(stride * 8 // bits for stride in params.global_strides)))


def tiles(params: TiledParams, coordinates: Sequence[int] = (), *, figure: Figure | None = None) -> Figure:
    """Draw dimensions 0 and 1 of the tensor in tiles of the box. Mark the tile of a load at `coordinates`.

    Parameters
    ----------
    params : TiledParams
        The map, as for :func:`divided`.
    coordinates, figure
        The arguments of ``cuda_tma.plot.box``.

    Examples
    --------
    >>> params = TiledParams(data_type=9, global_address=0, global_dim=(128, 60), global_strides=(256,),
    ...                      box_dim=(64, 8), element_strides=(1, 1))
    >>> [axes.get_title() for axes in tiles(params, (64, 56)).axes]
    ['2 x 8 tiles: ((64, 8), (2, 8)) : ((1, 128), (64, 1024))', 'tile (1, 7), loaded at {64, 56}']
    """
    division = divided(params)
    start = load_start(params, coordinates)
    figure = new_figure((10.5, 5.2), figure)
    whole, one = figure.subplots(1, 2, width_ratios=(1.5, 1))
    _draw_tensor(whole, params, division, start)
    _draw_tile(one, params, division, start)
    figure.suptitle(title_of(params), fontsize=10)
    return figure


def _draw_tensor(axes: Any, params: TiledParams, division: Division, start: tuple[int, ...]) -> None:
    """Draw every tile. If there is room, write the tile's index and its coordinates into the tile."""
    from matplotlib.patches import Rectangle

    (wide, high), dims, counts = plane(division.box_dim, 1), plane(params.global_dim, 1), plane(division.counts, 1)
    axes.add_patch(Rectangle((0, 0), *dims, facecolor="#cfe3f1", edgecolor="none"))
    labelled = counts[0] * counts[1] <= _MOST_LABELLED
    for i, j in product(range(counts[0]), range(counts[1])) if labelled else ():
        axes.add_patch(Rectangle((i * wide, j * high), wide, high, fill=False, edgecolor="#0072b2", linewidth=0.9))
        words = f"({i}, {j})  {{{i * wide}, {j * high}}}"
        axes.text((i + 0.5) * wide, (j + 0.5) * high, words, ha="center", va="center", fontsize=7.5, color="black")
    if not labelled:
        axes.set_xticks(range(0, counts[0] * wide + 1, wide), minor=True)
        axes.set_yticks(range(0, counts[1] * high + 1, high), minor=True)
        axes.grid(which="minor", color="#0072b2", linewidth=0.4)
    axes.add_patch(Rectangle(plane(start, 0), wide, high, fill=False, edgecolor=MARK_COLOR, linewidth=2.4))
    corners = plane(start, 0)
    margins = 0.01 * counts[0] * wide, 0.01 * counts[1] * high
    axes.set_xlim(min(0, corners[0]) - margins[0], max(counts[0] * wide, corners[0] + wide) + margins[0])
    axes.set_ylim(max(counts[1] * high, corners[1] + high) + margins[1], min(0, corners[1]) - margins[1])
    axes.set_xlabel("dimension 0 (innermost), elements; labels: tile, and {coordinates} of its load")
    axes.set_ylabel("dimension 1, elements" if params.rank > 1 else "")
    axes.set_title(f"{times(division.counts)} tiles: {division}", fontsize=9)


def _draw_tile(axes: Any, params: TiledParams, division: Division, start: tuple[int, ...]) -> None:
    """Draw one box. Fill the part of the box that is beyond the tensor."""
    from matplotlib.patches import Rectangle

    (wide, high), dims, (x, y) = plane(division.box_dim, 1), plane(params.global_dim, 1), plane(start, 0)
    axes.add_patch(Rectangle((0, 0), wide, high, facecolor="white", edgecolor="0.6", hatch="////", linewidth=0))
    left, right = max(0, -x), max(0, min(wide, dims[0] - x))
    top, bottom = max(0, -y), max(0, min(high, dims[1] - y))
    inside = max(0, right - left), max(0, bottom - top)
    axes.add_patch(Rectangle((left, top), *inside, facecolor="#cfe3f1", edgecolor="none"))
    axes.add_patch(Rectangle((0, 0), wide, high, fill=False, edgecolor=MARK_COLOR, linewidth=2.4))
    for at, words in (((0, 0), (x, y)), ((wide - 1, high - 1), (x + wide - 1, y + high - 1))):
        where: Any = {"ha": "left", "va": "top"} if at == (0, 0) else {"ha": "right", "va": "bottom"}
        place = (0.02 * wide, 0.03 * high) if at == (0, 0) else (0.98 * wide, 0.97 * high)
        box: Any = {"facecolor": "white", "edgecolor": "none", "pad": 2}
        axes.text(*place, f"{at} is {words}", fontsize=8, bbox=box, **where)
    axes.set_xlim(-0.02 * wide, 1.02 * wide)
    axes.set_ylim(1.02 * high, -0.02 * high)
    axes.set_xlabel("within the box: labels are coordinates; hatched: fill")
    tile = division.tile_at(start)
    name = "no tile" if tile is None else f"tile {tile}"
    axes.set_title(f"{name}, loaded at {{{', '.join(map(str, start))}}}", fontsize=9)
