"""What is remembered of global memory: who wrote each unit last, and some of those who have read it since.

Who was there may be gone: with its column and epoch an access has the place of its cluster and the time. Threads of
the same cluster are told apart as in shared memory; of others it counts until when their cluster is known, and whether
a release there covers the thread (`releases.py`). Large arrays are not watched, for want of memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._global_memory import GlobalMemory, Segment
from ._stamps import TimedStamps
from .clocks import FENCED, ORDERED, Clocks, Known
from .shadow import stamps_of

__all__ = ["SLOT_BITS", "Area", "GlobalShadow", "Past", "Writer"]

_MOST_BYTES = 16 << 20
_READERS = 2
_COLUMN_BITS, SLOT_BITS = 20, 16


class Past(NamedTuple):
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


class Writer(NamedTuple):
    """Who wrote something last: the place of its cluster, its column, the column's value, the time, the statement."""

    slot: int
    column: int
    epoch: int
    time: int
    site: int


class Area:
    """Of one array."""

    def __init__(self, segment: Segment, unit_bytes: int):
        self.start, self.segment = segment.start, segment
        self.before = segment.bytes.tobytes()  # the launch begins with them: the first access has no effect yet
        self.timed = TimedStamps(_READERS + 1, -(-len(segment.bytes) // unit_bytes) + 1)
        self.stamps, self.whens, self.sites = self.timed.stamps, self.timed.whens, self.timed.sites


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
            watched = len(segment.bytes) <= _MOST_BYTES
            self._areas[segment.start] = Area(segment, self._unit) if watched else None
        return self._areas[segment.start]

    def before(self) -> dict[Segment, bytes] | None:
        """Return the bytes of all touched arrays before the launch; None if one of these arrays is not watched."""
        areas = [*self._areas.values()]
        return None if None in areas else {area.segment: area.before for area in areas if area is not None}

    def late_writes(self, area: Area, units: np.ndarray, who: np.ndarray) -> np.ndarray:
        """Return the statement of the last write of each unit that does not precede a lane's access, otherwise -1."""
        stamps, whens = area.stamps[_READERS, units], area.whens[_READERS, units]
        known = self._clocks.known(self._clocks.visible)
        ordered = self.precedes(known, who, stamps, whens, who // self._clocks.threads)
        return np.where(ordered, -1, area.sites[_READERS, units] >> 1)

    def units(self, area: Area, addresses: np.ndarray, size_bytes: int) -> np.ndarray:
        """The whole units of each access: [access, unit]."""
        first, each = self.first_units(area, addresses, size_bytes)
        return first[:, None] + np.arange(each)

    def first_units(self, area: Area, addresses: np.ndarray, size_bytes: int) -> tuple[np.ndarray, int]:
        """Of each access the first whole unit, and how many."""
        return -(-(addresses - area.start) // self._unit), max(1, size_bytes // self._unit)

    def operate(
        self, area: Area, units: tuple[np.ndarray, int], clock: np.ndarray, slot: int, column: int, epoch: int,
        site: int, kind: str, fenced: bool, strong: bool,
    ) -> bool:  # fmt: skip
        """`past` and `remember` of an operation, if it knows of all that is before it; else False, and nothing is
        remembered."""
        place = _READERS if kind != "read" else site % _READERS
        clocks, stamp = self._clocks, epoch << _COLUMN_BITS | column
        when, started = clocks.now << SLOT_BITS | slot, int(clocks.started[slot])
        note = site << 1 | strong
        return area.timed.operate(
            *units, clock, clocks.visible, fenced, strong, clocks.threads, started, place, stamp, when, note
        )

    def past(
        self,
        area: Area,
        units: np.ndarray,
        rows: list[Known],
        who: np.ndarray | int,
        slot: np.ndarray | int,
        kind: str,
        fenced: bool = False,
        strong: bool = False,
    ) -> Past | None:
        """The first access that does not precede as it should.

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
        strong : bool
            Whether these do not race with what is strong, too.
        """
        for place in range(_READERS + 1) if kind != "read" else (_READERS,):
            stamps = area.stamps[place, units]
            if not stamps.any():
                continue
            whens = area.whens[place, units]
            before = rows[self._clocks.visible if place == _READERS else ORDERED]
            ordered = self.precedes(before, who, stamps, whens, slot)
            done = ordered & self.precedes(rows[FENCED], who, stamps, whens, slot, True) if fenced else ordered
            if strong:
                at_will = area.sites[place, units] & 1 == 1
                ordered, done = ordered | at_will, done | at_will
            if not done.all():
                at = int(np.flatnonzero(~ordered)[0] if not ordered.all() else np.flatnonzero(~done)[0])
                return self._described(
                    area, place, int(units[at]), at, int(np.broadcast_to(slot, len(units))[at]), bool(ordered[at])
                )
        return None

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

    def _described(self, area: Area, place: int, unit: int, at: int, slot: int, ordered: bool) -> Past:
        stamp, when = int(area.stamps[place, unit]), int(area.whens[place, unit])
        whose = when & (1 << SLOT_BITS) - 1
        lives = bool(when >> SLOT_BITS >= self._clocks.started[whose])
        return Past(
            area.start + unit * self._unit,
            stamp & (1 << _COLUMN_BITS) - 1,
            whose,
            whose == slot and lives,
            int(area.sites[place, unit]) >> 1,
            "write" if place == _READERS else "read",
            at,
            ordered,
            stamp >> _COLUMN_BITS,
            lives,
        )

    def present(self, area: Area, unit: int, slot: int) -> Past:
        """The last write, as something that a write by a cluster's thread at the same time has met."""
        return self._described(area, _READERS, unit, 0, slot, False)

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
            Writer(when & slots, stamp & columns, stamp >> _COLUMN_BITS, when >> SLOT_BITS, site >> 1)
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
        slot: np.ndarray | int, strong: bool = False,
    ) -> None:  # fmt: skip
        """An access."""
        where = _side_by_side(units)
        place = _READERS if kind != "read" else site % _READERS
        area.stamps[place, where] = stamps_of(columns, epochs)
        area.whens[place, where] = self._clocks.now << SLOT_BITS | slot
        area.sites[place, where] = site << 1 | strong
        if kind != "read":
            area.stamps[:_READERS, where] = 0


def _side_by_side(units: np.ndarray) -> np.ndarray | slice:
    """Units as a slice, if they are one, as most are: what is put there then takes a fraction of the time."""
    if len(units) > 1 and units[-1] - units[0] == len(units) - 1 and bool((np.diff(units) == 1).all()):
        return slice(int(units[0]), int(units[-1]) + 1)
    return units
