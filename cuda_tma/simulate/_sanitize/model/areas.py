"""The shadow cells of arrays in global memory, which contain the recorded accesses to each array."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._memory.global_memory import Segment
from ._stamps import Stamps

__all__ = ["READERS", "WRITES", "Area", "AreaCells", "PriorAccess", "Row", "StrongRows", "Writer"]

READERS = 2  # A shadow cell records two weak reads and one weak write.
WRITES = 2  # A shadow cell for strong accesses records two strong reads, and then one strong write.


class PriorAccess(NamedTuple):
    """An earlier access that is unordered with the present access, or ordered without a proxy fence.

    Attributes
    ----------
    address, column, slot, site : int
        The address, the column of the thread or operation, the slot of its cluster, and the number of the statement.
    is_here : bool
        Whether a thread or operation of the present cluster made the earlier access.
    kind : str
        ``"read"`` or ``"write"``.
    which : int
        The index of the present access that conflicts with the earlier access.
    is_ordered : bool
        Whether the earlier access happens before the present access, so that only the fence is missing.
    epoch : int
        The value of `column` at the earlier access.
    lives : bool
        Whether the cluster of the earlier access still runs.
    """

    address: int
    column: int
    slot: int
    is_here: bool
    site: int
    kind: str
    which: int
    is_ordered: bool
    epoch: int
    lives: bool


class Row(NamedTuple):
    """The accesses in one place of the shadow cells, at most one access for each unit of memory.

    Attributes
    ----------
    stamps, moments, notes : numpy.ndarray, [unit]
        The stamps, moments and notes of the accesses, as in `Stamps`.
    kind : str
        ``"read"`` or ``"write"``.
    """

    stamps: np.ndarray
    moments: np.ndarray
    notes: np.ndarray
    kind: str

    @classmethod
    def of(cls, cells: Stamps, place: int) -> Row:
        """Return the accesses in one place of timed shadow cells."""
        kind = "write" if place == len(cells.values) - 1 else "read"
        return cls(cells.values[place], cells.moments[place], cells.notes[place], kind)


class Writer(NamedTuple):
    """The last writer of some bytes: the slot of its cluster, its column, its epoch, the time and the statement."""

    slot: int
    column: int
    epoch: int
    time: int
    site: int


class StrongRows:
    """Two strong reads and the last strong write of each unit of an array.

    Attributes
    ----------
    cells : Stamps
    shapes : numpy.ndarray of int32, [unit]
        The bytes and the scope of the last strong write, for each unit.
    """

    def __init__(self, units: int):
        self.cells = _timed(WRITES + 1, units)
        self.shapes = np.zeros(units, np.int32)

    def row(self, place: int) -> Row:
        """Return the accesses in one place of the cells."""
        return Row.of(self.cells, place)


class Area:
    """The shadow cells of one array in global memory."""

    def __init__(self, segment: Segment, unit_bytes: int):
        self.start, self.segment = segment.start, segment
        # The attribute is a copy of the array before the first access of the launch.
        self.before = segment.bytes.tobytes()
        self.cells = _timed(READERS + 1, -(-len(segment.bytes) // unit_bytes) + 1)
        self.strong: StrongRows | None = None  # Before the first strong access to the array, the attribute is None.

    def row(self, place: int) -> Row:
        """Return the accesses in one place of the cells."""
        return Row.of(self.cells, place)

    def rows(self, kind: str) -> list[Row]:
        """Return the weak accesses that conflict with an access: a read conflicts with writes, and a write with all."""
        return [self.row(place) for place in (range(READERS + 1) if kind != "read" else (READERS,))]


class AreaCells(NamedTuple):
    """The units of an array that threads access in one step, with the lanes and the slots of their clusters."""

    area: Area
    units: np.ndarray
    who: np.ndarray
    slots: np.ndarray

    def only(self, some: np.ndarray) -> AreaCells:
        """Return the units for which `some` is true."""
        return AreaCells(self.area, self.units[some], self.who[some], self.slots[some])


def _timed(places: int, units: int) -> Stamps:
    return Stamps(*(np.zeros((places, units), dtype) for dtype in (np.int64, np.int32, np.int64)))
