"""Global memory: the arrays that a kernel may reach, each in its place, at addresses that no two share.

An array is mapped whole and in place: what a kernel writes is in the array at once. A view lies inside the array that
owns its memory, so that two views of one array overlap here as they do there.
"""

from __future__ import annotations

import bisect
import ctypes
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ._spaces import GLOBAL_START

__all__ = ["Buffer", "GlobalMemory", "Segment"]

_ALIGNMENT = 512  # as cuMemAlloc's
_GUARD_BYTES = 1 << 16  # between two arrays: an address that runs over an end meets nothing


class Buffer:
    """Bytes, and typed looks at them."""

    __slots__ = ("_views", "bytes")

    def __init__(self, data: np.ndarray):
        self.bytes = data
        self._views: dict[np.dtype, np.ndarray] = {}

    def typed(self, dtype: np.dtype) -> np.ndarray:
        """All bytes as items of a type; what is left at the end belongs to none."""
        view = self._views.get(dtype)
        if view is None:
            whole = len(self.bytes) // dtype.itemsize * dtype.itemsize
            view = self._views[dtype] = self.bytes[:whole].view(dtype)
        return view


class Segment(Buffer):
    """A piece of the address space that has memory.

    Parameters
    ----------
    start : int
        Its simulated address.
    data : numpy.ndarray of uint8
    name : str
        What a finding calls it.
    writeable : bool
    """

    __slots__ = ("name", "start", "writeable")

    def __init__(self, start: int, data: np.ndarray, name: str, writeable: bool = True):
        super().__init__(data)
        self.start, self.name, self.writeable = start, name, writeable

    @property
    def stop(self) -> int:
        return self.start + len(self.bytes)


class GlobalMemory:
    """The segments, by address."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._segments: list[Segment] = []
        self._by_host: dict[int, Segment] = {}  # by where the owner's memory begins on this machine
        self._kept: dict[int, object] = {}  # owners that cannot be watched
        self._next = GLOBAL_START

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def find(self, address: int) -> Segment | None:
        """The segment that an address lies in."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._segments[at].stop:
            return None
        return self._segments[at]

    def before(self, address: int) -> Segment | None:
        """The last segment that begins at an address or before it."""
        at = bisect.bisect_right(self._starts, address) - 1
        return self._segments[at] if at >= 0 else None

    def add(self, segment: Segment) -> None:
        """Put a segment where it says."""
        at = bisect.bisect_right(self._starts, segment.start)
        self._starts.insert(at, segment.start)
        self._segments.insert(at, segment)

    def remove(self, segment: Segment) -> None:
        """Take a segment away; nothing is ever put where it was."""
        at = self._segments.index(segment)
        del self._starts[at], self._segments[at]

    @contextmanager
    def holding(self, *segments: Segment) -> Iterator[None]:
        """Some segments for a while."""
        for segment in segments:
            self.add(segment)
        try:
            yield
        finally:
            for segment in segments:
                self.remove(segment)

    def allocate(self, data: np.ndarray, name: str, writeable: bool = True) -> Segment:
        """A segment at the next free address."""
        segment = Segment(self._next, data, name, writeable)
        self._next = -(-(segment.stop + _GUARD_BYTES) // _ALIGNMENT) * _ALIGNMENT
        self.add(segment)
        return segment

    def address(self, array: object) -> int:
        """The simulated address of an array's first element, mapped if it was not.

        Raises
        ------
        TypeError
            If it is no array on this machine.
        ValueError
            If its memory overlaps what is mapped already, and is not inside it.
        """
        first, owner, begin, size = _host(array)
        host, segment = self._mapped(begin, size) or (begin, self._map(owner, begin, size))
        return segment.start + first - host

    def _mapped(self, begin: int, size: int) -> tuple[int, Segment] | None:
        for host, segment in self._by_host.items():
            if begin < host + len(segment.bytes) and host < begin + size:
                if host <= begin and begin + size <= host + len(segment.bytes):
                    return host, segment
                raise ValueError(
                    f"the array's memory (0x{begin:x}, {size} bytes) overlaps an array that is mapped, and reaches "
                    "beyond it: give the larger one to Device.address first"
                )
        return None

    def _map(self, owner: object, begin: int, size: int) -> Segment:
        data = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(begin))
        writeable = owner.flags.writeable if isinstance(owner, np.ndarray) else True
        segment = self.allocate(data, _described(owner), writeable)
        self._by_host[begin] = segment
        if isinstance(owner, np.ndarray):  # the segment goes with the array
            weakref.finalize(owner, self._forget, begin)
        else:
            self._kept[begin] = owner
        return segment

    def _forget(self, begin: int) -> None:
        self.remove(self._by_host.pop(begin))


def _host(array: Any) -> tuple[int, object, int, int]:
    """Where an array begins on this machine; whose memory it is, where that begins and its bytes."""
    if isinstance(array, np.ndarray):
        if array.dtype.hasobject:
            raise TypeError(f"the array's elements ({array.dtype}) are Python objects; pass numbers")
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        low, high = _byte_bounds(owner)
        return array.ctypes.data, owner, low, max(1, high - low)
    if hasattr(array, "untyped_storage"):  # torch
        if array.device.type != "cpu":
            raise TypeError(f"the simulator reaches this machine's memory alone, not {array.device}; pass array.cpu()")
        storage = array.untyped_storage()
        return array.data_ptr(), storage, storage.data_ptr(), max(1, storage.nbytes())
    try:
        return _host(np.from_dlpack(array))
    except (TypeError, AttributeError, BufferError, RuntimeError) as error:
        raise TypeError(
            f"{type(array).__name__} is no NumPy array or CPU tensor; pass one, or an int for an address"
        ) from error


def _byte_bounds(array: np.ndarray) -> tuple[int, int]:
    """Where an array's first and last byte lie, and one more."""
    reach = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True) if extent]
    low = array.ctypes.data + sum(min(0, each) for each in reach)
    return low, low + (sum(abs(each) for each in reach) + array.itemsize if array.size else 0)


def _described(owner: Any) -> str:
    if isinstance(owner, np.ndarray):
        return f"the array of shape {owner.shape}, {owner.dtype}"
    return f"the {type(owner).__name__} of {owner.nbytes()} bytes"
