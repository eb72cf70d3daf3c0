"""Loads from global memory to shared memory by ``cp.async.bulk.tensor``, in the modes tile, im2col and gather4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._given import integer
from ..enums import TensorMapDataType as T
from ..enums import TensorMapOOBFill
from ..params import Params, TiledParams
from ..smem._layout import Rows, check_fits
from ._faults import byte
from ._legal import emulated_rows
from ._memory import Window, delivered_mask, to_smem
from ._traversal import Traversal, check_is_row, visit, visit_rows

__all__ = ["Tile", "gather4", "load"]


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """The result of a load in shared memory.

    Attributes
    ----------
    smem : numpy.ndarray of uint8
        The bytes of shared memory from the destination on, :func:`cuda_tma.smem.smem_bytes` in number.
    written : numpy.ndarray of bool
        Whether the load delivered each byte (read-only).
    tx_bytes : int
        The number of delivered bytes, which the mbarrier receives.
    params : TiledParams, Im2colParams or Im2colWideParams, optional
        The tensor map of the load.
    """

    smem: np.ndarray
    written: np.ndarray
    tx_bytes: int
    params: Params | None = None


def load(
    params: Params,
    memory: np.ndarray,
    coordinates: Sequence[int],
    offsets: Sequence[int] = (),
    base_address: int = 0,
    *,
    fill: int = 0,
    check: bool = True,
) -> Tile:
    """Emulate one TMA load from global memory to shared memory.

    Parameters
    ----------
    params : TiledParams, Im2colParams or Im2colWideParams
        The tensor map of the load. Results that depend only on the map are kept for the next call, and for maps that
        differ only in the address.
    memory : numpy.ndarray
        Global memory as a 1-D uint8 array, which starts at `base_address`.
    coordinates : sequence of int
        One coordinate for each dimension, innermost first, as in the PTX instruction. Coordinates may be negative or
        out of bounds. With interleave, they are the first ones of (W, H, D, slice of channels, N) up to the rank, where
        W and H count whole slices.
    offsets : sequence of int, optional
        The im2col offsets, W first (default: 0), or (wHalo, wOffset) for im2col wide. None for a tiled load.
    base_address : int, optional
        The address of ``memory[0]``, on the scale of ``params.global_address``.
    fill : int, optional
        The previous content (0 to 255) of the bytes in shared memory that the load does not deliver.
    check : bool, optional
        Whether to refuse a map in which :func:`cuda_tma.check` finds an error for compute capability 10.0 (which
        accepts all maps that 9.0 accepts). Without the check, the load follows the numbers in the map, although no
        driver makes such a map.

    Returns
    -------
    Tile

    Raises
    ------
    TensorMapFault
        If the access would end the context on hardware. The reason is an innermost coordinate that is not on 16 bytes,
        an im2col start outside the pixel box, or bytes outside `memory`.
    TensorMapError
        If the arguments do not fit the tensor map, if the driver always refuses the map, or if its box exceeds shared
        memory.

    Notes
    -----
    Elements out of bounds are zeros, or the 16-bit pattern 0x7FF7 for every floating-point type, without a conversion.
    TFLOAT32 rounds to nearest even with a mantissa of 10 bits, and every NaN becomes 0x7FFFE000. The FTZ types flush no
    values in a load. (All facts were observed: driver 580, sm_90.)

    Examples
    --------
    >>> params = TiledParams(data_type=T.UINT8, global_address=4096, global_dim=(16, 4), global_strides=(16,),
    ...                      box_dim=(16, 2), element_strides=(1, 2))
    >>> tile = load(params, np.arange(64, dtype=np.uint8), coordinates=(0, 1), base_address=4096)
    >>> tile.smem.tolist()[::16], tile.tx_bytes
    ([16], 16)
    """
    layout, fill = emulated_rows(params, check), byte("fill", fill)
    return _deliver(params, layout, memory, visit(params, coordinates, offsets), base_address, fill)


def gather4(
    params: TiledParams,
    memory: np.ndarray,
    coordinates: Sequence[int],
    base_address: int = 0,
    *,
    fill: int = 0,
    check: bool = True,
) -> Tile:
    """Emulate a ``tile::gather4`` load of four rows of a matrix (compute capability 10; not verified on hardware).

    Parameters
    ----------
    params : TiledParams
        A map of rank 2, with ``box_dim=(columns, 1)``.
    memory, base_address, fill, check
        The arguments of :func:`load`.
    coordinates : sequence of int
        The coordinates (column, row, row, row, row). Rows outside the tensor are filled.

    Examples
    --------
    >>> params = TiledParams(data_type=T.UINT8, global_address=0, global_dim=(16, 4), global_strides=(16,),
    ...                      box_dim=(16, 1), element_strides=(1, 1))
    >>> gather4(params, np.arange(64, dtype=np.uint8), (0, 3, 1, 4, 0)).smem.tolist()[::16]
    [48, 16, 0, 0]
    """
    check_is_row(params)
    layout, fill = emulated_rows(params, check), byte("fill", fill)
    return _deliver(params, layout, memory, visit_rows(params, coordinates), base_address, fill)


def _deliver(
    params: Params, layout: Rows, memory: np.ndarray, traversal: Traversal, base_address: int, fill: int
) -> Tile:
    shape = (len(traversal.addresses), traversal.run_bytes)
    count = shape[0] * shape[1] // layout.data_bytes
    # A halo or several rows may take more bytes than a box, so the size is checked again.
    check_fits(count * layout.pitch_bytes)
    window = Window(memory, params.global_address - integer("base_address", base_address), traversal)
    part = _converted(params, window.read())
    if part.shape == shape:
        data = part
    else:
        data = _out_of_bounds(params, shape)
        data[window.inside, window.part] = part
    return Tile(to_smem(layout, data, fill), delivered_mask(layout, count), data.size, params)


# The fill value for elements out of bounds was observed for every floating-point type (driver 580, sm_90).
_NAN_FILL = 0x7FF7


def _out_of_bounds(params: Params, shape: tuple[int, int]) -> np.ndarray:
    if params.oob_fill == TensorMapOOBFill.NAN:
        return np.full((shape[0], -(-shape[1] // 2)), _NAN_FILL, "<u2").view(np.uint8)[:, : shape[1]]
    return np.zeros(shape, np.uint8)


def _converted(params: Params, data: np.ndarray) -> np.ndarray:
    if params.data_type in (T.TFLOAT32, T.TFLOAT32_FTZ) and data.size:
        return _tfloat32(data.view("<u4")).view(np.uint8)
    return data


_TF32_DROPPED_BITS = 13
_TF32_NAN = 0x7FFFE000


def _tfloat32(bits: np.ndarray) -> np.ndarray:
    """Round float32 bit patterns to a mantissa of 10 bits, ties to even (observed: driver 580, sm_90)."""
    half = (1 << (_TF32_DROPPED_BITS - 1)) - 1
    odd = (bits >> _TF32_DROPPED_BITS) & 1
    rounded = (bits + (half + odd)) & np.uint32(0xFFFFFFFF ^ ((1 << _TF32_DROPPED_BITS) - 1))
    return np.where((bits & 0x7FFFFFFF) > 0x7F800000, np.uint32(_TF32_NAN), rounded).astype(np.uint32)
