"""The check of the order of accesses to tensor memory.

An operation is complete for threads that have waited for the mbarrier of a later ``tcgen05.commit`` of the issuing
thread. A load or store of a warp is complete after its ``tcgen05.wait``. Operations execute in the order of their
issue, so no operation needs a wait for an earlier operation. Ordinary barriers order accesses without
``tcgen05.fence``, so an absent fence is not a violation (PTX ISA, "Memory Consistency Model" of tcgen05). Relaxed
arrivals and waits need a fence.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from ..._copies.parts import Parts
from ..._ptx import Instruction
from ..._warps.events import assert_never
from ..._warps.lanes import WARP, as_array
from ..._warps.observe import Access
from ..._warps.tensor_events import (
    ColumnsAllocated,
    ColumnsFreed,
    CommitArrived,
    LanesMoved,
    OfTensor,
    OperationCommitted,
    OperationIssued,
    PairMet,
    TensorFence,
    TensorWait,
    Touch,
)
from ..model.barriers import Barriers
from ..model.clocks import ORDERED, Clocks
from ..model.history import History
from ..model.operations import Operations
from ..model.tensor_shadow import READ_BY_OPERATION, READ_BY_WARP, WRITTEN, Past, Stamp, TensorShadow
from ..report.collector import FindingCollector, UndefinedRead
from ..report.tensor_violations import TensorUnordered, UnwrittenTensorMemory
from .exits import ExitChecker
from .inits import InitChecker
from .shared_races import SharedRaceChecker

__all__ = ["TensorMemoryUses"]

OPERATION = "tcgen05"  # OPERATION is the key of the groups of tcgen05 operations.
_LOADS = ("load", "used load")
_VERBS = {(False, True): "writes", (True, False): "reads", (True, True): "reads and writes"}


@dataclass(frozen=True, slots=True)
class _Record:
    """The record of an access to tensor memory: its instruction, its thread, and its kind."""

    by: Instruction
    lane: int
    kind: str  # The kind of an access is "operation", "store", "load" or "used load".
    writes: bool


class TensorMemoryUses:
    """The checks of accesses to tensor memory."""

    def __init__(
        self,
        parts: Parts,
        clocks: Clocks,
        operations: Operations,
        collector: FindingCollector,
        barriers: Barriers,
        shared_races: SharedRaceChecker,
        inits: InitChecker,
        exits: ExitChecker,
        history: History,
    ):
        self._parts, self._clocks, self._operations, self._barriers = parts, clocks, operations, barriers
        self._shared_races, self._collector, self._inits, self._exits = shared_races, collector, inits, exits
        self._history, self._shadow = history, TensorShadow()
        self._records: list[_Record] = []
        self._notes: dict[tuple[int, int, str], int] = {}
        # The dictionary maps a warp to the number of its loads and stores.
        self._issued: defaultdict[int, int] = defaultdict(int)
        # The dictionary maps a warp to the number of accesses before its last wait.
        self._waited: defaultdict[tuple[int, str], int] = defaultdict(int)
        # The set contains the records of accesses for which the check has reported an error.
        self._unordered: set[int] = set()
        self._commits: dict[OperationCommitted, tuple[np.ndarray, int]] = {}

    def forget(self, ctas: range) -> None:
        """Remove the accesses to the tensor memory of CTAs that begin."""
        self._shadow.forget(ctas)

    def event(self, event: OfTensor) -> None:
        """Check an event of tensor memory."""
        match event:
            case PairMet():
                self._clocks.acquire(event.lanes, self._clocks.released(event.lanes))
            case ColumnsAllocated():
                self._allocated(event)
            case ColumnsFreed():
                self._freed(event)
            case LanesMoved():
                self._moved(event)
            case TensorWait():
                self._wait(event)
            case TensorFence():
                self._clocks.memory_fence(event.lanes)
            case OperationIssued():
                self._operation(event)
            case OperationCommitted():
                self._commit(event)
            case CommitArrived():
                self._arrive(event)
            case _:
                assert_never(event)

    # ---- columns ----

    def _allocated(self, event: ColumnsAllocated) -> None:
        """Record the write of an allocation's address to shared memory, which is complete at once.

        A later copy to the bytes that contain the address needs no proxy fence.
        """
        kind, lane, clocks = "tcgen05.alloc", int(event.lanes[0]), self._clocks
        mark = self._operations.issue(slice(lane, lane + WARP), event.instruction, kind)
        column = clocks.column(clocks.slot_of(lane), (kind, lane, "write"))
        at = np.array([event.position])
        access = Access("write", "generic", mark, slice(lane, lane + 1), "shared", at, 4, event.instruction)
        self._shared_races.by_operation(access, mark, column, mark.epoch)
        for _, groups in self._operations.owned(kind, slice(lane, lane + 1, 1)):
            groups.committed += 1
        clocks.complete(event.lanes, column, mark.epoch)

    def _freed(self, event: ColumnsFreed) -> None:
        clock, lane = self._known(event.lanes), int(event.lanes[0])
        for place in (WRITTEN, READ_BY_OPERATION, READ_BY_WARP):
            for past in self._shadow.past(event.freed, place, clock):
                # The check has already reported the missing wait of an access in `_unordered`.
                if past.note not in self._unordered:
                    self._report(past, event.freed, event.instruction, lane, "frees", is_in_order=False)
        self._shadow.clear(event.freed)

    # ---- warps ----

    def _known(self, lanes: np.ndarray) -> np.ndarray:
        """Return the clock of a warp as an array [column]."""
        return self._clocks.known_to(slice(int(lanes[0]), int(lanes[-1]) + 1))[ORDERED]

    def _moved(self, event: LanesMoved) -> None:
        """Check and record a ``tcgen05.ld`` or ``tcgen05.st``."""
        by, lane, clock = event.instruction, int(event.lanes[0]), self._known(event.lanes)
        first, writes = event.touches[0], event.touches[0].writes
        if not writes and all(self._shadow.is_unwritten(touch) for touch in event.touches):
            self._unwritten(first, by, lane)
        for touch in event.touches:
            for place in (WRITTEN, READ_BY_OPERATION, READ_BY_WARP) if writes else (WRITTEN,):
                for past in self._shadow.past(touch, place, clock):
                    self._report(past, touch, by, lane, "writes" if writes else "reads", is_in_order=False)
        stamp = self._stamp_of_move(event, lane, writes)
        for touch in event.touches:
            if writes:
                self._shadow.write(touch, stamp)
            else:
                self._shadow.read(touch, READ_BY_WARP, stamp)

    def _stamp_of_move(self, event: LanesMoved, lane: int, writes: bool) -> Stamp:
        clocks, warp = self._clocks, lane // WARP
        slot, what = clocks.slot_of(lane), "st" if writes else "ld"
        self._issued[warp] += 1
        order = clocks.column(slot, ("tcgen05.warp", warp, "order")), self._issued[warp]
        clocks.complete(event.lanes, *order)
        end = clocks.column(slot, ("tcgen05.warp", warp, what)), self._waited[warp, what] + 1
        kind = "store" if writes else "used load" if event.is_used else "load"
        return Stamp(order, end, self._note(event.instruction, lane, kind, writes))

    def _wait(self, event: TensorWait) -> None:
        what = event.instruction.opcode[1].rpartition(":")[2]
        for warp in np.unique(as_array(event.lanes) // WARP).tolist():
            self._waited[warp, what] += 1
            lanes = slice(warp * WARP, (warp + 1) * WARP, 1)
            column = self._clocks.column(self._clocks.slot_of(lanes.start), ("tcgen05.warp", warp, what))
            self._clocks.complete(lanes, column, self._waited[warp, what])

    # ---- operations ----

    def _operation(self, event: OperationIssued) -> None:
        lane, by = event.lanes.start, event.instruction
        ((_, groups),) = self._operations.owned(OPERATION, slice(lane, lane + 1, 1))
        slot, own = self._clocks.slot_of(lane), lane % self._clocks.threads
        end = self._clocks.column(slot, (OPERATION, lane, "write")), groups.committed + 1
        clock = self._clocks.known_to(slice(lane, lane + 1))[ORDERED]
        order = own, int(self._clocks.own(np.array([lane]))[0])
        for touch in event.touches:
            self._touch(touch, clock, by, lane)
            stamp = Stamp(order, end, self._note(by, lane, "operation", touch.writes))
            if touch.writes:
                self._shadow.write(touch, stamp)
            else:
                self._shadow.read(touch, READ_BY_OPERATION, stamp)

    def _touch(self, touch: Touch, clock: np.ndarray, by: Instruction, lane: int) -> None:
        if touch.reads and self._shadow.is_unwritten(touch):
            self._unwritten(touch, by, lane)
        places = (WRITTEN, READ_BY_OPERATION, READ_BY_WARP) if touch.writes else (WRITTEN,)
        verb = _VERBS[touch.reads, touch.writes]
        for place in places:
            for past in self._shadow.past(touch, place, clock):
                self._report(past, touch, by, lane, verb, is_in_order=True)

    def _commit(self, event: OperationCommitted) -> None:
        lane, clocks = event.lanes.start, self._clocks
        mark = self._operations.issue(event.lanes, event.instruction, None)
        mark.after = tuple(self._history.before(lane))
        for position in event.positions:
            self._inits.check(position, mark)
        clock = clocks.released(event.lanes).copy()
        for _, groups in self._operations.owned(OPERATION, slice(lane, lane + 1, 1)):
            groups.committed += 1
            groups.commits = event.instruction
            for what in ("read", "write"):
                column = clocks.column(clocks.slot_of(lane), (OPERATION, lane, what))
                clock = clocks.fitting(clock)
                clock[:, column] = groups.committed
        self._commits[event] = clock, len(event.positions)
        self._history.touch(event.lanes, self._collector.site(event.instruction))

    def _arrive(self, event: CommitArrived) -> None:
        clock, left = self._commits.pop(event.commit)
        if left > 1:
            self._commits[event.commit] = clock, left - 1
        phases, memory = self._barriers.mbarriers[event.position], self._parts.memory
        clock = self._clocks.fitting(clock)
        home = int(self._parts.geometry.cta_of_lane[event.commit.lanes.start])
        if event.position // memory.shared_pitch == home:
            phases.arrive(self._clocks, clock)
        else:
            phases.arrive_from_afar(self._clocks, clock)

    # ---- reports ----

    def _note(self, by: Instruction, lane: int, kind: str, writes: bool) -> int:
        key = id(by), lane, kind
        if key not in self._notes:
            self._notes[key] = len(self._records)
            self._records.append(_Record(by, lane, kind, writes))
        return self._notes[key]

    def _unwritten(self, touch: Touch, by: Instruction, lane: int) -> None:
        """Report a read of columns that were never written; a replay decides whether their values have an effect.

        Triton 3.9 peels the load of a product out of a loop. If the loop has no iteration, no instruction uses the
        registers of the peeled load.
        """
        key = UnwrittenTensorMemory.KIND, id(by)
        self._collector.undefined.setdefault(key, UndefinedRead(by, np.zeros(0, bool), set(), is_of_columns=True))
        self._collector.report(UnwrittenTensorMemory(now=by, lane=lane, column=touch.column, columns=touch.columns))

    def _report(self, past: Past, touch: Touch, by: Instruction, lane: int, verb: str, is_in_order: bool) -> None:
        """Report an access that does not wait for an earlier access.

        If `is_in_order` is true, the order of issue suffices.
        """
        record = self._records[past.note]
        is_mine = record.lane // WARP == lane // WARP
        if record.kind == "operation" and is_in_order and (past.is_ordered or record.lane == lane):
            return
        if is_mine and record.kind in _LOADS:
            return  # A true dependency through a register usually orders the two accesses.
        missing = record.kind if past.is_ordered or is_mine or record.kind == "operation" else "order"
        if record.kind == "operation" and is_in_order:
            missing = "order of lanes" if is_mine else "order"
        is_disputed = missing == "used load" or (is_mine and record.kind == "store" and by.opcode[1] == "st")
        if not is_disputed:
            self._unordered.add(past.note)
        self._collector.report(
            TensorUnordered(
                now=by,
                lane=lane,
                other=record.by,
                related=self._history.before(lane),
                is_disputed=is_disputed,
                verb=verb,
                before="write" if record.writes else "read",
                missing=missing,
                column=touch.column,
                columns=touch.columns,
            )
        )
