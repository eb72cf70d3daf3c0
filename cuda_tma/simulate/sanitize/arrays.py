"""Accesses to arrays in global memory, beside what is remembered of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._lanes import WARP, as_array
from .._observe import Access
from .clocks import Clocks, Known
from .global_shadow import Area, GlobalShadow, Past
from .ledger import Ledger
from .locations import Locations
from .operations import Mark
from .values import Values, leaves_as_it_is, same_as
from .words import Words

__all__ = ["InArrays"]


class _Units(NamedTuple):
    """Units that threads access at once: which, whose, and the places of their clusters."""

    area: Area
    units: np.ndarray
    who: np.ndarray
    slots: np.ndarray

    def only(self, some: np.ndarray) -> _Units:
        """Those for which something holds."""
        return _Units(self.area, self.units[some], self.who[some], self.slots[some])


class InArrays:
    """Weak accesses, and operations. Threads' atomics, and what they write as volatile or relaxed, race with nothing
    here; what they read so, with weak writes that nobody has released."""

    def __init__(self, shadow: GlobalShadow, clocks: Clocks, ledger: Ledger, words: Words, strict: bool):
        self._shadow, self._clocks, self._ledger = shadow, clocks, ledger
        self._words, self._strict = words, strict

    def by_threads(self, access: Access) -> None:
        """Through the generic proxy."""
        if (these := self._these(access)) is None:
            return
        area, who = these.area, these.who
        if (past := self._past(these, access)) is not None:
            self._after(past, these, access)
        site, columns, epochs = self._ledger.site(access.instruction), who % self._clocks.threads, self._clocks.own(who)
        self._shadow.remember(area, these.units, columns, epochs, site, access.kind, these.slots)
        if access.values is not None:
            self._at_once(these, columns, epochs, access, access.values)

    def by_strong_reads(self, access: Access, locations: Locations) -> None:
        """Of threads, volatile or relaxed. A weak write must have been released before, by a fence and an atomic, say;
        that who reads has no fence is as the CUDA C++ Programming Guide does it ("Memory Fence Functions")."""
        if (these := self._these(access)) is None or (past := self._past(these, access)) is None:
            return
        if past.column < self._clocks.threads and past.lives and not locations.gave(past.slot, past.column, past.epoch):
            self._after(past, these, access)

    def _these(self, access: Access) -> _Units | None:
        area = self._shadow.area(int(access.positions[0]))
        if area is None:
            return None
        units = self._shadow.units(area, access.positions, access.size_bytes)
        who = np.repeat(as_array(access.lanes), units.shape[1])
        return _Units(area, units.ravel(), who, who // self._clocks.threads)

    def _past(self, these: _Units, access: Access) -> Past | None:
        known = self._clocks.all_known()
        return self._shadow.past(these.area, these.units, known, these.who, these.slots, access.kind)

    def _after(self, past: Past, these: _Units, access: Access) -> None:
        """A write of what is there already is told apart from others."""
        lane = int(these.who[past.which])
        if access.values is None or past.kind == "read" or past.column >= self._clocks.threads:
            self._words.global_race(past, lane, None, access.kind, access.instruction, self._strict)
            return
        segment = these.area.segment
        same = leaves_as_it_is(segment.bytes, access.positions - segment.start, access.values)
        other = these.only(~np.repeat(same, len(these.who) // len(same)))
        if len(other.who) and (new := self._past(other, access)) is not None:
            lane = int(other.who[new.which])
            self._words.global_race(new, lane, None, access.kind, access.instruction, self._strict)
        else:
            self._words.global_same_value(past, lane, access.instruction, self._strict)

    def _at_once(self, these: _Units, columns: np.ndarray, epochs: np.ndarray, access: Access, values: Values) -> None:
        """Warps that execute a store in the same step; of the lanes of one, one writes (PTX ISA, "st")."""
        found = self._shadow.overwritten(these.area, these.units, columns, epochs, these.slots)
        if found is None:
            return
        which, theirs = found
        apart = these.who[which] // WARP != theirs // WARP
        which, theirs = which[apart], theirs[apart]
        if not len(which):
            return
        same = same_as(values, as_array(access.lanes), these.who[which], theirs)
        at = int(np.argmin(same))  # the first that differs
        past = self._shadow.present(these.area, int(these.units[which[at]]), int(these.slots[which[at]]))
        lane = int(these.who[which[at]])
        if same.all():
            self._words.global_same_value(past, lane, access.instruction, self._strict)
        else:
            self._words.global_race(past, lane, None, "write", access.instruction, self._strict)

    def by_a_warp(self, access: Access, mark: Mark) -> None:
        """Of ``tensormap.cp_fenceproxy``, whose threads write the same, together."""
        if (these := self._these(access)) is None:
            return
        column, slot = mark.lane % self._clocks.threads, self._clocks.slot_of(mark.lane)
        site, (epoch,) = self._ledger.site(access.instruction), self._clocks.own(np.array([mark.lane]))
        self._shadow.remember(these.area, these.units, column, epoch, site, access.kind, slot)

    def by_operation(self, access: Access, mark: Mark, column: int, epoch: int) -> None:
        """Of TMA, and of bulk copies; `column` and `epoch` say when one is complete."""
        area = self._shadow.area(int(access.positions[0]))
        if area is None:
            return
        slot, clock = self._clocks.slot_of(mark.lane), self._clocks.fitting(mark.clock)
        site, fenced = self._ledger.site(access.instruction), access.proxy == "async"
        reduces = access.kind == "atomic"  # element by element: such do not race with each other
        first = self._shadow.first_units(area, access.positions, access.size_bytes)
        operation = area, first, clock, slot, column, epoch, site, access.kind, fenced, reduces
        if not self._clocks.releases.any and self._shadow.operate(*operation):
            return
        units = self._shadow.units(area, access.positions, access.size_bytes).ravel()
        past = self._shadow.past(area, units, [*map(Known.of, clock)], 0, slot, access.kind, fenced, reduces)
        if past is not None:
            verb = "write" if reduces else access.kind
            of_others = self._of_others(past, access, area, units, mark) if access.unchanged is not None else past
            if of_others is not None:
                self._words.global_race(of_others, mark.lane, mark, verb, access.instruction, self._strict)
            else:
                self._words.global_same_value(past, mark.lane, access.instruction, self._strict, mark)
        self._shadow.remember(area, units, column, epoch, site, access.kind, slot, reduces)

    def _of_others(self, past: Past, access: Access, area: Area, units: np.ndarray, mark: Mark) -> Past | None:
        """Return what a store by an operation meets where it changes bytes, or meets something else than a write."""
        if past.kind == "read" or past.is_ordered or access.unchanged is None:
            return past
        changed = ~np.repeat(same := access.unchanged(), len(units) // len(same))
        slot, clock = self._clocks.slot_of(mark.lane), [*map(Known.of, self._clocks.fitting(mark.clock))]
        return self._shadow.past(area, units[changed], clock, 0, slot, access.kind, access.proxy == "async")
