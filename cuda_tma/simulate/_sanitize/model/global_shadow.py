"""The shadow of arrays in global memory, with the last weak write and some later weak reads of each memory unit.

The record of an access may outlive its cluster, so each stamp has a moment: the slot of the cluster and the time.
Accesses of one cluster are compared as in shared memory. For another cluster, a clock contains only one time. An access
of another cluster before this time happens before the present access if a release covers its thread (`releases.py`).
The module `strong_shadow.py` compares strong accesses. The shadow ignores arrays of more than 16 MiB to save memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._memory.global_memory import GlobalMemory, Segment
from ..._warps.lanes import WARP
from ..._warps.observe import Access
from .areas import READERS, WRITES, Area, AreaCells, PriorAccess, Row, Writer
from .clocks import FENCED, ORDERED, Clocks, Known
from .shadow import stamps_of

__all__ = ["SLOT_BITS", "SLOT_MASK", "GlobalShadow"]

_MOST_BYTES = 16 << 20
# Races in the variable cuda_tma_watchdog are not reported, because warps write notes about their waits into it in any
# order.
_NOTES = "the variable cuda_tma_watchdog,"
_COLUMN_BITS, SLOT_BITS = 20, 16
_EVERY = (2 << WRITES) - 1  # The mask selects every strong access that a cell records.
# With the value -1, the number of a warp selects the record of its reads, so a later read replaces an earlier read of
# the same warp.
_BY_WARP = -1
SLOT_MASK = (1 << SLOT_BITS) - 1


class GlobalShadow:
    """The shadow of all arrays in global memory that a launch accesses."""

    def __init__(self, memory: GlobalMemory, clocks: Clocks, unit_bytes: int):
        self._memory, self._clocks, self._unit = memory, clocks, unit_bytes
        self._shift = unit_bytes.bit_length() - 1
        self._areas: dict[int, Area | None] = {}
        self._last: Area | None = None

    def area(self, address: int) -> Area | None:
        """Return the shadow cells of the array at an address; None if the array has no shadow."""
        last = self._last  # Most accesses are to the same array as the last access, so this array is tested first.
        if last is not None and 0 <= address - last.start < len(last.segment.bytes):
            return last
        segment = self._memory.find(address)
        if segment is None or not segment.writeable:
            return None
        if segment.start not in self._areas:
            if segment.name.startswith(_NOTES):
                return None
            watched = len(segment.bytes) <= _MOST_BYTES
            self._areas[segment.start] = Area(segment, self._unit) if watched else None
        self._last = self._areas[segment.start]
        return self._last

    def before(self) -> dict[Segment, bytes] | None:
        """Return the initial bytes of all arrays that the launch accesses; None if an array has no shadow."""
        areas = [*self._areas.values()]
        return None if None in areas else {area.segment: area.before for area in areas if area is not None}

    def late_writes(self, area: Area, units: np.ndarray, who: np.ndarray) -> list[np.ndarray]:
        """Return, for each unit, the statement of the last write if the write does not precede a lane's access.

        The number of the statement is -1 if the last write precedes the access. The first array is for weak writes, the
        second array for strong writes.
        """
        known, found = self._clocks.known(self._clocks.visible), []
        for row in (area.row(READERS), *([] if area.strong is None else [area.strong.row(WRITES)])):
            ordered = self.precedes(known, who, row.stamps[units], row.moments[units], who // self._clocks.threads)
            found.append(np.where(ordered, -1, row.notes[units] >> 1))
        return found

    def units(self, area: Area, addresses: np.ndarray, size_bytes: int) -> np.ndarray:
        """Return the units that each access touches, [access, unit]."""
        first, each = self.first_units(area, addresses, size_bytes)
        return first[:, None] + np.arange(each)

    def first_units(self, area: Area, addresses: np.ndarray, size_bytes: int) -> tuple[np.ndarray, int]:
        """Return the first unit of each access, and the number of units of an access."""
        return (addresses + (self._unit - 1 - area.start)) >> self._shift, max(1, size_bytes >> self._shift)

    def operate(
        self, area: Area, access: Access, clock: np.ndarray, slot: int, column: int, epoch: int, site: int
    ) -> bool:
        """Record an access of an operation if all conflicting accesses happen before it; otherwise return False."""
        place = READERS if access.kind != "read" else site % READERS
        units = self.first_units(area, access.positions, access.size_bytes)
        clocks, stamp = self._clocks, epoch << _COLUMN_BITS | column
        when, started = clocks.now << SLOT_BITS | slot, int(clocks.started[slot])
        rows = clocks.visible, ORDERED, FENCED if access.proxy == "async" else -1
        times = when, started, clocks.threads
        return area.cells.operate(*units, clock, *rows, False, place, False, stamp, site << 1, *times)

    def touch(self, area: Area, addresses: np.ndarray, size_bytes: int, who: np.ndarray, site: int, kind: str) -> int:
        """Record weak accesses as `Shadow.touch` does; also return 0 if the order may depend on a release."""
        clocks, strong, writes, released = self._clocks, area.strong, kind != "read", self._clocks.releases.any
        each, to_units = max(1, size_bytes >> self._shift), (self._unit - 1 - area.start, self._shift)
        if strong is not None:
            places = _EVERY if writes else 1 << WRITES
            if not strong.cells.follow(places, addresses, each, clocks.in_c, who, released, *to_units):
                return 0
        rest = _BY_WARP, site << 1, clocks.now, *to_units, released
        done = area.cells.touch(addresses, each, clocks.in_c, who, False, writes, False, *rest)
        if done and writes and strong is not None:
            strong.cells.clear(_EVERY, *self.first_units(area, addresses, size_bytes))
        return done

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
        """Return the first conflicting weak access that does not precede the present accesses, as `late` finds it."""
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
        """Return the first access of a row that does not precede the present accesses, or lacks a required proxy fence.

        Parameters
        ----------
        rows : list of Known
            All rows of the clocks.
        who : numpy.ndarray or int
            The lane of each of the present accesses.
        slot : numpy.ndarray or int
            The slot of the cluster of each present access.
        fenced : bool
            Whether a proxy fence must follow the accesses of threads.
        excuse : callable, optional
            A function that takes the indices of unordered accesses, and returns whether each access is ordered in
            another way.
        """
        stamps = row.stamps[units]
        if not stamps.any():
            return None
        moments = row.moments[units]
        before = rows[self._clocks.visible if row.kind == "write" else ORDERED]
        ordered = self.precedes(before, who, stamps, moments, slot)
        done = ordered & self.precedes(rows[FENCED], who, stamps, moments, slot, True) if fenced else ordered
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
        moments: np.ndarray,
        slot: np.ndarray | int,
        fenced: bool = False,
    ) -> np.ndarray:
        """Return, for each earlier access, whether it precedes the present access.

        If `fenced` is true, the columns of threads do not count, because their fences are for shared memory.
        """
        slots, times = moments & SLOT_MASK, moments >> SLOT_BITS
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
        """Return, for each access, whether a release of its cluster before the known time `until` covers its thread.

        All given accesses precede the known time, which suffices for the accesses of operations.
        """
        columns, epochs = stamps & (1 << _COLUMN_BITS) - 1, stamps >> _COLUMN_BITS
        covered = columns >= self._clocks.threads
        for slot, known in {*zip(slots.tolist(), until.tolist(), strict=True)}:
            some = np.flatnonzero(~covered & (slots == slot) & (until == known))
            releases = self._clocks.releases
            covered[some] = releases.cover(slot, known, times[some], columns[some], epochs[some])
        return covered

    def described(self, area: Area, row: Row, unit: int, at: int, slot: int, ordered: bool) -> PriorAccess:
        """Return the earlier access in a row that conflicts with the present access `at`."""
        stamp, when = int(row.stamps[unit]), int(row.moments[unit])
        whose = when & SLOT_MASK
        lives = bool(when >> SLOT_BITS >= self._clocks.started[whose])
        return PriorAccess(
            area.start + unit * self._unit,
            stamp & (1 << _COLUMN_BITS) - 1,
            whose,
            whose == slot and lives,
            int(row.notes[unit]) >> 1,
            row.kind,
            at,
            ordered,
            stamp >> _COLUMN_BITS,
            lives,
        )

    def written(self, these: AreaCells) -> PriorAccess | None:
        """Return any write of this launch to one of the units, ordered or unordered; None if no unit is written."""
        area = these.area
        for row in (area.row(READERS), *([] if area.strong is None else [area.strong.row(WRITES)])):
            found = np.flatnonzero(row.stamps[these.units])
            if len(found):
                at = int(found[0])
                return self.described(area, row, int(these.units[at]), at, int(these.slots[at]), False)
        return None

    def present(self, area: Area, unit: int, slot: int) -> PriorAccess:
        """Return the last write of a unit, which conflicts with a write of another warp in the same step."""
        return self.described(area, area.row(READERS), unit, 0, slot, False)

    def writers(self, address: int, size_bytes: int) -> list[Writer]:
        """Return the last writers of some bytes without duplicates."""
        area = self.area(address)
        if area is None:
            return []
        units = self.units(area, np.array([address]), size_bytes).ravel()
        cells = area.cells
        stamps, moments, notes = (of[READERS, units] for of in (cells.values, cells.moments, cells.notes))
        found = np.unique(np.stack([stamps, moments, notes >> 1])[:, stamps != 0], axis=1).T.tolist()
        slots, columns = SLOT_MASK, (1 << _COLUMN_BITS) - 1
        return [
            Writer(when & slots, stamp & columns, stamp >> _COLUMN_BITS, when >> SLOT_BITS, site)
            for stamp, when, site in found
        ]

    def overwritten(
        self, area: Area, units: np.ndarray, columns: np.ndarray, epochs: np.ndarray, slots: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the writes of one step that another write has replaced, and the lanes of the replacing writes."""
        stamps, moments = area.cells.values[READERS, units], area.cells.moments[READERS, units]
        mine = self._clocks.now << SLOT_BITS | slots
        which = np.flatnonzero((stamps != stamps_of(columns, epochs)) | (moments != mine))
        if not len(which):
            return None
        theirs = moments[which] & SLOT_MASK
        return which, theirs * self._clocks.threads + (stamps[which] & (1 << _COLUMN_BITS) - 1)

    def remember(
        self, these: AreaCells, site: int, columns: np.ndarray | int, epochs: np.ndarray | int, kind: str
    ) -> None:
        """Record weak accesses; a write removes the earlier accesses of its units."""
        area, cells, where = these.area, these.area.cells, _side_by_side(these.units)
        place: int | np.ndarray = READERS
        if kind == "read":
            places = these.who // WARP % READERS
            is_one = bool((places == places[0]).all())
            place, where = (int(places[0]), where) if is_one else (places, these.units)
        cells.values[place, where] = stamps_of(columns, epochs)
        cells.moments[place, where] = self._clocks.now << SLOT_BITS | these.slots
        cells.notes[place, where] = site << 1
        if kind != "read":
            cells.values[:READERS, where] = 0
            if area.strong is not None:
                area.strong.cells.values[:, where] = 0


def _side_by_side(units: np.ndarray) -> np.ndarray | slice:
    """Return the units as a slice if they are adjacent, because assignments to a slice take less time."""
    if len(units) > 1 and units[-1] - units[0] == len(units) - 1 and bool((np.diff(units) == 1).all()):
        return slice(int(units[0]), int(units[-1]) + 1)
    return units
