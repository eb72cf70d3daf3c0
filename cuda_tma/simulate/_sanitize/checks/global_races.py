"""The checks of accesses to arrays in global memory against the earlier accesses in the shadow."""

from __future__ import annotations

import numpy as np

from ..._ptx import Instruction
from ..._warps.lanes import WARP, as_array
from ..._warps.observe import Access
from ..model.areas import Area, AreaCells, PriorAccess
from ..model.clocks import GPU, Clocks, Known, scope_of
from ..model.global_shadow import GlobalShadow
from ..model.locations import Locations
from ..model.operations import IssueRecord
from ..model.shadow import TAKEN
from ..model.strong_shadow import ANY_BYTES, StrongShadow, shapes_of
from ..model.units import is_strong
from ..model.values import Values, leaves_as_it_is, same_as
from ..report.collector import FindingCollector
from ..report.global_facts import GlobalFacts
from ..report.global_violations import GlobalSameValue, NonCoherentLoad, NotMorallyStrong
from .uses import Use

__all__ = ["GlobalRaceChecker"]


class GlobalRaceChecker:
    """The checks of weak accesses, strong accesses and asynchronous operations on arrays in global memory.

    Parameters
    ----------
    shadow : GlobalShadow
    strong : StrongShadow
    clocks : Clocks
    collector : FindingCollector
    facts : GlobalFacts
    locations : Locations
    strict : bool
    """

    def __init__(
        self,
        shadow: GlobalShadow,
        strong: StrongShadow,
        clocks: Clocks,
        collector: FindingCollector,
        facts: GlobalFacts,
        locations: Locations,
        strict: bool,
    ):
        self._shadow, self._strong, self._clocks, self._collector = shadow, strong, clocks, collector
        self._facts, self._locations, self._strict = facts, locations, strict

    def by_threads(self, area: Area | None, access: Access, use: Use) -> None:
        """Check and record weak accesses through the generic proxy; `area` is None if the array has no shadow."""
        if area is None:
            return
        lanes, is_coherent, site = as_array(access.lanes), use.is_coherent, use.site
        positions, size = access.positions, access.size_bytes
        taken = self._shadow.touch(area, positions, size, lanes, site, access.kind) if is_coherent else 0
        if taken == TAKEN or (taken and access.values is None):
            return
        these = self._these(area, access)
        stamped = site, *self._stamped(these)
        if not taken:
            self._compare(these, access, is_coherent)
            self._shadow.remember(these, *stamped, access.kind)
        if access.values is not None:
            self._at_once(these, *stamped[1:], access, access.values)

    def _compare(self, these: AreaCells, access: Access, is_coherent: bool) -> None:
        stale = None if is_coherent else self._shadow.written(these)
        if stale is not None:
            self._report_stale(stale, int(these.who[stale.which]), access.instruction)
        elif (past := self._past(these, access)) is not None:
            self._after(past, these, access)

    def by_strong_threads(self, area: Area | None, access: Access) -> None:
        """Check strong accesses, including atomics, for races, and then apply their synchronization."""
        if area is None:
            self._sync(access)
            return
        these = self._these(area, access)
        scope, number = scope_of(access.instruction.opcode, GPU), len(access.positions)
        shapes = shapes_of(scope, len(these.units) // number, number)
        if access.kind == "read":
            self._sync(access)
        known = self._clocks.all_known()
        weak = self._unreleased(these, access) if access.kind == "read" else self._strong.before_strong(these, known)
        if weak is not None:
            self._after(weak, these, access)
        elif (found := self._strong.apart(these, known, shapes, access.kind)) is not None:
            past, lacks = found
            self._report_apart(past, these, lacks, access)
        columns, epochs = self._stamped(these)
        site = self._collector.site(access.instruction)
        self._strong.remember(these, columns, epochs, site, access.kind, shapes)
        if access.kind == "read":
            return
        if (at_once := self._strong.apart_at_once(these, scope)) is not None:
            self._report_apart(at_once, these, "scope", access)
        self._sync(access)

    def _sync(self, access: Access) -> None:
        self._locations.sync("global", access.lanes, access.positions, access.instruction)

    def _stamped(self, these: AreaCells) -> tuple[np.ndarray, np.ndarray]:
        return these.who % self._clocks.threads, self._clocks.own(these.who)

    def _unreleased(self, these: AreaCells, access: Access) -> PriorAccess | None:
        """Return a weak write that does not precede strong reads, if no release covers the write; otherwise None.

        A release is a fence and an atomic operation after the write. The reading thread needs no fence, as in an
        example of the CUDA C++ Programming Guide ("Memory Fence Functions").
        """
        known = self._clocks.all_known()
        past = self._shadow.past(these.area, these.units, known, these.who, these.slots, access.kind)
        if past is None or past.column >= self._clocks.threads or not past.lives:
            return None
        return None if self._locations.gave(past.slot, past.column, past.epoch) else past

    def _these(self, area: Area, access: Access) -> AreaCells:
        units = self._shadow.units(area, access.positions, access.size_bytes)
        lanes = np.repeat(as_array(access.lanes), units.shape[1])
        return AreaCells(area, units.ravel(), lanes, lanes // self._clocks.threads)

    def _past(self, these: AreaCells, access: Access) -> PriorAccess | None:
        """Return the first prior access that conflicts with these weak accesses and does not precede them."""
        known = self._clocks.all_known()
        past = self._shadow.past(these.area, these.units, known, these.who, these.slots, access.kind)
        return past if past is not None else self._strong.before_weak(these, known, access.kind)

    def _after(self, past: PriorAccess, these: AreaCells, access: Access) -> None:
        """Report a race; if the later write does not change the bytes, report two writes of the same value."""
        lane, now = int(these.who[past.which]), access.instruction
        if access.values is None or past.kind == "read" or past.column >= self._clocks.threads:
            self._report(past, lane, None, access.kind, now)
            return
        segment = these.area.segment
        same = leaves_as_it_is(segment.bytes, access.positions - segment.start, access.values)
        other = these.only(~np.repeat(same, len(these.who) // len(same)))
        if len(other.who) and (new := self._past_of_write(other, access)) is not None:
            self._report(new, int(other.who[new.which]), None, access.kind, now)
        else:
            self._report_same_value(past, lane, now)

    def _past_of_write(self, these: AreaCells, access: Access) -> PriorAccess | None:
        if is_strong(access.instruction):
            return self._strong.before_strong(these, self._clocks.all_known())
        return self._past(these, access)

    def _at_once(
        self, these: AreaCells, columns: np.ndarray, epochs: np.ndarray, access: Access, values: Values
    ) -> None:
        """Compare the stores that several warps make in one step.

        Stores of one warp are not compared, because one of its lanes performs the write (PTX ISA, "st").
        """
        found = self._shadow.overwritten(these.area, these.units, columns, epochs, these.slots)
        if found is None:
            return
        which, theirs = found
        apart = these.who[which] // WARP != theirs // WARP
        which, theirs = which[apart], theirs[apart]
        if not len(which):
            return
        same = same_as(values, as_array(access.lanes), these.who[which], theirs)
        # A conflict in which the values differ comes first, because writes of the same value get another message.
        at = int(np.argmin(same))
        past = self._shadow.present(these.area, int(these.units[which[at]]), int(these.slots[which[at]]))
        lane = int(these.who[which[at]])
        if same.all():
            self._report_same_value(past, lane, access.instruction)
        else:
            self._report(past, lane, None, "write", access.instruction)

    def _report(self, past: PriorAccess, lane: int, mark: IssueRecord | None, access: str, now: Instruction) -> None:
        self._collector.report(self._facts.race(past, lane, mark, access, now, self._strict))

    def _report_same_value(
        self, past: PriorAccess, lane: int, now: Instruction, mark: IssueRecord | None = None
    ) -> None:
        disputed = not self._strict
        self._collector.report(self._facts.of(GlobalSameValue, past, lane, mark, "write", now, is_disputed=disputed))

    def _report_apart(self, past: PriorAccess, these: AreaCells, lacks: str, access: Access) -> None:
        lane, kind, now = int(these.who[past.which]), access.kind, access.instruction
        self._collector.report(self._facts.of(NotMorallyStrong, past, lane, None, kind, now, lacks=lacks))

    def _report_stale(self, past: PriorAccess, lane: int, now: Instruction) -> None:
        related = self._facts.after(lane, None)
        self._collector.report(self._facts.of(NonCoherentLoad, past, lane, None, "read", now, related=related))

    def by_a_warp(self, access: Access, mark: IssueRecord) -> None:
        """Record the write of a ``tensormap.cp_fenceproxy``, which the threads of a warp perform together."""
        if (area := self._shadow.area(int(access.positions[0]))) is None:
            return
        these = self._these(area, access)
        column, slot = mark.lane % self._clocks.threads, self._clocks.slot_of(mark.lane)
        site, (epoch,) = self._collector.site(access.instruction), self._clocks.own(np.array([mark.lane]))
        self._shadow.remember(these._replace(slots=np.full_like(these.units, slot)), site, column, epoch, access.kind)

    def by_operation(
        self, area: Area | None, access: Access, use: Use, mark: IssueRecord, slot: int, column: int, epoch: int
    ) -> None:
        """Check and record an access of a TMA or bulk copy, which completes when `column` has the value `epoch`."""
        if area is None:
            return
        clock, site, fenced = self._clocks.fitting(mark.clock), use.site, access.proxy == "async"
        reduces = access.kind == "atomic"
        is_plain = not (reduces or area.strong is not None or self._clocks.releases.any)
        if is_plain and self._shadow.operate(area, access, clock, slot, column, epoch, site):
            return
        units = self._shadow.units(area, access.positions, access.size_bytes).ravel()
        known = [*map(Known.of, clock)]
        past = self._shadow.past(area, units, known, 0, slot, access.kind, fenced)
        these = AreaCells(area, units, np.zeros_like(units), np.full_like(units, slot))
        if past is not None:
            self._after_operation(past, access, these, known, mark)
        elif not reduces and (past := self._strong.before_weak(these, known, access.kind, fenced)) is not None:
            self._report(past, mark.lane, mark, access.kind, access.instruction)
        if reduces:
            self._strong.remember(these, column, epoch, site, "write", ANY_BYTES)
        else:
            self._shadow.remember(these, site, column, epoch, access.kind)

    def _after_operation(
        self, past: PriorAccess, access: Access, these: AreaCells, known: list[Known], mark: IssueRecord
    ) -> None:
        of_others = self._of_others(past, access, these, known) if access.unchanged is not None else past
        if of_others is not None:
            self._report(of_others, mark.lane, mark, access.kind, access.instruction)
        else:
            self._report_same_value(past, mark.lane, access.instruction, mark)

    def _of_others(self, past: PriorAccess, access: Access, these: AreaCells, known: list[Known]) -> PriorAccess | None:
        """Return the prior access that races with the store of an operation.

        An unordered prior write races only with bytes that the store changes.
        """
        if past.kind == "read" or past.is_ordered or access.unchanged is None:
            return past
        changed = these.only(~np.repeat(same := access.unchanged(), len(these.units) // len(same)))
        slots, fenced = changed.slots, access.proxy == "async"
        return self._shadow.past(changed.area, changed.units, known, 0, slots, access.kind, fenced)
