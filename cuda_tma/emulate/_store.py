"""Stores from shared to global memory by ``cp.async.bulk.tensor``, in the modes tile, im2col_no_offs and scatter4."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from .._data_type import ELEMENTS
from .._errors import TensorMapError
from .._given import integer
from .._params_checks import check_params
from .._swizzle_pattern import PATTERNS
from ..enums import TensorMapDataType as T
from ..enums import TensorMapSwizzle as S
from ..params import Params, TiledParams
from ..smem._layout import CHUNK_BYTES, Rows
from ._faults import check_bytes, check_not_negative, check_pixel_box_inside
from ._legal import emulated_rows
from ._memory import Window, from_smem
from ._traversal import Traversal, check_is_row, visit, visit_rows

__all__ = ["change", "scatter4", "store", "stored_rows", "visit_stored"]


def store(
    params: Params,
    memory: np.ndarray,
    smem: np.ndarray,
    coordinates: Sequence[int],
    base_address: int = 0,
    *,
    check: bool = True,
) -> int:
    """Emulate one TMA store, which changes `memory` in place.

    Parameters
    ----------
    params : TiledParams or Im2colParams
        The tensor map of the store.
    memory : numpy.ndarray
        Global memory as a 1-D uint8 array, which starts at `base_address`. If the array ends within a chunk of 16 bytes
        that the store writes, the rest of the chunk is dropped.
    smem : numpy.ndarray
        Shared memory from the source address on, as a 1-D uint8 array of at least :func:`cuda_tma.smem.smem_bytes`.
    coordinates : sequence of int
        The coordinates, as in :func:`cuda_tma.emulate.load`, but not negative.
    base_address : int, optional
        The address of ``memory[0]``, on the scale of ``params.global_address``.
    check : bool, optional
        Whether to refuse an illegal map, as in :func:`cuda_tma.emulate.load`.

    Returns
    -------
    int
        The number of written bytes.

    Raises
    ------
    TensorMapError
        If the map is only for loads (data type 16U4_ALIGN16B, swizzle 128B_ATOM_32B_FLIP_8B), or if `memory` is
        read-only. Otherwise as in :func:`cuda_tma.emulate.load`.
    TensorMapFault
        As in :func:`cuda_tma.emulate.load`. Also for a negative coordinate, and for a pixel box that extends outside
        the tensor.

    Notes
    -----
    A store does not write elements outside the tensor, with one exception. Without interleave, the hardware cuts a row
    at a multiple of 16 bytes. If ``global_dim[0]`` elements are not such a multiple, **the store overwrites the bytes
    after the row's end with the bytes that follow in shared memory**. The overwritten bytes are padding, the rest of a
    larger tensor, or memory after the tensor. A store does not change bytes, also of TFLOAT32 (all observed: driver
    580, sm_90). Where runs overlap (a stride of 0), the later run determines the bytes in this function, but hardware
    guarantees no order.

    Examples
    --------
    >>> params = TiledParams(data_type=T.UINT8, global_address=0, global_dim=(10, 2), global_strides=(32,),
    ...                      box_dim=(32, 2), element_strides=(1, 1))
    >>> memory = np.zeros(64, np.uint8)
    >>> store(params, memory, np.full(64, 7, np.uint8), coordinates=(0, 1))  # row 1 ends at byte 42
    16
    >>> np.flatnonzero(memory)[[0, -1]].tolist()
    [32, 47]
    """
    layout = stored_rows(params, check)
    return change(params, layout, memory, smem, visit_stored(params, coordinates), base_address, Window.write)


def scatter4(
    params: TiledParams,
    memory: np.ndarray,
    smem: np.ndarray,
    coordinates: Sequence[int],
    base_address: int = 0,
    *,
    check: bool = True,
) -> int:
    """Emulate a ``tile::scatter4`` store of four rows (compute capability 10; not verified on hardware).

    The parameters are those of :func:`store`. The coordinates are (column, row, row, row, row), and the box has one
    row.
    """
    check_is_row(params)
    layout = stored_rows(params, check)
    traversal = _in_whole_chunks(visit_rows(params, coordinates))
    return change(params, layout, memory, smem, traversal, base_address, Window.write)


def stored_rows(params: Params, check: bool) -> Rows:
    """Return the box in shared memory.

    Refuse a map that :func:`emulated_rows` refuses, or that is only for loads.
    """
    check_params(params)
    _check_storable(params)
    return emulated_rows(params, check)


def visit_stored(params: Params, coordinates: Sequence[int]) -> Traversal:
    """Return the traversal of a store or reduction. Raise a fault in the cases that are legal only for a load."""
    traversal = visit(params, coordinates)
    check_not_negative(coordinates)
    check_pixel_box_inside(params)
    return _in_whole_chunks(traversal)


def change(
    params: Params,
    layout: Rows,
    memory: np.ndarray,
    smem: np.ndarray,
    traversal: Traversal,
    base_address: int,
    write: Callable[[Window, np.ndarray], None],
) -> int:
    """Call `write` to transfer the box to global memory, with a row for each run. Return the size of the box."""
    check_bytes("memory", memory, "the bytes of global memory")
    if not memory.flags.writeable:
        raise TensorMapError("memory is a read-only array, but a store changes it in place; pass a writeable copy")
    count = len(traversal.addresses) * traversal.run_bytes // layout.data_bytes
    runs = from_smem(layout, smem, count).reshape(-1, traversal.run_bytes)
    start = params.global_address - integer("base_address", base_address)
    with _with_whole_chunk(memory, start + _end(traversal)) as extended:
        window = Window(extended, start, traversal)
        values = runs[window.inside, window.part]
        write(window, values)
    return values.size


def _in_whole_chunks(traversal: Traversal) -> Traversal:
    last = -(-traversal.last_byte // CHUNK_BYTES) * CHUNK_BYTES
    return replace(traversal, last_byte=min(last, traversal.run_bytes))


def _end(traversal: Traversal) -> int:
    """Return the end of the last run inside the tensor, in bytes from ``global_address``."""
    visited = traversal.addresses[traversal.inside]
    return traversal.origin + int(visited.max()) + traversal.last_byte if len(visited) else 0


@contextmanager
def _with_whole_chunk(memory: np.ndarray, end: int) -> Iterator[np.ndarray]:
    """Yield `memory`, or a copy of it if `memory` ends inside the chunk before `end`.

    The copy contains the whole chunk, and is copied back later.
    """
    missing = end - len(memory)
    if not 0 < missing < CHUNK_BYTES:
        yield memory
        return
    extended = np.pad(memory, (0, missing))
    yield extended
    memory[:] = extended[: len(memory)]


_LOADED_TYPES = [data_type for data_type, element in ELEMENTS.items() if not element.can_store]
_LOADED_SWIZZLES = [swizzle for swizzle, pattern in PATTERNS.items() if not pattern.can_store]


def _check_storable(params: Params) -> None:
    """Refuse a map that is only for loads.

    The rule is in PTX ISA 9.0, "Restriction on Tensor Copy instructions", and in cuda.h of CUDA 13.5,
    cuTensorMapEncodeTiled.
    """
    if params.data_type in _LOADED_TYPES:
        raise TensorMapError(
            f"data_type={T(params.data_type).short_name} can only be loaded, not stored; store through a tensor map of "
            "16U4_ALIGN8B or UINT8"
        )
    if params.swizzle in _LOADED_SWIZZLES:
        name = S(params.swizzle).short_name
        raise TensorMapError(f"swizzle={name} can only be loaded, not stored; store with 128B_ATOM_32B or 128B")
