"""Shared memory to global memory: ``cp.async.bulk.tensor`` in tile, im2col_no_offs and scatter4 modes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..enums import TensorMapDataType as T
from ..enums import TensorMapSwizzle as S
from ..errors import TensorMapError
from ..params import Params, TiledParams
from ..swizzle import rows
from ._faults import check_count
from ._memory import Window, from_smem
from ._traversal import Traversal, visit, visit_rows

__all__ = ["scatter4", "source", "store"]


def store(
    params: Params, memory: np.ndarray, smem: np.ndarray, coordinates: Sequence[int], base_address: int = 0
) -> int:
    """Emulate one TMA store: change `memory` in place (as documented, not verified on hardware).

    Elements outside the tensor are not written. Bytes pass unchanged, TFLOAT32 included; where runs overlap (a stride
    of 0), the later one stays here, while hardware gives no order.

    Parameters
    ----------
    params : TiledParams or Im2colParams
        The tensor map, accepted by :func:`cuda_tma.check`.
    memory : numpy.ndarray
        Global memory: 1-D uint8, starting at `base_address`.
    smem : numpy.ndarray
        Shared memory from the source address on: 1-D uint8, at least :func:`cuda_tma.swizzle.smem_bytes` long.
    coordinates : sequence of int
        As in :func:`cuda_tma.emulate.load`. PTX ISA asks for non-negative ones; negative ones are clipped here.
    base_address : int, optional
        The address of ``memory[0]``, on the scale of ``params.global_address``.

    Returns
    -------
    int
        Bytes written.

    Raises
    ------
    TensorMapError
        For what can only be loaded: data type 16U4_ALIGN16B, swizzle 128B_ATOM_32B_FLIP_8B.
    TensorMapFault
        As in :func:`cuda_tma.emulate.load`.

    Examples
    --------
    >>> params = TiledParams(data_type=T.UINT8, global_address=0, global_dim=(16, 2), global_strides=(16,),
    ...                      box_dim=(16, 2), element_strides=(1, 1))
    >>> memory = np.zeros(32, np.uint8)
    >>> store(params, memory, np.full(32, 7, np.uint8), coordinates=(0, 1))
    16
    >>> memory.tolist()[::16]
    [0, 7]
    """
    return _write(params, memory, smem, visit(params, coordinates), base_address)


def scatter4(
    params: TiledParams, memory: np.ndarray, smem: np.ndarray, coordinates: Sequence[int], base_address: int = 0
) -> int:
    """Emulate a ``tile::scatter4`` store of four rows (compute capability 10; not verified on hardware).

    Parameters are those of :func:`store`, with the coordinates (column, row, row, row, row) and a box of one row.
    """
    check_count("coordinates", coordinates, 5, "(column, row, row, row, row)")
    return _write(params, memory, smem, visit_rows(params, coordinates[0], coordinates[1:]), base_address)


def _write(params: Params, memory: np.ndarray, smem: np.ndarray, traversal: Traversal, base_address: int) -> int:
    window, values = source(params, memory, smem, traversal, base_address)
    window.write(values)
    return values.size


def source(
    params: Params, memory: np.ndarray, smem: np.ndarray, traversal: Traversal, base_address: int
) -> tuple[Window, np.ndarray]:
    """Where in global memory a store or reduction goes, and the bytes that it brings there, run by run."""
    _check_storable(params)
    window = Window(memory, params.global_address - base_address, traversal)
    if not memory.flags.writeable:
        raise TensorMapError("memory is a read-only array; a store changes it in place: pass a writeable copy")
    count = len(traversal.addresses) * traversal.run_bytes // rows(params).data_bytes
    runs = from_smem(params, smem, count).reshape(-1, traversal.run_bytes)
    return window, runs[window.inside, window.part]


def _check_storable(params: Params) -> None:
    """Source: PTX ISA 9.0, "Restriction on Tensor Copy instructions"; cuda.h, CUDA 13.5, cuTensorMapEncodeTiled."""
    if params.data_type == T.PACKED_16U4_ALIGN16B:
        raise TensorMapError(
            "data_type=16U4_ALIGN16B can only be loaded; store through a tensor map of 16U4_ALIGN8B or UINT8"
        )
    if params.swizzle == S.SWIZZLE_128B_ATOM_32B_FLIP_8B:
        raise TensorMapError("swizzle=128B_ATOM_32B_FLIP_8B can only be loaded; store with 128B_ATOM_32B, or 128B")
