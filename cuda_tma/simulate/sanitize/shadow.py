"""What is remembered of each byte of shared memory: who wrote it last, and who has read it since.

The unit is the smallest access that the kernel has (1 to 8 bytes). Of the readers since the last write one is kept in
each of a few places, by warp: a broadcast to a whole CTA is remembered, and what does not fit is forgotten, so that
something may be missed, and nothing is invented.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["READERS", "STRONG", "WEAK", "Conflict", "Shadow", "Units", "stamps_of"]

READERS = 8
WEAK, STRONG = 0, 1  # atomics, and other strong accesses, do not race with each other
_COLUMN_BITS = 20
Units = slice | np.ndarray
Look = Callable[[np.ndarray], np.ndarray]  # columns -> what the accessing clocks hold of them


def stamps_of(columns: Any, epochs: Any) -> Any:
    """Who, and when, in one number; 0 is nobody."""
    return np.asarray(epochs, np.int64) << _COLUMN_BITS | columns


class Conflict(NamedTuple):
    """Accesses before the present ones that do not precede them as they should.

    Attributes
    ----------
    units, columns, epochs, sites : numpy.ndarray
        Where, whose, when and by which statement.
    which : numpy.ndarray
        Which of the present accesses each is in conflict with.
    before : str
        ``"read"`` or ``"write"``.
    """

    units: np.ndarray
    which: np.ndarray
    columns: np.ndarray
    epochs: np.ndarray
    sites: np.ndarray
    before: str

    def only(self, some: np.ndarray) -> Conflict:
        """Those for which something holds."""
        units, which, columns, epochs, sites, before = self
        return Conflict(units[some], which[some], columns[some], epochs[some], sites[some], before)


class Shadow:
    """Of the shared memory of all resident CTAs.

    Parameters
    ----------
    size_bytes : int
    unit_bytes : int
        A power of two.
    """

    def __init__(self, size_bytes: int, unit_bytes: int):
        self.unit_bytes = unit_bytes
        self._shift = unit_bytes.bit_length() - 1
        units = -(-size_bytes // unit_bytes)
        # The last one is the write; before it the readers. Memory that is never touched is never there.
        self._stamps = np.zeros((READERS + 1, units), np.int64)
        self._notes = np.zeros((READERS + 1, units), np.int32)
        self._used: list[int] = []

    def units(self, positions: np.ndarray, size_bytes: int) -> np.ndarray:
        """Those of accesses that begin at some bytes: [access, unit]."""
        each = max(1, size_bytes >> self._shift)
        first = positions[:, None] >> self._shift
        return first if each == 1 else first + np.arange(each)

    def range(self, position: int, size_bytes: int) -> slice:
        """Those of bytes side by side."""
        return slice(position >> self._shift, -(-(position + size_bytes) // self.unit_bytes))

    def forget(self, units: slice) -> None:
        """Nobody has touched these."""
        self._stamps[:, units] = 0

    def after_write(self, units: Units, look: Look, strong: int = WEAK) -> Conflict | None:
        """The last writes, where they are not before an access."""
        return self._conflict(READERS, units, look, strong)

    def after_reads(self, units: Units, look: Look, strong: int = WEAK) -> list[Conflict]:
        """Reads since the last writes, where they are not before a write."""
        found = [self._conflict(place, units, look, strong) for place in self._used]
        return [conflict for conflict in found if conflict is not None]

    def _conflict(self, place: int, units: Units, look: Look, strong: int) -> Conflict | None:
        stamps = self._stamps[place, units]
        late = look(stamps & (1 << _COLUMN_BITS) - 1) < stamps >> _COLUMN_BITS
        if strong:
            late &= self._notes[place, units] & 1 == WEAK
        if not late.any():
            return None
        which = np.flatnonzero(late)
        at = np.arange(units.start, units.stop)[which] if isinstance(units, slice) else units[which]
        stamps, notes = self._stamps[place, at], self._notes[place, at]
        columns, epochs = stamps & (1 << _COLUMN_BITS) - 1, stamps >> _COLUMN_BITS
        return Conflict(at, which, columns, epochs, notes >> 1, "write" if place == READERS else "read")

    def written(self, units: Units) -> np.ndarray:
        """Which somebody has written."""
        return self._stamps[READERS, units] != 0

    def write(self, units: Units, stamps: Any, site: int, strong: int = WEAK) -> None:
        """Remember writes; what was read before them no longer counts."""
        self._stamps[READERS, units], self._notes[READERS, units] = stamps, site << 1 | strong
        for place in self._used:
            self._stamps[place, units] = 0

    def read(self, units: Units, places: Any, stamps: Any, site: int, strong: int = WEAK) -> None:
        """Remember reads, each in one of the places for readers."""
        for place in np.unique(places).tolist():
            if place not in self._used:
                self._used.append(place)
        self._stamps[places, units], self._notes[places, units] = stamps, site << 1 | strong
