"""Global memory, which consists of segments at addresses that do not overlap."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import NamedTuple

import numpy as np

from .._warps.spaces import GLOBAL_START

__all__ = ["Buffer", "Former", "GlobalMemory", "Segment"]

_ALIGNMENT = 512  # As with cuMemAlloc, the address of each array is a multiple of 512 bytes.
# A gap of 64 KB separates two arrays, so that an address beyond the end of an array is invalid.
_GUARD_BYTES = 1 << 16
_MOST_FORMER = 4096  # A finding can name one of the last 4096 removed segments.


class Buffer:
    """A range of bytes, with views of the bytes as other types."""

    __slots__ = ("_views", "bytes")
    start = 0  # Positions in a buffer count from 0.

    def __init__(self, data: np.ndarray):
        self.bytes = data
        self._views: dict[np.dtype, np.ndarray] = {}

    def typed(self, dtype: np.dtype) -> np.ndarray:
        """Return a view of all bytes as items of a type, without bytes at the end that do not fill an item."""
        view = self._views.get(dtype)
        if view is None:
            whole = len(self.bytes) // dtype.itemsize * dtype.itemsize
            view = self._views[dtype] = self.bytes[:whole].view(dtype)
        return view


class Segment(Buffer):
    """A range of global addresses that has memory.

    Parameters
    ----------
    start : int
        The simulated address of the first byte.
    data : numpy.ndarray of uint8
    name : str
        The name of the segment in findings.
    writeable : bool
    """

    __slots__ = ("name", "start", "writeable")

    def __init__(self, start: int, data: np.ndarray, name: str, writeable: bool = True):
        super().__init__(data)
        self.start, self.name, self.writeable = start, name, writeable

    @property
    def stop(self) -> int:
        return self.start + len(self.bytes)


class Former(NamedTuple):
    """A segment that is no longer in global memory.

    Attributes
    ----------
    start, stop : int
    name : str
    end : str
        A sentence for findings, with the reason for the removal and the remedy.
    """

    start: int
    stop: int
    name: str
    end: str


class GlobalMemory:
    """The segments of global memory, ordered by address.

    A change replaces the whole list of segments, so that a concurrent search by another thread uses a consistent list.
    """

    def __init__(self) -> None:
        # The first list contains the start addresses of the segments in the second list.
        self._table: tuple[list[int], list[Segment]] = [], []
        self._former: deque[Former] = deque(maxlen=_MOST_FORMER)
        self._next = GLOBAL_START
        self._lock = RLock()
        # The dictionary contains the initial bytes of each segment that the running launch has used, by start address.
        self._initial: dict[int, bytes] | None = None

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._table[1])

    @property
    def next_address(self) -> int:
        """The lowest address that a new segment may use."""
        return self._next

    @property
    def formers(self) -> tuple[Former, ...]:
        """The removed segments that a finding can still name."""
        with self._lock:
            return tuple(self._former)

    def restore(self, segments: Iterable[Segment], formers: Iterable[Former], next_address: int) -> None:
        """Add the segments of another memory at the same addresses."""
        with self._lock:
            found = sorted([*self._table[1], *segments], key=lambda each: each.start)
            self._table = [each.start for each in found], found
            self._former.extend(formers)
            self._next = next_address

    def find(self, address: int) -> Segment | None:
        """Return the segment that contains an address."""
        starts, segments = self._table
        at = bisect_right(starts, address) - 1
        if at < 0:
            return None
        found = segments[at]
        if address >= found.start + len(found.bytes):
            return None
        if self._initial is not None and found.writeable and found.start not in self._initial:
            self._initial[found.start] = found.bytes.tobytes()
        return found

    @contextmanager
    def keeping_initial_bytes(self) -> Iterator[dict[int, bytes]]:
        """Yield a dictionary that receives the initial bytes of each writeable segment at the segment's first use.

        The keys are the start addresses of the segments.
        """
        initial: dict[int, bytes] = {}
        self._initial = initial
        try:
            yield initial
        finally:
            self._initial = None

    def before(self, address: int) -> Segment | None:
        """Return the last segment that begins at an address or at a lower address."""
        starts, segments = self._table
        at = bisect_right(starts, address) - 1
        return segments[at] if at >= 0 else None

    def former(self, address: int) -> Former | None:
        """Return the removed segment that contained an address; None if there is no such segment."""
        with self._lock:
            return next((each for each in reversed(self._former) if each.start <= address < each.stop), None)

    def add(self, segment: Segment) -> None:
        """Add a segment at the start address of the segment."""
        with self._lock:
            starts, segments = self._table
            at = bisect_right(starts, segment.start)
            self._table = (
                [*starts[:at], segment.start, *starts[at:]],
                [*segments[:at], segment, *segments[at:]],
            )

    def remove(self, segment: Segment, end: str = "") -> None:
        """Remove a segment, whose addresses are never used again.

        `end` is the sentence about the end of the segment that a :class:`Former` contains.
        """
        with self._lock:
            rest = [each for each in self._table[1] if each is not segment]
            self._table = [each.start for each in rest], rest
            if end:
                self._former.append(Former(segment.start, segment.stop, segment.name, end))

    @contextmanager
    def holding(self, *segments: Segment) -> Iterator[None]:
        """Keep some segments in global memory during a ``with`` block."""
        for segment in segments:
            self.add(segment)
        try:
            yield
        finally:
            for segment in segments:
                self.remove(segment)

    def allocate(self, data: np.ndarray, name: str, writeable: bool = True) -> Segment:
        """Return a new segment at the next free address."""
        segment = Segment(0, data, name, writeable)
        self.place(segment)
        return segment

    def place(self, segment: Segment, room_bytes: int = 0) -> None:
        """Add a segment at the next free address, with free addresses before and after it."""
        with self._lock:
            segment.start = self._next + room_bytes
            self._next = -(-(segment.stop + room_bytes + _GUARD_BYTES) // _ALIGNMENT) * _ALIGNMENT
            self.add(segment)
