"""Functions that copy runs between global memory and NumPy, and rows between NumPy and shared memory."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .._errors import TensorMapError
from ..smem import pattern, swizzle_offset
from ..smem._layout import CHUNK_BYTES, Rows
from ._faults import check_bytes, check_reachable
from ._traversal import Traversal

__all__ = ["Window", "delivered_mask", "from_smem", "permuted", "to_smem"]


class Window:
    """The part of a byte array that a traversal visits, with one row for each run inside the tensor.

    Parameters
    ----------
    memory : numpy.ndarray
        The byte array, which is 1-D uint8.
    start : int
        The position of ``global_address`` in `memory`.
    traversal : Traversal

    Raises
    ------
    TensorMapFault
        If the runs extend outside `memory`.
    """

    def __init__(self, memory: np.ndarray, start: int, traversal: Traversal):
        check_bytes("memory", memory, "the bytes of global memory")
        self.part = slice(traversal.first_byte, max(traversal.first_byte, traversal.last_byte))
        length = self.part.stop - self.part.start
        self.inside = traversal.inside if length else np.zeros_like(traversal.inside)
        starts = traversal.addresses[self.inside]
        if len(starts):
            first = start + traversal.origin + self.part.start
            check_reachable(first + int(starts.min()), first + int(starts.max()) + length, len(memory))
            starts = starts.astype(np.int64, copy=False) + first
        self._starts = starts
        self._runs = np.lib.stride_tricks.as_strided(
            memory, (max(0, len(memory) - length + 1), length), memory.strides * 2, writeable=memory.flags.writeable
        )

    def read(self) -> np.ndarray:
        """Return a copy of the visited bytes, with one row for each run inside the tensor."""
        return self._runs[self._starts]

    def write(self, values: np.ndarray) -> None:
        """Overwrite the visited bytes. Where runs overlap, the later run determines the bytes."""
        self._runs[self._starts] = values

    def overlap(self) -> bool:
        """Return whether two runs share bytes."""
        return bool((np.diff(np.sort(self._starts)) < self._runs.shape[1]).any())

    def alone(self, run: int) -> np.ndarray:
        """Return a view of one run, whose number counts the runs inside the tensor."""
        return self._runs[self._starts[run]]


@lru_cache(maxsize=64)
def _chunk_order(swizzle: int, size: int) -> np.ndarray | None:
    """Return, for each chunk of `size` bytes in swizzled memory, the chunk of linear memory with the same content."""
    if not pattern(swizzle).xors:
        return None
    chunk = _chunk_bytes(swizzle)
    return swizzle_offset(swizzle, np.arange(0, size, chunk)) // chunk


def _chunk_bytes(swizzle: int) -> int:
    return min(CHUNK_BYTES, pattern(swizzle).atom_bytes)


def permuted(swizzle: int, image: np.ndarray) -> np.ndarray:
    """Return a swizzled image, or undo a swizzle. The permutation is its own inverse."""
    order = _chunk_order(swizzle, image.size)
    if order is None:
        return image
    # NumPy permutes chunks as items of an array. An item of 16 bytes has the type complex128.
    item = {8: np.uint64, 16: np.complex128}[_chunk_bytes(swizzle)]
    return image.view(item)[order].view(np.uint8)


def _data_of(layout: Rows, image: np.ndarray) -> np.ndarray:
    """Return the delivered bytes of a linear image as a view.

    The shape of the image is (rows, pitch), and the shape of the view is (rows, groups, bytes).
    """
    taken = image[:, : layout.taken_bytes]
    if layout.group is None:
        return taken[:, None, :]
    data_bytes, group_bytes = layout.group
    return taken.reshape(len(image), layout.taken_bytes // group_bytes, group_bytes)[:, :, :data_bytes]


def to_smem(layout: Rows, data: np.ndarray, fill: int) -> np.ndarray:
    """Return the shared-memory image of `data`, which contains rows of the box in any number. Gaps contain `fill`."""
    data = data.reshape(-1, layout.data_bytes)
    if layout.data_bytes == layout.pitch_bytes:
        return permuted(layout.swizzle, data.ravel())
    image = np.full((len(data), layout.pitch_bytes), fill, np.uint8)
    place = _data_of(layout, image)
    place[...] = data.reshape(place.shape)
    return permuted(layout.swizzle, image.ravel())


def from_smem(layout: Rows, smem: np.ndarray, count: int) -> np.ndarray:
    """Return the data of `count` rows from their shared-memory image.

    The function is the inverse of :func:`to_smem`.
    """
    size = count * layout.pitch_bytes
    check_bytes("smem", smem, "shared memory from the source address on")
    if smem.size < size:
        raise TensorMapError(
            f"smem has {smem.size} bytes, but the box takes {size} bytes of shared memory; pass all of them"
        )
    image = permuted(layout.swizzle, np.ascontiguousarray(smem[:size])).reshape(count, -1)
    return _data_of(layout, image).reshape(count, layout.data_bytes)


@lru_cache(maxsize=64)
def delivered_mask(layout: Rows, count: int) -> np.ndarray:
    """Return which bytes in the image of `count` rows a load delivers.

    The result is read-only, because several calls share it.
    """
    ones = np.ones(count * layout.data_bytes, np.uint8)
    mask = to_smem(layout, ones, 0).view(bool)
    mask.flags.writeable = False
    return mask
