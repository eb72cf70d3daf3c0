"""Tiles in shared memory, accumulators in tensor memory, and the registers that ``tcgen05.ld`` loads from them."""

from __future__ import annotations

import numpy as np

from .._data_type import GROUP_ELEMENTS
from .._errors import TensorMapError
from ..params import Params, TiledParams
from ..smem import box_extents, smem_index, swizzle_offset
from ..smem._layout import rows as rows_of
from ..smem._layout import unit_bytes
from ._element_layout import ElementLayout
from ._fragments import Grid, Places, sums

__all__ = [
    "accumulator",
    "loaded_16x32bx2",
    "loaded_16x64b",
    "loaded_16x128b",
    "loaded_16x256b",
    "loaded_32x32b",
    "tile",
]


def tile(params: Params, name: str = "") -> ElementLayout:
    """Return the places of the elements of a box in shared memory, in bytes from the start of the destination.

    Parameters
    ----------
    params : TiledParams
        A map without interleave, whose box has two dimensions of more than one element.
    name : str, optional

    Returns
    -------
    ElementLayout
        The layout, whose rows are the rows of the box, in tensor order.

    Raises
    ------
    TensorMapError
        If the box does not have this form.
    """
    extents = box_extents(params)
    flat = [n for n in extents[1:] if n > 1]
    if not isinstance(params, TiledParams) or params.interleave or len(flat) > 1:
        raise TensorMapError(
            f"the box delivers {extents}; pass a tiled map without interleave, whose box has one extent above 1 "
            "besides the innermost"
        )
    columns, count = extents[0], flat[0] if flat else 1
    bits, in_row = _in_row(params, columns)
    linear = np.arange(count)[:, None] * rows_of(params).pitch_bytes + in_row // 8
    bytes_ = np.asarray(swizzle_offset(params.swizzle, linear), np.int64)
    assert smem_index(params, int(bytes_[-1, -1])) is not None
    places = np.stack([bytes_, np.broadcast_to(in_row % 8, bytes_.shape)], axis=-1)[..., : 1 + (bits < 8)]
    return ElementLayout(name or f"tile {count} x {columns}", "shared memory", bits, places, "cuda_tma.smem")


def _in_row(params: TiledParams, columns: int) -> tuple[int, np.ndarray]:
    """Return the bits of an element, and the bit of each element in a row before swizzling."""
    column, group = np.arange(columns), rows_of(params).group
    if group is None:
        bits = 8 * unit_bytes(params)
        return bits, column * bits
    data_bytes, taken_bytes = group
    bits = 8 * data_bytes // GROUP_ELEMENTS
    return bits, column // GROUP_ELEMENTS * (8 * taken_bytes) + column % GROUP_ELEMENTS * bits


def accumulator(row: Grid, column: Grid, bits: int, rows: int) -> Places:
    """Return the places of ``tcgen05.mma`` with one CTA.

    128 rows use all lanes, and 64 rows use the first 16 of each 32 lanes.

    The source is PTX ISA 9.0, "Data Path Layout Organization", layouts D and F. The places are not verified on
    hardware.
    """
    return (row if rows == 128 else row // 16 * 32 + row % 16), column * bits // 32


def loaded_32x32b(row: Grid, column: Grid, bits: int) -> Places:
    """Return the places of ``tcgen05.ld.32x32b``, in which a thread has a lane of tensor memory (documented)."""
    return row, column


def loaded_16x32bx2(row: Grid, column: Grid, bits: int) -> Places:
    """Return the places of ``tcgen05.ld.16x32bx2``: threads 0 to 15 have the first half of the columns (documented)."""
    half = _columns_of(column, 2)
    lane = row // 32 * 32 + row % 16 + column // half * 16
    return lane, column % half + row // 16 % 2 * half


def loaded_16x64b(row: Grid, column: Grid, bits: int) -> Places:
    """Return the places of ``tcgen05.ld.16x64b``, in which the next register is 2 columns later (documented)."""
    lane = row // 32 * 32 + row % 8 * 4 + column % 2 * 2 + row // 8 % 2
    return lane, column // 2 + row // 16 % 2 * _columns_of(column, 2)


def loaded_16x256b(row: Grid, column: Grid, bits: int) -> Places:
    """Return the places of ``tcgen05.ld.16x256b``: every 16 lanes contain an accumulator of ``mma`` (documented)."""
    lane, value = sums(row % 16, column, bits)
    return row // 32 * 32 + lane, value + row // 16 % 2 * 4 * _columns_of(column, 8)


def loaded_16x128b(row: Grid, column: Grid, bits: int) -> Places:
    """Return the places of ``tcgen05.ld.16x128b`` (documented).

    The values are in this order: one element, then the row that is 8 rows below, then the next 4 columns.
    """
    lane, value = row % 8 * 4 + column % 4, row // 8 % 2 + column // 4 * 2
    return row // 32 * 32 + lane, value + row // 16 % 2 * 2 * _columns_of(column, 4)


def _columns_of(column: Grid, each: int) -> int:
    """Return the number of pieces that have `each` columns."""
    return int(column.max()) // each + 1
