"""What is remembered of each byte of shared memory: who wrote it last, and who has read it since.

The unit is the smallest access that the kernel has (1 to 8 bytes). Of the readers since the last write one is kept in
each of a few places, by warp: a broadcast to a whole CTA is remembered, and what does not fit is forgotten, so that
something may be missed, and nothing is invented.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._memory.lazy_zeros import lazy_zeros
from ._stamps import Stamps
from .clocks import Clocks, Known

__all__ = ["COLUMN_BITS", "MET", "READERS", "STRONG", "WEAK", "Cells", "Conflict", "Shadow", "stamps_of"]

READERS = 8
WEAK, STRONG = 0, 1  # atomics, and other strong accesses, do not race with each other
COLUMN_BITS = 20
_BESIDE = 64  # units
MET = 1 << READERS + 1  # of `Shadow.touch`
_WRITE, _WRITTEN = np.array([READERS]), 1 << READERS  # the place of the last write follows those of the readers


class Cells(NamedTuple):
    """What accesses touch: each so many units side by side.

    Attributes
    ----------
    first : numpy.ndarray of int64
        Of each access.
    each : int
    """

    first: np.ndarray
    each: int

    @property
    def all(self) -> np.ndarray:
        """As [access, unit]."""
        return self.first[:, None] + np.arange(self.each)


def stamps_of(columns: Any, epochs: Any) -> Any:
    """Who, and when, in one number; 0 is nobody."""
    return np.asarray(epochs, np.int64) << COLUMN_BITS | columns


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
        shape = READERS + 1, -(-size_bytes // unit_bytes)
        self._stamps = Stamps(lazy_zeros(shape, np.int64), lazy_zeros(shape, np.int32))
        self._used = 0  # a bit for each place that is used

    @property
    def _readers(self) -> int:
        return self._used & ~_WRITTEN

    def units(self, positions: np.ndarray, size_bytes: int) -> Cells:
        """Those of accesses that begin at some bytes."""
        return Cells(positions >> self._shift, max(1, size_bytes >> self._shift))

    def range(self, position: int, size_bytes: int) -> Cells:
        """Those of bytes side by side."""
        first = position >> self._shift
        return Cells(np.array([first]), -(-(position + size_bytes) // self.unit_bytes) - first)

    def forget(self, position: int, size_bytes: int) -> None:
        """Nobody has touched these bytes."""
        self._stamps.clear(self._used, *self.range(position, size_bytes))

    def operate(
        self, units: Cells, clock: np.ndarray, rows: tuple[int, int], strong: int, place: int, stamp: int, site: int
    ) -> bool:
        """Remember an operation, if it knows of all that is before it, and reads what has been written; else False.

        Parameters
        ----------
        clock : numpy.ndarray of int32, [row, column]
            What precedes the operation: what does so in both of two `rows`.
        place : int
            Of its reads; `READERS` if it writes.
        stamp : int
            Its column and epoch, see `stamps_of`.
        """
        known = self._stamps.operate(*units, clock, *rows, strong, place, self._readers, stamp, site << 1 | strong)
        if known:
            self._used |= 1 << place
        return known

    def touch(
        self, units: Cells, clocks: Clocks, who: np.ndarray, strong: int, writes: bool, reads: bool, note: int
    ) -> int:
        """Remember accesses of threads if each follows those before it: 0 if not, see `Stamps.touch`."""
        clock = clocks.rows, clocks.warps, clocks.visible, clocks.threads
        found = self._stamps.touch(*units, *clock, who, strong, writes, reads, self._readers, note)
        self._used |= found & ~MET
        return found

    def after_write(self, units: Cells, known: Known, who: np.ndarray, strong: int = WEAK) -> Conflict | None:
        """The last writes, where they are not before an access.

        Parameters
        ----------
        who : numpy.ndarray of int64
            The lane of each access; one, if all are of the same.
        """
        late = self._stamps.late(1 << READERS, *units, *known, who, strong)
        return self._conflict(READERS, units, known, who, strong) if late else None

    def after_reads(self, units: Cells, known: Known, who: np.ndarray, strong: int = WEAK) -> list[Conflict]:
        """Reads since the last writes, where they are not before a write."""
        late = self._stamps.late(self._readers, *units, *known, who, strong)
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
        """Which nobody has written: of each access, whether there are such."""
        return self._stamps.values[READERS, units.all] == 0

    def writer_beside(self, unit: int) -> int | None:
        """The statement that wrote the nearest unit before one that nobody has written, or behind it."""
        first = max(0, unit - _BESIDE)
        near = np.flatnonzero(self._stamps.values[READERS, first : unit + _BESIDE])
        if not len(near):
            return None
        before = near[near + first < unit]
        return int(self._stamps.notes[READERS, first + (before[-1] if len(before) else near[0])]) >> 1

    def write(self, units: Cells, stamps: np.ndarray, site: int, strong: int = WEAK) -> None:
        """Remember writes, of one stamp or a stamp for each; what was read before them no longer counts."""
        self._used |= _WRITTEN
        self._stamps.put(_WRITE, *units, stamps, site << 1 | strong)
        self._stamps.clear(self._readers, *units)

    def overwritten(self, units: Cells, stamps: np.ndarray) -> Conflict | None:
        """Of writes that are remembered at once, those in whose place another one is."""
        at = units.all.ravel()
        last = self._stamps.values[READERS, at]
        some = np.flatnonzero(last != np.repeat(stamps, units.each))
        if not len(some):
            return None
        columns, epochs = last[some] & (1 << COLUMN_BITS) - 1, last[some] >> COLUMN_BITS
        sites = self._stamps.notes[READERS, at[some]] >> 1
        return Conflict(at[some], some // units.each, columns, epochs, sites, "write")

    def read(self, units: Cells, places: np.ndarray, stamps: np.ndarray, site: int, strong: int = WEAK) -> None:
        """Remember reads, each in one of the places for readers."""
        for place in {*places.tolist()}:
            self._used |= 1 << place
        self._stamps.put(places, *units, stamps, site << 1 | strong)
