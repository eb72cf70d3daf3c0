"""Global memory: the segments that a kernel may reach, each in its place, at addresses that no two share."""

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

_ALIGNMENT = 512  # as cuMemAlloc's
_GUARD_BYTES = 1 << 16  # between two arrays: an address that runs over an end meets nothing
_MOST_FORMER = 4096  # former segments that a finding can still name


class Buffer:
    """Bytes, and typed looks at them."""

    __slots__ = ("_views", "bytes")
    start = 0  # the number of its first byte

    def __init__(self, data: np.ndarray):
        self.bytes = data
        self._views: dict[np.dtype, np.ndarray] = {}

    def typed(self, dtype: np.dtype) -> np.ndarray:
        """Return all bytes as items of a type, without a rest at the end."""
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


class Former(NamedTuple):
    """A segment that is gone.

    Attributes
    ----------
    start, stop : int
    name : str
    end : str
        The sentence that a finding adds: why it is gone, and the remedy.
    """

    start: int
    stop: int
    name: str
    end: str


class GlobalMemory:
    """The segments, by address.

    A change replaces the whole list, so that a thread that looks an address up meanwhile sees one state of it.
    """

    def __init__(self) -> None:
        self._table: tuple[list[int], list[Segment]] = [], []  # where each begins, and each
        self._former: deque[Former] = deque(maxlen=_MOST_FORMER)
        self._next = GLOBAL_START
        self._lock = RLock()

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._table[1])

    @property
    def next_address(self) -> int:
        """The next free address."""
        return self._next

    @property
    def formers(self) -> tuple[Former, ...]:
        """The segments that are gone, as far as a finding can still name them."""
        with self._lock:
            return tuple(self._former)

    def restore(self, segments: Iterable[Segment], formers: Iterable[Former], next_address: int) -> None:
        """Take over the segments of another memory, at their addresses."""
        with self._lock:
            found = sorted([*self._table[1], *segments], key=lambda each: each.start)
            self._table = [each.start for each in found], found
            self._former.extend(formers)
            self._next = next_address

    def find(self, address: int) -> Segment | None:
        """The segment that an address lies in."""
        starts, segments = self._table
        at = bisect_right(starts, address) - 1
        if at < 0:
            return None
        found = segments[at]
        return found if address < found.start + len(found.bytes) else None

    def before(self, address: int) -> Segment | None:
        """The last segment that begins at an address or before it."""
        starts, segments = self._table
        at = bisect_right(starts, address) - 1
        return segments[at] if at >= 0 else None

    def former(self, address: int) -> Former | None:
        """The segment that an address lay in, if that is gone."""
        with self._lock:
            return next((each for each in reversed(self._former) if each.start <= address < each.stop), None)

    def add(self, segment: Segment) -> None:
        """Put a segment where it says."""
        with self._lock:
            starts, segments = self._table
            at = bisect_right(starts, segment.start)
            self._table = (
                [*starts[:at], segment.start, *starts[at:]],
                [*segments[:at], segment, *segments[at:]],
            )

    def remove(self, segment: Segment, end: str = "") -> None:
        """Take a segment away; nothing is ever put where it was. `end` is of :class:`Former`."""
        with self._lock:
            rest = [each for each in self._table[1] if each is not segment]
            self._table = [each.start for each in rest], rest
            if end:
                self._former.append(Former(segment.start, segment.stop, segment.name, end))

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
        segment = Segment(0, data, name, writeable)
        self.place(segment)
        return segment

    def place(self, segment: Segment, room_bytes: int = 0) -> None:
        """Put a segment at the next free address, with room before and after it."""
        with self._lock:
            segment.start = self._next + room_bytes
            self._next = -(-(segment.stop + room_bytes + _GUARD_BYTES) // _ALIGNMENT) * _ALIGNMENT
            self.add(segment)
