"""What is remembered of weak accesses to global memory: the last write of each unit, and some reads since.

Who was there may be gone: with its column and epoch an access has the place of its cluster and the time. Threads of
the same cluster are told apart as in shared memory; of others it counts until when their cluster is known, and whether
a release there covers the thread (`releases.py`). Strong accesses are compared in `strong_shadow.py`. Large arrays are
not watched, for want of memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..._memory.global_memory import GlobalMemory, Segment
from ._timed_stamps import TimedStamps
from .clocks import FENCED, ORDERED, Clocks, Known
from .shadow import stamps_of

__all__ = ["SLOT_BITS", "WRITES", "Area", "AreaCells", "GlobalShadow", "PriorAccess", "Row", "StrongRows", "Writer"]

_MOST_BYTES = 16 << 20
# Warps write notes there in any order: watchdog.cuh reads the note of a warp that has waited for long.
_NOTES = "the variable cuda_tma_watchdog,"
_READERS = 2
WRITES = 2  # the place of strong writes, behind those of strong reads
_COLUMN_BITS, SLOT_BITS = 20, 16


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
    """One remembered access for each unit: its stamp, its time and cluster, its statement.

    Attributes
    ----------
    stamps, whens, sites : numpy.ndarray, [unit]
        As in `TimedStamps`.
    kind : str
        ``"read"`` or ``"write"``.
    """

    stamps: np.ndarray
    whens: np.ndarray
    sites: np.ndarray
    kind: str


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
    stamps, whens, sites : numpy.ndarray, [place, unit]
    shapes : numpy.ndarray of int32, [unit]
        Of the write: what bytes it has accessed, and its scope.
    """

    def __init__(self, units: int):
        timed = TimedStamps(WRITES + 1, units)
        self.stamps, self.whens, self.sites = timed.stamps, timed.whens, timed.sites
        self.shapes = np.zeros(units, np.int32)

    def row(self, place: int) -> Row:
        """Return what one place remembers."""
        kind = "write" if place == WRITES else "read"
        return Row(self.stamps[place], self.whens[place], self.sites[place], kind)


class Area:
    """Of one array."""

    def __init__(self, segment: Segment, unit_bytes: int):
        self.start, self.segment = segment.start, segment
        self.before = segment.bytes.tobytes()  # the launch begins with them: the first access has no effect yet
        self.timed = TimedStamps(_READERS + 1, -(-len(segment.bytes) // unit_bytes) + 1)
        self.stamps, self.whens, self.sites = self.timed.stamps, self.timed.whens, self.timed.sites
        self.strong: StrongRows | None = None  # from the first strong access on

    def row(self, place: int) -> Row:
        """Return what one place remembers."""
        kind = "write" if place == _READERS else "read"
        return Row(self.stamps[place], self.whens[place], self.sites[place], kind)

    def rows(self, kind: str) -> list[Row]:
        """Return the weak accesses that conflict with an access of a kind."""
        return [self.row(place) for place in (range(_READERS + 1) if kind != "read" else (_READERS,))]


class AreaCells(NamedTuple):
    """Cells that threads access at once: which, whose, and the places of their clusters."""

    area: Area
    units: np.ndarray
    who: np.ndarray
    slots: np.ndarray

    def only(self, some: np.ndarray) -> AreaCells:
        """Return those for which something holds."""
        return AreaCells(self.area, self.units[some], self.who[some], self.slots[some])


class GlobalShadow:
    """Of all arrays that a launch touches."""

    def __init__(self, memory: GlobalMemory, clocks: Clocks, unit_bytes: int):
        self._memory, self._clocks, self._unit = memory, clocks, unit_bytes
        self._areas: dict[int, Area | None] = {}

    def area(self, address: int) -> Area | None:
        """That of an address, if it is watched."""
        segment = self._memory.find(address)
        if segment is None or not segment.writeable:
            return None
        if segment.start not in self._areas:
            if segment.name.startswith(_NOTES):
                return None
            watched = len(segment.bytes) <= _MOST_BYTES
            self._areas[segment.start] = Area(segment, self._unit) if watched else None
        return self._areas[segment.start]

    def before(self) -> dict[Segment, bytes] | None:
        """Return the bytes of all touched arrays before the launch; None if one of these arrays is not watched."""
        areas = [*self._areas.values()]
        return None if None in areas else {area.segment: area.before for area in areas if area is not None}

    def late_writes(self, area: Area, units: np.ndarray, who: np.ndarray) -> list[np.ndarray]:
        """Return the statement of the last write of each unit that does not precede a lane's access, otherwise -1.

        The first array is of weak writes, the second of strong ones.
        """
        known, found = self._clocks.known(self._clocks.visible), []
        for row in (area.row(_READERS), *([] if area.strong is None else [area.strong.row(WRITES)])):
            ordered = self.precedes(known, who, row.stamps[units], row.whens[units], who // self._clocks.threads)
            found.append(np.where(ordered, -1, row.sites[units]))
        return found

    def units(self, area: Area, addresses: np.ndarray, size_bytes: int) -> np.ndarray:
        """The whole units of each access: [access, unit]."""
        first, each = self.first_units(area, addresses, size_bytes)
        return first[:, None] + np.arange(each)

    def first_units(self, area: Area, addresses: np.ndarray, size_bytes: int) -> tuple[np.ndarray, int]:
        """Of each access the first whole unit, and how many."""
        return -(-(addresses - area.start) // self._unit), max(1, size_bytes // self._unit)

    def operate(
        self, area: Area, units: tuple[np.ndarray, int], clock: np.ndarray, slot: int, column: int, epoch: int,
        site: int, kind: str, fenced: bool,
    ) -> bool:  # fmt: skip
        """`past` and `remember` of an operation, if it knows of all that is before it; else False, and nothing is
        remembered."""
        place = _READERS if kind != "read" else site % _READERS
        clocks, stamp = self._clocks, epoch << _COLUMN_BITS | column
        when, started = clocks.now << SLOT_BITS | slot, int(clocks.started[slot])
        return area.timed.operate(
            *units, clock, clocks.visible, fenced, clocks.threads, started, place, stamp, when, site
        )

    def touch(self, area: Area, units: tuple[np.ndarray, int], who: np.ndarray, site: int, kind: str) -> int:
        """Remember weak accesses of threads if each follows those before it: 0 if not, see `TimedStamps.touch`."""
        clocks = self._clocks
        if area.strong is not None or clocks.releases.any:
            return 0
        place = _READERS if kind != "read" else site % _READERS
        clock = clocks.rows, clocks.warps, clocks.visible, clocks.threads, clocks.started
        return area.timed.touch(*units, *clock, who, clocks.now, place, site)

    def past(
        self,
        area: Area,
        units: np.ndarray,
        rows: list[Known],
        who: np.ndarray | int,
        slot: np.ndarray | int,
        kind: str,
        fenced: bool = False,
    ) -> PriorAccess | None:
        """Return the first weak access that does not precede as it should, see `late`."""
        found = (self.late(area, row, units, rows, who, slot, fenced) for row in area.rows(kind))
        return next((past for past in found if past is not None), None)

    def late(
        self,
        area: Area,
        row: Row,
        units: np.ndarray,
        rows: list[Known],
        who: np.ndarray | int,
        slot: np.ndarray | int,
        fenced: bool = False,
        excuse: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> PriorAccess | None:
        """Return the first access of a row that does not precede as it should.

        Parameters
        ----------
        rows : list of Known
            What precedes in each respect.
        who : numpy.ndarray or int
            The lane of each of the present accesses.
        slot : numpy.ndarray or int
            The place of the cluster of each.
        fenced : bool
            Whether threads' accesses have to be behind a proxy fence.
        excuse : callable, optional
            Of the indices of accesses without order: whether something else orders each.
        """
        stamps = row.stamps[units]
        if not stamps.any():
            return None
        whens = row.whens[units]
        before = rows[self._clocks.visible if row.kind == "write" else ORDERED]
        ordered = self.precedes(before, who, stamps, whens, slot)
        done = ordered & self.precedes(rows[FENCED], who, stamps, whens, slot, True) if fenced else ordered
        if excuse is not None and not ordered.all():
            apart = np.flatnonzero(~ordered)
            excused = apart[excuse(apart)]
            ordered[excused] = done[excused] = True
        if done.all():
            return None
        at = int(np.flatnonzero(~ordered)[0] if not ordered.all() else np.flatnonzero(~done)[0])
        where = int(np.broadcast_to(slot, len(units))[at])
        return self.described(area, row, int(units[at]), at, where, bool(ordered[at]))

    def precedes(
        self,
        known: Known,
        who: np.ndarray | int,
        stamps: np.ndarray,
        whens: np.ndarray,
        slot: np.ndarray | int,
        fenced: bool = False,
    ) -> np.ndarray:
        """Whether accesses are known to be over, or `fenced`: threads' columns tell of fences of shared memory only."""
        slots, times = whens & (1 << SLOT_BITS) - 1, whens >> SLOT_BITS
        columns = stamps & (1 << _COLUMN_BITS) - 1
        here = (slots == slot) & (times >= self._clocks.started[slot])
        if fenced:
            here &= columns >= self._clocks.threads
        columns = np.where(here, columns, 0)
        before = (stamps == 0) | (here & (known.at(who, columns) >= stamps >> _COLUMN_BITS))
        if before.all():
            return before
        until = known.at(who, self._clocks.threads + slots)
        told = ~before & (until >= times)
        if self._clocks.releases.any and not fenced:
            told[told] = self._covered(stamps[told], slots[told], times[told], until[told])
        return before | told

    def _covered(self, stamps: np.ndarray, slots: np.ndarray, times: np.ndarray, until: np.ndarray) -> np.ndarray:
        """Of accesses before the time until which their cluster is known, those whose thread is covered by a release
        there; of operations that time says enough."""
        columns, epochs = stamps & (1 << _COLUMN_BITS) - 1, stamps >> _COLUMN_BITS
        covered = columns >= self._clocks.threads
        for slot, known in {*zip(slots.tolist(), until.tolist(), strict=True)}:
            some = np.flatnonzero(~covered & (slots == slot) & (until == known))
            releases = self._clocks.releases
            covered[some] = releases.cover(slot, known, times[some], columns[some], epochs[some])
        return covered

    def described(self, area: Area, row: Row, unit: int, at: int, slot: int, ordered: bool) -> PriorAccess:
        """Return the access that a row remembers of a unit, as access `at` of a cluster has met it."""
        stamp, when = int(row.stamps[unit]), int(row.whens[unit])
        whose = when & (1 << SLOT_BITS) - 1
        lives = bool(when >> SLOT_BITS >= self._clocks.started[whose])
        return PriorAccess(
            area.start + unit * self._unit,
            stamp & (1 << _COLUMN_BITS) - 1,
            whose,
            whose == slot and lives,
            int(row.sites[unit]),
            row.kind,
            at,
            ordered,
            stamp >> _COLUMN_BITS,
            lives,
        )

    def written(self, these: AreaCells) -> PriorAccess | None:
        """Return the first write of this launch to units, in order or not."""
        area = these.area
        for row in (area.row(_READERS), *([] if area.strong is None else [area.strong.row(WRITES)])):
            found = np.flatnonzero(row.stamps[these.units])
            if len(found):
                at = int(found[0])
                return self.described(area, row, int(these.units[at]), at, int(these.slots[at]), False)
        return None

    def present(self, area: Area, unit: int, slot: int) -> PriorAccess:
        """The last write, as something that a write by a cluster's thread at the same time has met."""
        return self.described(area, area.row(_READERS), unit, 0, slot, False)

    def writers(self, address: int, size_bytes: int) -> list[Writer]:
        """Who has written some bytes last, each once."""
        area = self.area(address)
        if area is None:
            return []
        units = self.units(area, np.array([address]), size_bytes).ravel()
        stamps, whens, sites = (of[_READERS, units] for of in (area.stamps, area.whens, area.sites))
        found = np.unique(np.stack([stamps, whens, sites])[:, stamps != 0], axis=1).T.tolist()
        slots, columns = (1 << SLOT_BITS) - 1, (1 << _COLUMN_BITS) - 1
        return [
            Writer(when & slots, stamp & columns, stamp >> _COLUMN_BITS, when >> SLOT_BITS, site)
            for stamp, when, site in found
        ]

    def overwritten(
        self, area: Area, units: np.ndarray, columns: np.ndarray, epochs: np.ndarray, slots: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Of writes that are remembered at once, those in whose place another one is, and whose lane that is of."""
        stamps, whens = area.stamps[_READERS, units], area.whens[_READERS, units]
        mine = self._clocks.now << SLOT_BITS | slots
        which = np.flatnonzero((stamps != stamps_of(columns, epochs)) | (whens != mine))
        if not len(which):
            return None
        theirs = whens[which] & (1 << SLOT_BITS) - 1
        return which, theirs * self._clocks.threads + (stamps[which] & (1 << _COLUMN_BITS) - 1)

    def remember(
        self, area: Area, units: np.ndarray, columns: np.ndarray | int, epochs: np.ndarray | int, site: int, kind: str,
        slot: np.ndarray | int,
    ) -> None:  # fmt: skip
        """Remember a weak access; what precedes a write no longer counts."""
        where = _side_by_side(units)
        place = _READERS if kind != "read" else site % _READERS
        area.stamps[place, where] = stamps_of(columns, epochs)
        area.whens[place, where] = self._clocks.now << SLOT_BITS | slot
        area.sites[place, where] = site
        if kind != "read":
            area.stamps[:_READERS, where] = 0
            if area.strong is not None:
                area.strong.stamps[:, where] = 0


def _side_by_side(units: np.ndarray) -> np.ndarray | slice:
    """Cells as a slice, if they are one, as most are: what is put there then takes a fraction of the time."""
    if len(units) > 1 and units[-1] - units[0] == len(units) - 1 and bool((np.diff(units) == 1).all()):
        return slice(int(units[0]), int(units[-1]) + 1)
    return units
