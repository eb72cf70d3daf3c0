"""The sanitizer, which observes a launch and reports unordered accesses and missing proxy fences.

Source: PTX ISA 9.0, "Memory Consistency Model", "Async proxy", and the sections about the checked instructions.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

import numpy as np

from .._copies.parts import Parts
from .._findings import Finding
from .._memory.global_memory import Segment
from .._ptx import Instruction
from .._warps.code import Code, Step
from .._warps.events import (
    AbsentSource,
    ArriveAfterCopies,
    AsyncProxyFence,
    BarrierEvent,
    BoxIssued,
    CommitGroup,
    Event,
    Exit,
    Fence,
    GridWait,
    InitFence,
    IssuedTogether,
    MapAcquire,
    MapCopied,
    MapRelease,
    MbarrierEvent,
    MemoryFence,
    OfFence,
    OfGroup,
    OtherProxyFence,
    ProductFence,
    RegistersTouched,
    SignaledElsewhere,
    Start,
    UnwrittenRead,
    WaitGroup,
    WarpTogether,
    assert_never,
)
from .._warps.faults import Fault
from .._warps.lanes import WARPGROUP, as_array
from .._warps.observe import Access
from .._warps.tensor_events import TensorEvent
from .checks.collectives import Collectives
from .checks.exits import ExitChecker
from .checks.global_races import GlobalRaceChecker
from .checks.grid_races import GridRaceChecker, GridWaits
from .checks.inits import InitChecker
from .checks.lane_copies import Copies, LaneCopies
from .checks.mbarriers import MbarrierUses
from .checks.racing_reads import Pair, RacingReads
from .checks.remote import Remote
from .checks.shared_races import SharedRaceChecker
from .checks.tensor_maps import TensorMaps
from .checks.tensor_memory import TensorMemoryUses
from .checks.undefined import UndefinedReads
from .checks.uses import Uses
from .checks.volatiles import VolatileLoads
from .model.barriers import Barriers
from .model.clocks import CLUSTER, GPU, Clocks, scope_of
from .model.global_shadow import GlobalShadow
from .model.history import History
from .model.locations import Locations
from .model.operations import IssueRecord, Operations
from .model.shadow import STRONG, Shadow
from .model.strong_shadow import StrongShadow
from .model.units import SENDS, arrives_remotely, unit_bytes_of
from .replays import Replays
from .report.collector import FindingCollector
from .report.global_facts import GlobalFacts
from .report.product_violations import ProductNotFenced, RegistersInUse
from .report.remedies import EFFECT
from .report.shared_facts import SharedFacts
from .report.statements import Explained
from .report.violations import WithoutClusters

__all__ = ["Sanitizer"]

_READ, _WRITE = "read", "write"


class Sanitizer:
    """An observer of one launch, which reports the violations of the launch.

    Parameters
    ----------
    strict : bool
        Whether disputed findings are errors.
    is_in_row : bool
        Whether the next grid may begin before this grid has ended, as in :meth:`follows`.
    replay : Replays, optional
        The replays that decide whether the value of a racing read has an effect. Without replays, every value has an
        effect.
    watched : collection of Pair
        Pairs of a load and a racing write. The attribute `racing` then contains each racing execution of the load.
    """

    def __init__(
        self, strict: bool = False, is_in_row: bool = False, replay: Replays | None = None,
        watched: Collection[Pair] = (),
    ):  # fmt: skip
        self._strict, self._collector = strict, FindingCollector()
        self._row = GridRaceChecker() if is_in_row else None
        self._replay, self._watched, self._has_faulted = replay, watched, False

    def follows(self, before: Sanitizer) -> None:
        """Connect this grid with the preceding grid, which may still run when this grid begins."""
        if self._row is not None and before._row is not None:
            self._row.follows(before._row)

    def findings(self) -> tuple[Finding, ...]:
        """Return the findings, after replays have decided whether racing reads and undefined values have an effect."""
        if self._replay is not None and self._collector.racing_reads and not (self._has_faulted or self._strict):
            for pair, reason in self._replay.without_effect([*self._collector.racing_reads], self).items():
                self._collector.excuse(*pair, reason)
        if self._replay is not None and self._collector.undefined and not self._has_faulted:
            for key in self._replay.with_effect(self._collector.undecided(), self):
                self._collector.escalate(key, EFFECT)
        return self._collector.findings()

    def before(self) -> dict[Segment, bytes] | None:
        """Return the initial bytes of all arrays that the launch accesses; None if they are too large to keep."""
        return self._global.before()

    def progress(self) -> tuple[str, int, int]:
        """Return the printed output, the number of executed instructions, and the number of steps of the launch."""
        scheduler = self._parts.scheduler
        return "".join(self._parts.runtime.output), scheduler.thread_steps, scheduler.steps

    def begin(self, parts: Parts) -> None:
        """Begin a launch, and create the clocks, shadows and checks for the parts of its machine."""
        memory, geometry = parts.memory, parts.geometry
        self._parts, self._pitch = parts, memory.shared_pitch
        self._collector.begin(parts)
        self._clocks = Clocks(geometry, geometry.cluster_ctas > 1 and arrives_remotely(parts.program))
        self._barriers = Barriers(self._clocks, geometry.lanes_of_cta, self._pitch)
        self._shadow = Shadow(self._pitch * geometry.resident_ctas, unit_bytes_of(parts.program))
        self._operations = Operations(geometry, self._clocks)
        self._fenced_products: set[int] = set()  # The set contains the warpgroups that have executed wgmma.fence.
        self._locations = Locations(self._clocks, geometry.lanes_of_cta)
        self._remote = Remote(geometry, self._pitch, parts.alive, self._clocks)
        self._history = History(geometry.lanes, parts.scheduler, parts.mbarriers, self._collector)
        self._waited = GridWaits(self._clocks, geometry.lanes)
        named = self._clocks, self._collector, self._history, self._operations
        facts, global_facts = SharedFacts(parts, *named, self._shadow.unit_bytes), GlobalFacts(*named)
        self._exits = ExitChecker(parts, self._clocks, self._operations, self._remote, self._history, self._collector)
        if self._row is not None:
            self._row.begin(memory.all_global, self._waited, self._collector)
        self._together = Collectives(geometry, self._clocks, self._collector)
        self._undefined = UndefinedReads(self._collector, self._pitch)
        volatiles = VolatileLoads(parts.program, self._shadow, self._collector)
        self._uses = Uses(self._collector, volatiles)
        judges = self._history, facts, self._remote, self._together, self._undefined, self._uses, volatiles
        self._shared_races = SharedRaceChecker(
            parts, self._clocks, self._shadow, self._collector, *judges, self._strict
        )
        self._inits = InitChecker(self._clocks, self._collector, self._history, self._strict)
        judging = self._barriers, self._shared_races, self._inits, self._exits, self._history
        self._mbarriers = MbarrierUses(parts, self._clocks, self._collector, *judging, self._uses)
        self._tensor = TensorMemoryUses(parts, self._clocks, self._operations, self._collector, *judging)
        self._global = GlobalShadow(memory.all_global, self._clocks, unit_bytes_of(parts.program, "global"))
        self.racing = RacingReads(self._watched, self._clocks, self._global, self._collector)
        maps_need = self._collector, self._global, self._history
        self._maps = TensorMaps(parts, self._clocks, self._operations, *maps_need, self._strict)
        shadows = self._shadow, self._global
        self._copies = LaneCopies(geometry, self._clocks, self._operations, shadows, self._collector, self._history)
        strong = StrongShadow(self._global, self._clocks, geometry.lanes_of_cta)
        checks = self._global, strong, self._clocks, self._collector, global_facts, self._locations
        self._global_races = GlobalRaceChecker(*checks, self._strict)

    def explained(self, fault: Fault, lanes: np.ndarray, waiting: list[np.ndarray]) -> tuple[Explained, ...]:
        """Return the statements that explain a fault."""
        self._has_faulted = True
        return self._history.of_fault(fault, lanes, waiting)

    def steps_of(self, code: Code) -> list[Step]:
        """Return the steps of a function unchanged, because the sanitizer only observes events."""
        return code.steps

    # ---- events ----

    def event(self, event: Event) -> None:
        """Pass an event of the machine to the model and the checks."""
        self._clocks.now += 1
        match event:
            case WarpTogether():
                self._together.met(event)
            case ArriveAfterCopies():
                self._mbarriers.event(event)
                self._operations.cp_async_arrive(event, self._barriers)
                self._touch(event)
            case MbarrierEvent():
                self._mbarriers.event(event)
            case BarrierEvent():
                self._barriers.event(event)
                self._remote.at_barrier(event)
                self._history.at_barrier(event)
            case Fence():
                self._fence(event)
            case CommitGroup() | WaitGroup():
                self._of_group(event)
            case Start():
                self._start(event)
            case Exit():
                self._exits.exit(event)
            case GridWait():
                self._waited.wait(event.lanes)
            case IssuedTogether():
                self._operations.issue_together(event)
            case SignaledElsewhere():
                self._mbarriers.signaled_elsewhere(event)
            case AbsentSource() | UnwrittenRead():
                self._undefined.event(event)
            case RegistersTouched():
                self._registers_in_use(event)
            case TensorEvent():
                self._tensor.event(event)
            case BoxIssued() | MapCopied():
                pass
            case _:
                assert_never(event)

    def _touch(self, event: OfFence | OfGroup | ArriveAfterCopies) -> None:
        self._history.touch(event.lanes, self._collector.site(event.instruction))

    def _registers_in_use(self, event: RegistersTouched) -> None:
        disputed, first = event.verb == "repaired" and not self._strict, event.lanes.start
        now, other, verb = event.instruction, event.other, event.verb
        self._collector.report(RegistersInUse(now=now, lane=first, other=other, verb=verb, is_disputed=disputed))

    def _of_group(self, event: OfGroup) -> None:
        if isinstance(event, CommitGroup):
            self._operations.commit(event)
        else:
            self._operations.wait(event)
        self._touch(event)
        if event.kind == "wgmma":
            self._together.met(event)

    def _start(self, event: Start) -> None:
        lanes = as_array(event.lanes)
        slot, ctas = self._clocks.slot_of(int(lanes[0])), self._parts.geometry.cluster_ctas
        resident = range(slot * ctas, (slot + 1) * ctas)
        self._remote.start(resident)
        for each in (self._clocks, self._history, self._together, self._waited):
            each.start(lanes)
        self._fenced_products.difference_update(lanes.tolist())
        self._barriers.forget(slot, resident)
        self._shadow.forget(resident.start * self._pitch, ctas * self._pitch)
        for judge in (self._exits, self._inits, self._mbarriers.arrivals):
            judge.forget(resident, self._pitch)
        self._operations.forget(slot)
        self._maps.forget(slot)
        self._tensor.forget(resident)

    def _fence(self, event: OfFence) -> None:
        clocks, lanes = self._clocks, event.lanes
        match event:
            case MemoryFence():
                clocks.memory_fence(lanes, scope_of((event.scope,), GPU))
            case AsyncProxyFence():
                if event.of_global:
                    clocks.fence_global(lanes)
                if event.of_shared:
                    clocks.fence_shared(lanes)
            case MapAcquire():
                scope = scope_of((event.scope,), GPU)
                clocks.memory_fence(lanes, scope)
                self._maps.acquire(as_array(lanes), event.addresses, scope)
                self._history.map_acquire = event.instruction
            case MapRelease():
                scope = scope_of((event.scope,), GPU)
                self._maps.release(as_array(lanes), scope)
                clocks.memory_fence(lanes, scope)
            case InitFence():
                clocks.memory_fence(lanes, CLUSTER)
                self._inits.fence(as_array(lanes))
                self._history.init_fence = event.instruction
                return
            case ProductFence():
                self._fenced_products.update(as_array(lanes)[::WARPGROUP].tolist())
            case OtherProxyFence():
                pass
            case _:
                assert_never(event)
        self._touch(event)
        if isinstance(event, ProductFence):
            self._together.met(event)

    # ---- asynchronous operations ----

    def issue(self, lane: int, instruction: Instruction, kind: str | None) -> IssueRecord:
        """Return the record of an operation that a thread issues."""
        mark = self._mark(lane, instruction, kind)
        mark.after = self._history.before(lane)
        self._maps.in_use.issue(mark)
        by = slice(lane, lane + (WARPGROUP if instruction.opcode[0] == "wgmma" else 1))
        self._history.touch(by, self._collector.site(instruction))
        return mark

    def issue_each(self, lanes: np.ndarray, instruction: Instruction, kind: str, is_now: bool) -> Copies | None:
        """Begin one operation for each lane; return None if the caller must begin each operation separately."""
        return self._copies.issue(lanes, instruction, kind, is_now) if self._row is None else None

    def _mark(self, lane: int, instruction: Instruction, kind: str | None) -> IssueRecord:
        if instruction.opcode[:2] in SENDS and not self._parts.special.has_explicit_cluster:
            self._collector.report(WithoutClusters(now=instruction, lane=lane))
        if instruction.opcode[0] == "wgmma":
            first = lane // WARPGROUP * WARPGROUP
            if first not in self._fenced_products:
                self._collector.report(ProductNotFenced(now=instruction, lane=first))
            return self._operations.issue(slice(first, first + WARPGROUP), instruction, "wgmma")
        return self._operations.issue(slice(lane, lane + 1), instruction, kind)

    # ---- accesses ----

    def access(self, access: Access) -> None:
        """Check an access; the machine passes accesses in the order in which they take effect."""
        self._clocks.now += 1
        if isinstance(access.actor, Copies):
            self._copies.access(access, access.actor, self.access)
            return
        if access.space == "global":
            self._use_of_map(access)
            self._in_global(access)
            return
        if access.actor is not None:
            self._by_operation(access, cast(IssueRecord, access.actor))
            return
        lanes, use = as_array(access.lanes), self._uses.of(access.instruction, access.kind)
        self._history.touch(access.lanes, use.site)
        if use.is_strong:
            self._locations.sync("shared", lanes, access.positions, use.instruction)
        self._shared_races.by_threads(lanes, access.positions, access.size_bytes, use, access.values)

    def _by_operation(self, access: Access, mark: IssueRecord) -> None:
        slot, cta = mark.lane // self._clocks.threads, int(access.positions[0]) // self._pitch
        if access.signal is not None and not self._remote.alive(cta):
            self._exits.unfinished(mark, cta, access.signal, sends=access.kind == _READ)
        if mark.cluster != self._parts.geometry.cluster_of_slot[slot]:
            return  # The clocks of a cluster no longer exist after the end of the cluster.
        self._shared_races.by_operation(access, mark, *self._completion(access, mark, slot))

    def _in_global(self, access: Access) -> None:
        """Check an access to global memory by threads or by an operation."""
        if access.proxy == "tensormap" or not access.size_bytes:
            return
        use = self._uses.of(access.instruction, access.kind, "global")
        strong = use.strength == STRONG
        if self._row is not None and not strong:
            self._row.access(access)
        # The call of `area` has an effect: it keeps the initial bytes of the array.
        area = self._global.area(int(access.positions[0]))
        if self._watched:
            self.racing.access(access)
        if access.actor is None and use.is_strong:
            self._global_races.by_strong_threads(area, access)
            if use.acquires:
                self._history.record_wait(access.lanes, access.instruction)
        elif access.actor is None:
            self._global_races.by_threads(area, access, use)
        elif not strong:
            mark = cast(IssueRecord, access.actor)
            slot = mark.lane // self._clocks.threads
            self._global_races.by_operation(area, access, use, mark, slot, *self._completion(access, mark, slot))

    def _use_of_map(self, access: Access) -> None:
        """Check the use of a tensor map, or a write to global memory that may change a tensor map."""
        if access.proxy == "tensormap":
            self._maps.use(int(access.positions[0]), cast(IssueRecord, access.actor))
        elif access.kind == _WRITE:
            self._maps.write(access)
            if access.instruction.opcode[:2] == ("tensormap", "cp_fenceproxy"):
                self._global_races.by_a_warp(access, cast(IssueRecord, access.actor))

    def _completion(self, access: Access, mark: IssueRecord, slot: int) -> tuple[int, int]:
        """Return the column that records the completion of an access, and the value of the column at that time."""
        if access.signal is not None:
            self._inits.check(access.signal, mark)
            sends = access.instruction.opcode[:2] in SENDS
            column = self._barriers.column_of(mark.lane, slot, access.signal, sends)
            epoch = self._barriers.mbarriers[access.signal].completions + 1
            self._exits.landing[access.signal] = (column, epoch, mark)
            self._maps.in_use.lands(mark, column, epoch)
            return column, epoch
        if mark.group is None:
            return mark.lane % self._clocks.threads, int(self._clocks.own(np.array([mark.lane]))[0])
        kind, owner = mark.group
        what = _READ if access.kind == _READ and kind != "cp.async" else _WRITE
        return self._clocks.column(slot, (kind, owner, what)), mark.epoch
