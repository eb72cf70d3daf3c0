"""The shadow of tensor memory, with the last write of each cell and the last reads since this write.

A cell is one column of 16 adjacent lanes, which instructions always access together. A cell contains only the last read
by a warp and the last read by an operation. The shadow may therefore miss a race, but it never reports a false race.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._tensor_memory.allocator import COLUMNS
from ..._tensor_memory.memory import LANES
from ..._warps.tensor_events import GROUP_LANES, Touch
from .shadow import COLUMN_BITS

__all__ = ["READ_BY_OPERATION", "READ_BY_WARP", "WRITTEN", "Past", "Stamp", "TensorShadow"]

# A shadow cell has three records: the last write, the last read by an operation, and the last read by a warp.
WRITTEN, READ_BY_WARP, READ_BY_OPERATION = 0, 1, 2
_ORDER, _END = 0, 1  # A stamp consists of two parts: the issue and the completion.


@dataclass(frozen=True, slots=True)
class Stamp:
    """The stamp of one access: the column and epoch of its issue, and the column and epoch of its completion.

    Attributes
    ----------
    order, end : tuple of (int, int)
    note : int
        The number of the record of the access.
    """

    order: tuple[int, int]
    end: tuple[int, int]
    note: int


@dataclass(frozen=True, slots=True)
class Past:
    """An earlier access that is not complete before the present access.

    Attributes
    ----------
    note : int
    is_ordered : bool
        Whether the issue of the earlier access happens before the present access. If true, only the wait for the
        completion of the earlier access is missing.
    """

    note: int
    is_ordered: bool


class TensorShadow:
    """The shadow of the tensor memory of all resident CTAs."""

    def __init__(self) -> None:
        self._cells: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def forget(self, ctas: range) -> None:
        """Remove all accesses to the tensor memory of CTAs that begin."""
        for cta in ctas:
            self._cells.pop(cta, None)

    def _of(self, touch: Touch) -> tuple[np.ndarray, np.ndarray]:
        """Return the stamps of cells, [place, order or end, column, group], and their notes, [place, column, group]."""
        if touch.cta not in self._cells:
            shape = COLUMNS, LANES // GROUP_LANES
            self._cells[touch.cta] = np.zeros((3, 2, *shape), np.int64), np.zeros((3, *shape), np.int32)
        stamps, notes = self._cells[touch.cta]
        columns = slice(touch.column, touch.column + touch.columns)
        groups = slice(touch.groups[0], touch.groups[-1] + 1)
        # An instruction accesses adjacent groups of lanes, or every second group.
        step = 1 if len(touch.groups) == groups.stop - groups.start else 2
        groups = slice(groups.start, groups.stop, step)
        return stamps[..., columns, groups], notes[..., columns, groups]

    def is_unwritten(self, touch: Touch) -> bool:
        """Return whether cells are unwritten: all of them, or at least one if the instruction needs all of them."""
        written = self._of(touch)[0][WRITTEN, _ORDER]
        return not (written.all() if touch.needs_all else written.any())

    def past(self, touch: Touch, place: int, clock: np.ndarray) -> list[Past]:
        """Return the accesses in one place whose completion a clock, [column], does not contain, without duplicates."""
        stamps, notes = self._of(touch)
        if not stamps[place, _END].any():
            return []
        late = _late(stamps[place, _END], clock)
        if not late.any():
            return []
        found, apart = notes[place][late], _late(stamps[place, _ORDER], clock)[late]
        return [Past(note, not apart[found == note].any()) for note in np.unique(found).tolist()]

    def write(self, touch: Touch, stamp: Stamp) -> None:
        """Record a write, and remove the earlier reads."""
        self._put(touch, WRITTEN, stamp)
        stamps, _ = self._of(touch)
        stamps[READ_BY_WARP:] = 0

    def read(self, touch: Touch, place: int, stamp: Stamp) -> None:
        """Record a read by a warp or by an operation."""
        self._put(touch, place, stamp)

    def clear(self, touch: Touch) -> None:
        """Remove all accesses to columns that a warp deallocates."""
        stamps, _ = self._of(touch)
        stamps[...] = 0

    def _put(self, touch: Touch, place: int, stamp: Stamp) -> None:
        stamps, notes = self._of(touch)
        for which, (column, epoch) in ((_ORDER, stamp.order), (_END, stamp.end)):
            stamps[place, which] = epoch << COLUMN_BITS | column
        notes[place] = stamp.note


def _late(stamps: np.ndarray, clock: np.ndarray) -> np.ndarray:
    return clock[stamps & (1 << COLUMN_BITS) - 1] < stamps >> COLUMN_BITS
