"""The shadow of memory that belongs to a CTA, with the last write and some reads of each memory unit.

A unit has the size of the kernel's smallest access (1 to 8 bytes). A unit has eight places for the reads since its last
write, and the number of a warp selects the place of its reads. A later read in the same place replaces an earlier read.
The shadow may therefore miss a race, but it never reports a false race.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._memory.lazy_zeros import lazy_zeros
from ._stamps import Stamps
from .clocks import Clocks, Known

__all__ = ["COLUMN_BITS", "READERS", "STRONG", "TAKEN", "WEAK", "Cells", "Conflict", "Shadow", "stamps_of"]

READERS = 8
WEAK, STRONG = 0, 1  # Strong accesses, such as atomics, do not race with each other.
COLUMN_BITS = 20
# `Shadow.touch` returns TAKEN if all accesses are recorded, and no two writes of one step overlap.
TAKEN = 1
_BESIDE = 64  # For an uninitialized read, the search for written bytes examines 64 units on each side.
# In a shadow cell, the record of the last write follows the records of reads.
_WRITE, _READS = np.array([READERS]), (1 << READERS) - 1


class Cells(NamedTuple):
    """The units of some accesses, where each access has the same number of adjacent units.

    Attributes
    ----------
    first : numpy.ndarray of int64
        The first unit of each access.
    each : int
        The number of units of an access.
    """

    first: np.ndarray
    each: int

    @property
    def all(self) -> np.ndarray:
        """The units, [access, unit]."""
        return self.first[:, None] + np.arange(self.each)


def stamps_of(columns: Any, epochs: Any) -> Any:
    """Return the stamp of each access, which is a number with the column and the epoch; 0 is not a stamp."""
    return np.asarray(epochs, np.int64) << COLUMN_BITS | columns


class Conflict(NamedTuple):
    """Earlier accesses that conflict with the present accesses and do not happen before them.

    Attributes
    ----------
    units, columns, epochs, sites : numpy.ndarray
        The unit, the column, the epoch and the statement of each earlier access.
    which : numpy.ndarray
        The index of the present access with which each earlier access conflicts.
    before : str
        The kind of the earlier accesses: ``"read"`` or ``"write"``.
    """

    units: np.ndarray
    which: np.ndarray
    columns: np.ndarray
    epochs: np.ndarray
    sites: np.ndarray
    before: str

    def only(self, some: np.ndarray) -> Conflict:
        """Return the earlier accesses for which `some` is true."""
        units, which, columns, epochs, sites, before = self
        return Conflict(units[some], which[some], columns[some], epochs[some], sites[some], before)


class Shadow:
    """The shadow of the memory of all resident CTAs; `GlobalShadow` is its counterpart for global memory.

    Parameters
    ----------
    size_bytes : int
    unit_bytes : int
        A power of two.
    """

    def __init__(self, size_bytes: int, unit_bytes: int):
        self.unit_bytes = unit_bytes
        self._shift = unit_bytes.bit_length() - 1
        shape = READERS + 1, -(-size_bytes // unit_bytes)
        self._stamps = Stamps(lazy_zeros(shape, np.int64), lazy_zeros(shape, np.int32))

    def units(self, positions: np.ndarray, size_bytes: int) -> Cells:
        """Return the units of accesses that begin at some byte positions."""
        return Cells(positions >> self._shift, max(1, size_bytes >> self._shift))

    def range(self, position: int, size_bytes: int) -> Cells:
        """Return the units of a range of bytes."""
        first = position >> self._shift
        return Cells(np.array([first]), -(-(position + size_bytes) // self.unit_bytes) - first)

    def forget(self, position: int, size_bytes: int) -> None:
        """Remove all recorded accesses to some bytes."""
        self._stamps.clear(self._stamps.used, *self.range(position, size_bytes))

    def touch(
        self, positions: np.ndarray, size_bytes: int, clocks: Clocks, who: np.ndarray, strong: int, writes: bool,
        reads: bool, note: int,
    ) -> int:  # fmt: skip
        """Record accesses of threads if all conflicting accesses happen before them; otherwise return 0.

        The result is `TAKEN`, unless two of the present writes overlap.
        """
        each, shift = max(1, size_bytes >> self._shift), self._shift
        return self._stamps.touch(positions, each, clocks.in_c, who, strong, writes, reads, -1, note, 0, 0, shift)

    def operate(
        self, units: Cells, clock: np.ndarray, rows: tuple[int, int], strong: int, place: int, stamp: int, site: int
    ) -> bool:
        """Record an operation that follows all conflicting accesses and reads written units; otherwise return False.

        Parameters
        ----------
        clock : numpy.ndarray of int32, [row, column]
            The clock of the operation. An access precedes the operation if both `rows` of the clock contain it.
        place : int
            The place for the reads of the operation; `READERS` if the operation writes.
        stamp : int
            The column and the epoch of the operation, as `stamps_of` returns them.
        """
        row, other = rows
        return self._stamps.operate(*units, clock, row, row, other, strong, place, True, stamp, site << 1 | strong)

    def after_write(self, units: Cells, known: Known, who: np.ndarray, strong: int = WEAK) -> Conflict | None:
        """Return the last writes that do not precede the present accesses; None if all writes precede.

        Parameters
        ----------
        who : numpy.ndarray of int64
            The lane of each access; a single lane if it makes all accesses.
        """
        late = self._stamps.late(1 << READERS, *units, *known, who, strong)
        return self._conflict(READERS, units, known, who, strong) if late else None

    def after_reads(self, units: Cells, known: Known, who: np.ndarray, strong: int = WEAK) -> list[Conflict]:
        """Return the reads since the last writes that do not precede the present writes."""
        late = self._stamps.late(self._stamps.used & _READS, *units, *known, who, strong)
        places = [place for place in range(READERS) if late >> place & 1]
        return [self._conflict(place, units, known, who, strong) for place in places]

    def _conflict(self, place: int, units: Cells, known: Known, who: np.ndarray, strong: int) -> Conflict:
        at = units.all.ravel()
        stamps, notes = self._stamps.values[place, at], self._stamps.notes[place, at]
        columns, epochs = stamps & (1 << COLUMN_BITS) - 1, stamps >> COLUMN_BITS
        late = known.at(np.repeat(who, units.each) if len(who) > 1 else who, columns) < epochs
        if strong:
            late &= notes & 1 == WEAK
        some = np.flatnonzero(late)
        before = "write" if place == READERS else "read"
        return Conflict(at[some], some // units.each, columns[some], epochs[some], notes[some] >> 1, before)

    def unwritten(self, units: Cells) -> np.ndarray:
        """Return, for each unit, whether no access has written it: [access, unit]."""
        return self._stamps.values[READERS, units.all] == 0

    def writer_beside(self, unit: int) -> int | None:
        """Return the statement that wrote the unit nearest to an unwritten unit, preferably before that unit."""
        first = max(0, unit - _BESIDE)
        near = np.flatnonzero(self._stamps.values[READERS, first : unit + _BESIDE])
        if not len(near):
            return None
        before = near[near + first < unit]
        return int(self._stamps.notes[READERS, first + (before[-1] if len(before) else near[0])]) >> 1

    def write(self, units: Cells, stamps: np.ndarray, site: int, strong: int = WEAK) -> None:
        """Record writes with one stamp, or with a stamp for each write, and remove the earlier reads."""
        self._stamps.put(_WRITE, *units, stamps, site << 1 | strong)
        self._stamps.clear(self._stamps.used & _READS, *units)

    def overwritten(self, units: Cells, stamps: np.ndarray) -> Conflict | None:
        """Return the writes that replaced other writes of the same instruction and step; None without such writes."""
        at = units.all.ravel()
        last = self._stamps.values[READERS, at]
        some = np.flatnonzero(last != np.repeat(stamps, units.each))
        if not len(some):
            return None
        columns, epochs = last[some] & (1 << COLUMN_BITS) - 1, last[some] >> COLUMN_BITS
        sites = self._stamps.notes[READERS, at[some]] >> 1
        return Conflict(at[some], some // units.each, columns, epochs, sites, "write")

    def read(self, units: Cells, places: np.ndarray, stamps: np.ndarray, site: int, strong: int = WEAK) -> None:
        """Record reads, each in one of the places for reads."""
        self._stamps.put(places, *units, stamps, site << 1 | strong)
