"""Moving runs between global memory and NumPy, and rows between NumPy and shared memory."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..errors import TensorMapError
from ..params import Params
from ..swizzle import CHUNK_BYTES, group_bytes, pattern, rows, swizzle_offset
from ._faults import check_bytes, check_reachable
from ._traversal import Traversal

__all__ = ["Window", "delivered_mask", "from_smem", "to_smem"]


class Window:
    """The part of a byte array that a traversal visits, as one row for each run inside the tensor.

    Parameters
    ----------
    memory : numpy.ndarray
        1-D uint8.
    start : int
        Where ``global_address`` lies in `memory`.
    traversal : Traversal

    Raises
    ------
    TensorMapFault
        If the runs reach outside `memory`.
    """

    def __init__(self, memory: np.ndarray, start: int, traversal: Traversal):
        check_bytes("memory", memory, "the bytes of global memory")
        self.part = slice(traversal.first_byte, max(traversal.first_byte, traversal.last_byte))
        length = self.part.stop - self.part.start
        self.inside = traversal.inside if length else np.zeros_like(traversal.inside)
        if abs(start) >= 2**62:  # beyond what NumPy adds in 64 bits
            check_reachable(start, start + length, len(memory))
        self._starts = traversal.addresses[self.inside] + (start + self.part.start)
        if len(self._starts):
            check_reachable(int(self._starts.min()), int(self._starts.max()) + length, len(memory))
        self._runs = np.lib.stride_tricks.as_strided(
            memory, (max(0, len(memory) - length + 1), length), memory.strides * 2, writeable=memory.flags.writeable
        )

    def read(self) -> np.ndarray:
        """A copy of the visited bytes, one row for each run inside the tensor."""
        return self._runs[self._starts]

    def write(self, values: np.ndarray) -> None:
        """Overwrite the visited bytes; of runs that overlap, the later one stays."""
        self._runs[self._starts] = values

    def overlap(self) -> bool:
        """Whether two runs share bytes."""
        return bool((np.diff(np.sort(self._starts)) < self._runs.shape[1]).any())

    def alone(self, run: int) -> np.ndarray:
        """A view of one run, by its number among those inside the tensor."""
        return self._runs[self._starts[run]]


@lru_cache(maxsize=256)
def _chunk_order(swizzle: int, size: int) -> np.ndarray | None:
    """For each chunk of `size` bytes of swizzled memory, the chunk of linear memory that it holds."""
    if not pattern(swizzle).xors:
        return None
    chunk = _chunk_bytes(swizzle)
    return swizzle_offset(swizzle, np.arange(0, size, chunk)) // chunk


def _chunk_bytes(swizzle: int) -> int:
    return min(CHUNK_BYTES, pattern(swizzle).atom_bytes)


def _permuted(params: Params, image: np.ndarray) -> np.ndarray:
    """Swizzle an image, or undo it: the permutation is its own inverse."""
    order = _chunk_order(params.swizzle, image.size)
    if order is None:
        return image
    # One NumPy item a chunk makes this a take of items; complex128 is merely the item of 16 bytes.
    item = {8: np.uint64, 16: np.complex128}[_chunk_bytes(params.swizzle)]
    return image.view(item)[order].view(np.uint8)


def _data_of(params: Params, image: np.ndarray) -> np.ndarray:
    """The delivered bytes of a linear image of shape (rows, pitch), as a view: (rows, groups, bytes)."""
    taken = image[:, : rows(params).taken_bytes]
    group = group_bytes(params)
    if group is None:
        return taken[:, None, :]
    groups = rows(params).taken_bytes // group[1]
    return taken.reshape(len(image), groups, group[1])[:, :, : group[0]]


def to_smem(params: Params, data: np.ndarray, fill: int) -> np.ndarray:
    """The shared-memory image of `data`, whose size is any number of rows of the box; gaps hold `fill`."""
    layout = rows(params)
    data = data.reshape(-1, layout.data_bytes)
    if layout.data_bytes == layout.pitch_bytes:
        return _permuted(params, data.ravel())
    image = np.full((len(data), layout.pitch_bytes), fill, np.uint8)
    place = _data_of(params, image)
    place[...] = data.reshape(place.shape)
    return _permuted(params, image.ravel())


def from_smem(params: Params, smem: np.ndarray, count: int) -> np.ndarray:
    """The data of `count` rows, from their shared-memory image: the inverse of :func:`to_smem`."""
    size = count * rows(params).pitch_bytes
    check_bytes("smem", smem, "shared memory from the source address on")
    if smem.size < size:
        raise TensorMapError(f"smem has {smem.size} bytes; the box takes {size} bytes of shared memory: give them all")
    image = _permuted(params, np.ascontiguousarray(smem[:size])).reshape(count, -1)
    return _data_of(params, image).reshape(count, rows(params).data_bytes)


@lru_cache(maxsize=256)
def delivered_mask(params: Params, count: int) -> np.ndarray:
    """Which bytes of the image of `count` rows a load delivers; read-only, since it is shared between calls."""
    ones = np.ones(count * rows(params).data_bytes, np.uint8)
    mask = to_smem(params, ones, 0).view(bool)
    mask.flags.writeable = False
    return mask
