"""Parts that all pictures by matplotlib share: the figure, the start of a load, and the title of a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._errors import TensorMapError
from .._given import shown, tensor_coordinates
from ..emulate._legal import emulated_rows
from ..emulate._traversal import visit
from ..enums import TensorMapDataType as T
from ..enums import TensorMapInterleave, TensorMapSwizzle
from ..params import Params, TiledParams
from ..smem import box_extents

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MARK_COLOR", "load_start", "new_figure", "plane", "times", "title_of"]

MARK_COLOR = "#d55e00"  # The color is vermilion from the Okabe-Ito palette.


def new_figure(size: tuple[float, float], figure: Figure | None) -> Figure:
    """Return a new figure, or the figure that was passed."""
    try:
        from matplotlib.figure import Figure as NewFigure
        from matplotlib.figure import FigureBase
    except ImportError as error:
        raise ImportError(
            f"drawing needs matplotlib ({error}): pip install matplotlib, or install cuda-tma[plot]"
        ) from None
    if isinstance(figure, FigureBase):
        return figure
    if figure is not None:
        raise TensorMapError(f"figure is {shown(figure)}; pass a matplotlib figure to draw into, or None")
    return NewFigure(figsize=size, layout="constrained")


def load_start(params: Params, coordinates: Sequence[int], offsets: Sequence[int] = ()) -> tuple[int, ...]:
    """Return the coordinates as ints (default: zeros).

    Refuse an illegal map, and raise the fault of the load.
    """
    emulated_rows(params, check=True)
    coordinates = tensor_coordinates(params.rank, coordinates, default=(0,) * params.rank)
    visit(params, coordinates, offsets)
    return coordinates


def title_of(params: Params) -> str:
    """Return the title of a map, with its data type, box and swizzle."""
    swizzle = TensorMapSwizzle(params.swizzle).short_name
    interleave = TensorMapInterleave(params.interleave)
    layout = f", interleave {interleave.short_name}" if interleave else ""
    return f"{T(params.data_type).short_name} {_box_name(params)}, swizzle {swizzle}{layout}"


def _box_name(params: Params) -> str:
    """Return the text of the map's box. If a load delivers a different box, the text also contains that box."""
    extents = box_extents(params)
    if not isinstance(params, TiledParams):
        channels = "" if params.interleave else f"{extents[0]} channels x "
        return f"column of {channels}{extents[-1]} pixels"
    delivers = f", delivers {times(extents)}" if extents != params.box_dim else ""
    return f"box {times(params.box_dim)}{delivers}"


def times(extents: Sequence[int]) -> str:
    """Return the text of extents, such as ``64 x 8``."""
    return " x ".join(map(str, extents))


def plane(values: Sequence[int], missing: int) -> tuple[int, int]:
    """Return the values of dimensions 0 and 1, with `missing` for a dimension that does not exist."""
    return values[0], values[1] if len(values) > 1 else missing
