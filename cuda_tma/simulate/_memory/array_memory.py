"""Arrays of the host in simulated global memory, each mapped for its lifetime.

The whole memory of an array is mapped without a copy, so a kernel writes to the array directly. A view is a part of the
array that owns the memory. Two views of one array therefore overlap on the simulator as on the host.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import numpy as np

from .global_memory import GlobalMemory, Segment
from .host_array import Extent, HostArray, Owner, host_array

__all__ = ["ArrayMemory"]

_FREED = "lay, which is freed: keep the array as long as a kernel may use its address"
_MOVED = "lay before its storage moved (a resize moves it): take the address again after that"
_UNLOADED = "lay, whose kernel is gone: keep the kernel as long as another may use the variable's address"
# The addresses within 1 GB of an array stay free if the array may be a part of a larger array.
_ROOM_BYTES = 1 << 30


class _Permission:
    """The permission of kernels to write to an array.

    Attributes
    ----------
    is_open : bool
        Whether the user has the address of a writeable view.
    given : list of bool
        One value for each argument of a running launch that is a part of the array: whether the argument is writeable.
    """

    def __init__(self) -> None:
        self.is_open, self.given, self._was_writeable = False, list[bool](), False

    def add(self, writeable: bool) -> None:
        """Add an argument of a running launch, if the argument is a part of the array."""
        self.given.append(writeable)
        self._was_writeable |= writeable

    @property
    def writeable(self) -> bool:
        """Return whether a kernel may write to the array; a launch that has only read-only views may not.

        A pointer in memory comes from an earlier launch, so it does not count as a view.
        """
        return self.is_open or (any(self.given) if self.given else self._was_writeable)


class _ArraySegment(Segment):
    """The segment of global memory that maps the memory of an array.

    Parameters
    ----------
    start : int
    extent : Extent
        The range of the memory on the host.
    room : Extent
        The range to which the segment may grow.
    owners : list of Owner
        The objects that own the memory.
    permission : _Permission
    """

    __slots__ = ("extent", "owners", "permission", "room")

    def __init__(self, start: int, extent: Extent, room: Extent, owners: list[Owner], permission: _Permission):
        begin, size = extent
        data = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(begin)) if size else np.zeros(0, np.uint8)
        super().__init__(start, data, owners[0].name, permission.writeable)
        self.extent, self.room, self.owners, self.permission = extent, room, owners, permission

    def over(self, extent: Extent, owners: list[Owner]) -> _ArraySegment:
        """Return a segment for a larger or smaller range of the same memory, without a change of addresses."""
        start = self.start + extent.begin - self.extent.begin
        return _ArraySegment(start, extent, self.room, owners, self.permission)

    def is_of(self, owner: Owner) -> bool:
        """Return whether an object is one of the owners of the memory."""
        return any(each.watched() is owner.watched() for each in self.owners)


class ArrayMemory(GlobalMemory):
    """The global memory of a device that maps arrays of the host."""

    def __init__(self) -> None:
        super().__init__()
        self._arrays: list[_ArraySegment] = []
        self._variables: list[tuple[weakref.ref[object], list[int]]] = []
        self._launching = RLock()

    def address(self, array: Any) -> int:
        """Return the simulated address of the first element of an array, and map the array if necessary.

        Raises
        ------
        TypeError
            If the argument is not an array on the host.
        ValueError
            If the memory of the array overlaps a mapped array and extends too far beyond it.
        """
        with self._lock:
            self._settle()
            found = host_array(array)
            segment = self._segment(found)
            segment.permission.is_open |= found.writeable
            segment.writeable = segment.permission.writeable
            return segment.start + found.address - segment.extent.begin

    @contextmanager
    def launch(self) -> Iterator[Callable[[Any], int]]:
        """Keep all mapped arrays alive during a launch, and yield the function `address` for its arguments.

        The arguments stay alive too. Only one thread of the host launches at a time, because the parameters of each
        launch have the same address.
        """
        with self._launching, self._kept() as address:
            yield address

    @contextmanager
    def _kept(self) -> Iterator[Callable[[Any], int]]:
        given: list[tuple[_Permission, bool]] = []
        with self._lock:
            self._settle()
            kept = [owner.watched() for segment in self._arrays for owner in segment.owners]
            kept += [kernel() for kernel, _ in self._variables]

        def address(array: Any) -> int:
            with self._lock:
                found = host_array(array)
                kept.append(found.owner.watched())
                segment = self._segment(found)
                segment.permission.add(found.writeable)
                given.append((segment.permission, found.writeable))
                segment.writeable = segment.permission.writeable
                return segment.start + found.address - segment.extent.begin

        try:
            yield address
        finally:
            self._end(given)
            kept.clear()

    def unload(self, addresses: Iterable[int]) -> None:
        """Unmap the variables of a module at some addresses."""
        with self._lock:
            for address in addresses:
                if (variable := self.find(address)) is not None:
                    self.remove(variable, _UNLOADED)

    def unload_with(self, kernel: object, addresses: Iterable[int]) -> None:
        """Unmap the variables of a module at some addresses when their kernel is deleted."""
        if variables := [*addresses]:
            with self._lock:
                self._variables.append((weakref.ref(kernel), variables))

    def _end(self, given: list[tuple[_Permission, bool]]) -> None:
        with self._lock:
            for permission, writeable in given:
                permission.given.remove(writeable)
            for segment in self._arrays:
                segment.writeable = segment.permission.writeable

    def _settle(self) -> None:
        """Unmap the memory that has been freed, or has moved, since the last call."""
        for segment in [*self._arrays]:
            current = [owner for owner in segment.owners if owner.is_current()]
            if not current:
                has_moved = any(owner.watched() is not None for owner in segment.owners)
                self._arrays.remove(segment)
                self.remove(segment, _MOVED if has_moved else _FREED)
                # The segment may outlive its array, because a finished launch may refer to the segment.
                segment.owners = []
            elif len(current) < len(segment.owners):
                self._replace(segment, segment.over(_hull([owner.extent for owner in current]), current))
        for entry in [each for each in self._variables if each[0]() is None]:
            self._variables.remove(entry)
            self.unload(entry[1])

    def _segment(self, array: HostArray) -> _ArraySegment:
        owner, extent = array.owner, array.owner.extent
        segment = next((each for each in self._arrays if each.is_of(owner)), None)
        if segment is not None:
            return segment
        overlapping = [each for each in self._arrays if each.extent.overlaps(extent)]
        if not overlapping:
            return self._map(array)
        segment, hull = overlapping[0], _hull([overlapping[0].extent, extent])
        if len(overlapping) > 1 or not (segment.room.contains(hull) or segment.extent == hull):
            raise ValueError(
                f"the array's memory (0x{extent.begin:x}, {extent.size} bytes) overlaps a mapped array and extends "
                "beyond it; pass the larger array to Device.address first"
            )
        return self._replace(segment, segment.over(hull, [*segment.owners, owner]))

    def _map(self, array: HostArray) -> _ArraySegment:
        begin, size = array.owner.extent
        room = 0 if array.owner.is_whole else _ROOM_BYTES
        reach = Extent(begin - room, size + 2 * room)
        segment = _ArraySegment(0, array.owner.extent, reach, [array.owner], _Permission())
        self.place(segment, room)
        self._arrays.append(segment)
        return segment

    def _replace(self, old: _ArraySegment, new: _ArraySegment) -> _ArraySegment:
        """Replace a segment by a new object; a running launch keeps the old object."""
        self._arrays[self._arrays.index(old)] = new
        self.remove(old)
        self.add(new)
        old.owners = []
        return new


def _hull(parts: list[Extent]) -> Extent:
    """Return the range from the first byte to the last byte of some ranges."""
    begin = min(part.begin for part in parts)
    return Extent(begin, max(part.end for part in parts) - begin)
