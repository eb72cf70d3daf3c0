"""The checks of accesses to shared memory against the earlier accesses in the shadow."""

from __future__ import annotations

import numpy as np

from ..._copies.parts import Parts
from ..._ptx import Instruction
from ..._warps.lanes import WARP, WARPGROUP
from ..._warps.observe import Access
from ..model.clocks import FENCED, ORDERED, Clocks, Known
from ..model.history import History
from ..model.operations import IssueRecord
from ..model.shadow import COLUMN_BITS, READERS, STRONG, TAKEN, WEAK, Cells, Conflict, Shadow, stamps_of
from ..model.values import Values, leaves_as_it_is, same_as
from ..model.warpgroups import Warpgroups
from ..report.collector import FindingCollector
from ..report.shared_facts import SharedFacts
from ..report.shared_violations import (
    NarrowScope,
    OnlyWarpgroupTogether,
    SameValue,
    SharedFenceMissing,
    SharedPair,
)
from ..report.violations import RemoteUseAfterExit, UnwrittenSharedMemory
from .collectives import Collectives
from .remote import Remote
from .undefined import UndefinedReads
from .uses import Use, Uses
from .volatiles import VolatileLoads

__all__ = ["SharedRaceChecker"]

_READ, _WRITE = "read", "write"
# A _Noted tuple contains the last five arguments of the method `Shadow.operate`.
_Noted = tuple[tuple[int, int], int, int, int, int]
_ONE = np.zeros(1, np.int64)  # The clock of an asynchronous operation has only one lane, with the number 0.


class SharedRaceChecker:
    """The checks of accesses to shared memory by threads, and by the operations that threads have issued."""

    def __init__(
        self,
        parts: Parts,
        clocks: Clocks,
        shadow: Shadow,
        collector: FindingCollector,
        history: History,
        facts: SharedFacts,
        remote: Remote,
        collectives: Collectives,
        undefined: UndefinedReads,
        uses: Uses,
        volatiles: VolatileLoads,
        strict: bool,
    ):
        self._parts, self._clocks, self._shadow, self._collector = parts, clocks, shadow, collector
        self._history, self._facts, self._remote, self._strict = history, facts, remote, strict
        self._collectives, self._undefined = collectives, undefined
        self._warpgroups = Warpgroups(clocks)
        self._uses, self._volatiles = uses, volatiles

    # ---- threads ----

    def by_threads(
        self, lanes: np.ndarray, positions: np.ndarray, size_bytes: int, use: Use, values: Values | None = None
    ) -> None:
        """Check and record accesses of threads through the generic proxy.

        If each access follows all prior accesses, the method calls the shadow only once.
        """
        clocks, shadow, writes = self._clocks, self._shadow, use.kind != _READ
        if (ended := self._remote.access(lanes, positions, use.instruction, use.kind)) is not None:
            by, lane, cta = ended
            self._collector.report(RemoteUseAfterExit(now=by, lane=lane, cta=cta))
        strong, reads = use.is_lenient, use.reads_written
        done = shadow.touch(positions, size_bytes, clocks, lanes, strong, writes, reads, use.note)
        if done == TAKEN:
            return
        units = shadow.units(positions, size_bytes)
        if not done:
            self._judge(units, lanes, positions, use, values)
        if values is not None and not use.is_strong:
            self._at_once(units, lanes, use.instruction, values)

    def _judge(self, units: Cells, lanes: np.ndarray, positions: np.ndarray, use: Use, values: Values | None) -> None:
        """Report the accesses that are unordered with a prior access, and record all accesses."""
        clocks, shadow, (instruction, kind, site, *_) = self._clocks, self._shadow, use
        known, strong = clocks.known(clocks.visible), STRONG if use.is_strong else WEAK
        if (found := shadow.after_write(units, known, lanes, strong)) is not None:
            self._after_write(found, lanes, positions, kind, instruction, values)
        elif strong and kind == _READ and (found := self._volatiles.races(units, known, lanes, instruction)):
            self._conflict(found, lanes, kind, instruction)
        stamps = stamps_of(lanes % clocks.threads, clocks.own(lanes))
        if use.reads_written and (unwritten := shadow.unwritten(units)).any():
            self._read_unwritten(lanes, units, unwritten, instruction)
        if kind == _READ:
            shadow.read(units, lanes // WARP % READERS, stamps, site, strong)
            return
        for found in shadow.after_reads(units, known, lanes, strong):
            self._conflict(found, lanes, kind, instruction)
        shadow.write(units, stamps, site, strong)

    def _after_write(
        self,
        found: Conflict,
        lanes: np.ndarray,
        positions: np.ndarray,
        kind: str,
        instruction: Instruction,
        values: Values | None,
    ) -> None:
        """Report a race with a prior write; if the later write changes no byte, report two writes of the same value."""
        if values is None or (found.columns >= self._clocks.threads).any():
            self._conflict(found, lanes, kind, instruction)
            return
        same = leaves_as_it_is(self._parts.memory.shared.bytes, positions, values)[found.which]
        if not same.all():
            self._conflict(found.only(~same), lanes, kind, instruction)
        else:
            self._report_same_value(found, int(lanes[found.which[0]]), instruction)

    def _conflict(self, found: Conflict, by: np.ndarray, kind: str, instruction: Instruction) -> None:
        lanes, known = by[found.which], self._clocks.known(ORDERED)
        late = known.at(lanes, found.columns) < found.epochs
        for lane in np.unique(lanes[late]).tolist():
            clock = known.at(np.full(self._clocks.threads, lane), self._clocks.each)
            mine = found.only(late & (lanes == lane))
            # Only the finding of the first lane contains the conflicts of the remaining lanes.
            rest = found if lane == lanes[0] else mine
            if not self._race(mine, rest, clock, lane, None, kind, instruction):
                return
        if not late.any():
            lane = int(lanes[0])
            self._report(NarrowScope, found, lane, None, kind, instruction, self._is_disputed(found, lane))

    def _race(
        self, found: Conflict, rest: Conflict, clock: np.ndarray, lane: int, mark: IssueRecord | None, kind: str,
        instruction: Instruction,
    ) -> bool:  # fmt: skip
        """Report a race; report advice and return True if instructions of whole warps order all prior accesses."""
        together, site = self._collectives.of(found, clock, lane)
        if together.all() and site is not None:
            by = self._collector.instruction(site)
            violation = self._facts.together(found, lane, mark, kind, instruction, by, not self._strict)
            self._collector.report(violation)
            return True
        late = found.only(~together) if together.any() else rest
        self._collector.report(self._facts.race(late, lane, mark, kind, instruction))
        return False

    def _at_once(self, units: Cells, lanes: np.ndarray, instruction: Instruction, values: Values) -> None:
        """Compare the stores that several warps make in one step.

        Stores of one warp are not compared, because one of its lanes performs the write (PTX ISA, "st").
        """
        stamps = stamps_of(lanes % self._clocks.threads, self._clocks.own(lanes))
        if (met := self._shadow.overwritten(units, stamps)) is None:
            return
        mine = lanes[met.which]
        theirs = mine // self._clocks.threads * self._clocks.threads + met.columns
        apart = mine // WARP != theirs // WARP
        if not apart.any():
            return
        same = same_as(values, lanes, mine[apart], theirs[apart])
        if same.all():
            self._report_same_value(met.only(apart), int(mine[apart][0]), instruction)
        else:
            found, lane = met.only(apart).only(~same), int(mine[apart][~same][0])
            self._collector.report(self._facts.race(found, lane, None, _WRITE, instruction))

    def _is_disputed(self, found: Conflict, lane: int) -> bool:
        """Return whether the rule is disputed, as for a read before a write, and for bytes of ``st.async``.

        No rule states when a read before a write is complete. An mbarrier counts the bytes of ``st.async`` as it counts
        the bytes of a copy.
        """
        return not self._strict and (found.before == _READ or self._facts.was_sent(found, lane))

    def _report(
        self, kind: type[SharedPair], found: Conflict, lane: int, mark: IssueRecord | None, access: str,
        now: Instruction, is_disputed: bool,
    ) -> None:  # fmt: skip
        related = self._facts.after(lane, mark)
        self._collector.report(
            self._facts.of(kind, found, lane, mark, access, now, related=related, is_disputed=is_disputed)
        )

    def _report_same_value(self, found: Conflict, lane: int, now: Instruction) -> None:
        disputed = not self._strict
        self._collector.report(self._facts.of(SameValue, found, lane, None, _WRITE, now, is_disputed=disputed))

    # ---- operations ----

    def by_operation(self, access: Access, mark: IssueRecord, column: int, epoch: int) -> None:
        """Check and record an access of an operation, which completes when `column` has the value `epoch`."""
        clocks, shadow = self._clocks, self._shadow
        clock = clocks.fitting(mark.clock)
        if len(access.positions) == 1:
            units = shadow.range(int(access.positions[0]), access.size_bytes)
        else:
            units = shadow.units(access.positions, access.size_bytes)
        use = self._uses.of(access.instruction, access.kind)
        site, strong = use.site, use.strength
        proxy, place = FENCED if access.proxy == "async" else ORDERED, READERS
        if access.kind == _READ:
            place = (column if access.proxy == "async" else mark.lane // WARP) % READERS
        noted = (proxy, clocks.visible), strong, place, epoch << COLUMN_BITS | column, site
        if access.instruction.opcode[0] == "wgmma":
            if self._follows_in_each_thread(units, access, mark, clock, noted):
                return
        elif shadow.operate(units, clock, *noted):
            return
        known = Known.of(np.minimum(clock[proxy], clock[clocks.visible]))
        found = [shadow.after_write(units, known, _ONE, strong)]
        if access.kind != _READ:
            found += shadow.after_reads(units, known, _ONE, strong)
        for conflict in found:
            if conflict is not None:
                self._conflict_of_operation(conflict, access, mark, clock)
        if access.kind == _READ and (unwritten := shadow.unwritten(units)).any():
            self._read_unwritten(np.full(len(unwritten), mark.lane), units, unwritten, access.instruction, True)
        stamps = stamps_of(column, [epoch])
        if access.kind == _READ:
            shadow.read(units, np.array([place]), stamps, site, strong)
        else:
            shadow.write(units, stamps, site, strong)

    def _follows_in_each_thread(
        self, units: Cells, access: Access, mark: IssueRecord, clock: np.ndarray, noted: _Noted
    ) -> bool:
        """Record a product if each prior write precedes the product in at least one thread of its warpgroup.

        Otherwise return False. Report writes that precede the product only in some threads.
        """
        clocks, lanes = self._clocks, slice(mark.lane, mark.lane + WARPGROUP)
        if self._shadow.operate(units, self._warpgroups.known_to_each_warp(lanes, mark.clock), *noted):
            return True
        each = self._warpgroups.known_to_each(lanes)
        if self._shadow.operate(units, each, *noted):
            return True
        if not self._shadow.operate(units, clock, *noted):
            return False
        found = self._shadow.after_write(units, Known.of(each[clocks.visible]), _ONE)
        if found is not None:
            now, disputed = access.instruction, not self._strict
            self._report(OnlyWarpgroupTogether, found, mark.lane, mark, _READ, now, disputed)
        return True

    def _read_unwritten(
        self, lanes: np.ndarray, units: Cells, unwritten: np.ndarray, by: Instruction, is_operation: bool = False
    ) -> None:
        """Report a read of bytes that were never written, with the statement that wrote the nearest bytes."""
        size = self._shadow.unit_bytes
        self._undefined.of_memory(by, units.all[unwritten] * size, size)
        site = self._shadow.writer_beside(int(units.all[unwritten][0]))
        beside = None if site is None else self._collector.instruction(site)
        position, lane = int(units.all[unwritten][0]) * size, int(lanes[unwritten.any(axis=1)][0])
        related = (("written next to it", beside), *self._history.before(lane))
        self._collector.report(
            UnwrittenSharedMemory(now=by, lane=lane, related=related, position=position, is_operation=is_operation)
        )

    def _conflict_of_operation(self, found: Conflict, access: Access, mark: IssueRecord, clock: np.ndarray) -> None:
        """Report a conflict of an operation: a missing order, a missing fence, or a scope that is too narrow."""
        late = clock[ORDERED][found.columns] < found.epochs
        if late.any():
            mine = found.only(late)
            if not self._race(mine, mine, clock[ORDERED], mark.lane, mark, access.kind, access.instruction):
                return
            if found.before == _READ or access.proxy != "async" or not self._lacks_fence(mine, clock, mark.lane):
                return
            self._report(SharedFenceMissing, mine, mark.lane, mark, access.kind, access.instruction, False)
            return
        lacks_fence = access.proxy == "async" and (clock[FENCED][found.columns] < found.epochs).any()
        kind, disputed = SharedFenceMissing if lacks_fence else NarrowScope, self._is_disputed(found, mark.lane)
        if kind is NarrowScope and "cta_group::2" in access.instruction.opcode:
            # The finding is disputed, because kernels of TileLang 0.1.15 wait with the default scope .cta before
            # operations of a pair of CTAs.
            disputed = not self._strict
        self._report(kind, found, mark.lane, mark, access.kind, access.instruction, disputed)

    def _lacks_fence(self, found: Conflict, clock: np.ndarray, lane: int) -> bool:
        """Return whether no proxy fence follows a write, in its thread or after a later instruction of its warp."""
        fenced, _ = self._collectives.of(found, clock[FENCED], lane)
        threads = self._clocks.threads
        first = lane // threads * threads
        return bool(
            (~fenced & (self._clocks.known(FENCED).at(first + found.columns, found.columns) < found.epochs)).any()
        )
