"""The cells of arrays in global memory, and the accesses that they remember."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._memory.global_memory import Segment
from ._stamps import Stamps

__all__ = ["READERS", "WRITES", "Area", "AreaCells", "PriorAccess", "Row", "StrongRows", "Writer"]

READERS = 2  # the places of weak reads
WRITES = 2  # the place of strong writes, which follows those of strong reads


class PriorAccess(NamedTuple):
    """An access before the present one, and whether order is missing, or a fence alone.

    Attributes
    ----------
    address, column, slot, site : int
        Where, and whose doing it was.
    is_here : bool
        Whether by the same cluster.
    kind : str
        ``"read"`` or ``"write"``.
    which : int
        Which of the present accesses.
    is_ordered : bool
    epoch : int
        The value of its column then.
    lives : bool
        Whether that cluster is there still.
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
    """One remembered access for each unit.

    Attributes
    ----------
    stamps, moments, notes : numpy.ndarray, [unit]
        As in `Stamps`.
    kind : str
        ``"read"`` or ``"write"``.
    """

    stamps: np.ndarray
    moments: np.ndarray
    notes: np.ndarray
    kind: str

    @classmethod
    def of(cls, cells: Stamps, place: int) -> Row:
        """Return one place of timed cells."""
        kind = "write" if place == len(cells.values) - 1 else "read"
        return cls(cells.values[place], cells.moments[place], cells.notes[place], kind)


class Writer(NamedTuple):
    """Who wrote something last: the place of its cluster, its column, the column's value, the time, the statement."""

    slot: int
    column: int
    epoch: int
    time: int
    site: int


class StrongRows:
    """Of one array: two strong reads and the last strong write of each unit.

    Attributes
    ----------
    cells : Stamps
    shapes : numpy.ndarray of int32, [unit]
        The bytes and the scope of the write.
    """

    def __init__(self, units: int):
        self.cells = _timed(WRITES + 1, units)
        self.shapes = np.zeros(units, np.int32)

    def row(self, place: int) -> Row:
        """Return the accesses of one place."""
        return Row.of(self.cells, place)


class Area:
    """Of one array."""

    def __init__(self, segment: Segment, unit_bytes: int):
        self.start, self.segment = segment.start, segment
        self.before = segment.bytes.tobytes()  # the launch begins with them: the first access has no effect yet
        self.cells = _timed(READERS + 1, -(-len(segment.bytes) // unit_bytes) + 1)
        self.strong: StrongRows | None = None  # from the first strong access on

    def row(self, place: int) -> Row:
        """Return the accesses of one place."""
        return Row.of(self.cells, place)

    def rows(self, kind: str) -> list[Row]:
        """Return the weak accesses that conflict with an access of a kind."""
        return [self.row(place) for place in (range(READERS + 1) if kind != "read" else (READERS,))]


class AreaCells(NamedTuple):
    """Cells that threads access at once: which, whose, and the places of their clusters."""

    area: Area
    units: np.ndarray
    who: np.ndarray
    slots: np.ndarray

    def only(self, some: np.ndarray) -> AreaCells:
        """Return those for which something holds."""
        return AreaCells(self.area, self.units[some], self.who[some], self.slots[some])


def _timed(places: int, units: int) -> Stamps:
    return Stamps(*(np.zeros((places, units), dtype) for dtype in (np.int64, np.int32, np.int64)))
