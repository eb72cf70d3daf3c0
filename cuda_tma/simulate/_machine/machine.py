"""A launch while it runs: the state of all resident threads, and the loop that drives them to their end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ..._budget import CALL_DEPTH, REGISTER_BYTES
from .._copies.engine import Engine
from .._memory.altered_reads import AlteredReads
from .._memory.global_memory import GlobalMemory, Segment
from .._memory.local_use import LocalUse
from .._memory.memory import Memory
from .._memory.undefined import Undefined
from .._ptx import Instruction
from .._sync.cluster_barrier import ClusterBarriers
from .._sync.cta_barrier import CtaBarriers
from .._sync.dependents import Dependents
from .._sync.detours import Detours
from .._sync.mbarrier import Mbarriers
from .._sync.register_pool import RegisterPool
from .._sync.warp_sync import WarpSync
from .._warps.faults import Fault, Kept
from .._warps.group import Context
from .._warps.observe import Observer, tell
from .._warps.program import Code, Program, Step
from .._warps.registers import RegisterFile
from .._warps.scheduler import Scheduler
from .._warps.waiting import CALLED, Stuck, Waiting
from .deadline import NEVER, Deadline
from .plan import LaunchPlan
from .progress import Progress
from .repetition import Repetition

__all__ = ["MAX_STEPS", "Machine", "Settings"]

MAX_STEPS = 4_000_000
_MOST_STALLS = 20  # nobody can run, and time passes: the last time it is half an hour
_STALL_NANOSECONDS = 1 << 20


@dataclass(frozen=True, slots=True)
class Settings:
    """What a launch is run with, beside its configuration.

    Attributes
    ----------
    multiprocessor_count : int
    order : str
        When asynchronous copies take effect: ``"early"``, ``"late"`` or ``"random"``.
    seed : int
        Of ``"random"``.
    max_steps : int
        After which a kernel is taken not to end.
    altered : AlteredReads, optional
        The loads of a replay that return other values.
    undefined : Undefined, optional
        The undefined values of a replay.
    deadline : Deadline, optional
        The end of the launch's time.
    """

    multiprocessor_count: int = 8
    order: str = "early"
    seed: int = 0
    max_steps: int = MAX_STEPS
    altered: AlteredReads | None = None
    undefined: Undefined | None = None
    deadline: Deadline = NEVER


class Machine:
    """One launch.

    Parameters
    ----------
    program : Program
    plan : LaunchPlan
    memory : GlobalMemory
    settings : Settings
    observer : Observer, optional
    """

    def __init__(
        self,
        program: Program,
        plan: LaunchPlan,
        memory: GlobalMemory,
        settings: Settings,
        observer: Observer | None = None,
    ):
        self.program, self.observer = program, observer
        self.geometry = geometry = plan.geometry
        self.parameters, self.altered, self.undefined = plan.parameters, settings.altered, settings.undefined
        self.deadline = settings.deadline
        self.multiprocessor_count = settings.multiprocessor_count
        self.dynamic_shared_bytes = plan.dynamic_shared_bytes
        self.shared_bytes = program.static_shared_bytes + plan.dynamic_shared_bytes
        self.explicit_cluster, self.grid_workspace = plan.has_explicit_cluster, plan.grid_workspace
        self.memory = Memory(memory, geometry, self.shared_bytes, program.shared_first)
        self.random = np.random.default_rng(settings.seed) if settings.order == "random" else None
        self.scheduler = Scheduler(self, settings.max_steps, self.random)
        self.engine = Engine(settings.order, self.random)
        self.detours = Detours(self)
        self.warp_sync, self.cta_barriers = WarpSync(self), CtaBarriers(self)
        self.cluster_barriers, self.mbarriers = ClusterBarriers(self), Mbarriers(self)
        self.dependents, self.register_pool = Dependents(self, plan.is_held), RegisterPool(self)
        self.alive, self.local_use = np.zeros(geometry.lanes, bool), LocalUse(geometry.lanes)
        self.kept: dict[tuple[str, Instruction | None], Kept] = {}  # faults that do not end the launch
        self.output: list[str] = []
        self.printed = 0  # characters of it
        self.heap: dict[int, Segment] = {}  # what malloc gave, by address
        self._registers: dict[tuple[Code, int], RegisterFile] = {}
        self._registers_bytes = 0
        self._repetition = Repetition(self)
        self._next_cluster = 0
        self._stalls = 0
        self.stalled: list[Waiting] = []  # who last waited when nobody could go on, if nothing has happened since
        self._goes_round = False
        self._slept = 0
        self._entry = Context(program.entry, None, 0, self.registers_at(program.entry, 0))

    def registers_at(self, code: Code, depth: int) -> RegisterFile:
        """The registers of a function at a depth of calls."""
        found = self._registers.get((code, depth))
        if found is None:
            if depth > CALL_DEPTH:
                raise _too_deep(depth)
            self._registers_bytes += code.thread_bytes * self.geometry.lanes
            if self._registers_bytes > REGISTER_BYTES:
                raise _too_deep(depth) if depth else _too_many_registers(code, self.geometry.lanes)
            found = RegisterFile(code.row_counts, code.parameter_bytes, self.geometry.lanes)
            self._registers[code, depth] = found
        return found

    def registers(self) -> Iterable[RegisterFile]:
        """Those of all functions that have been called."""
        return self._registers.values()

    def steps_of(self, code: Code) -> list[Step]:
        """What executes a function's instructions; an observer may want to be told of each."""
        steps_of = getattr(self.observer, "steps_of", None)
        return code.steps if steps_of is None else steps_of(code)

    def keep(self, fault: Fault) -> None:
        """Keep a fault at which hardware goes on; it names its lanes and its instruction."""
        known = self.kept.get((fault.kind, fault.instruction))
        if known is not None:
            known.count += 1
            return
        calls = self.scheduler.where.context.calls if self.scheduler.where else ()
        fault.related = (*((CALLED, by) for by in calls), *fault.related)
        self.kept[fault.kind, fault.instruction] = Kept(fault)

    def close(self) -> None:
        """End: the observer and the machine refer to each other, and the observer has notes on all memory."""
        self.observer = None

    # ---- time ----

    def clock(self) -> int:
        """Cycles: here, steps."""
        return self.scheduler.steps

    def nanoseconds(self) -> int:
        """The global timer: steps, and what was spent waiting for nothing."""
        return self.scheduler.steps + self._slept

    def sleep(self, nanoseconds: int) -> None:
        """Let time pass."""
        self._slept += nanoseconds

    def progress(self) -> None:
        """Something happened that others may wait for."""
        self._stalls, self.stalled = 0, []

    # ---- the loop ----

    def run(self, until: Callable[[], bool] | None = None) -> None:
        """Until every thread of the grid has ended, or waits for grids before it; or a fault; or `until` holds."""
        if not self._next_cluster:
            self.memory.reserve_stack(self._entry.local_end)
            if self.observer is not None:
                self.observer.begin(self)
        with np.errstate(all="ignore"):
            progress = Progress()
            try:
                while self._advance():
                    self._check_time()
                    if progress.is_due:
                        progress.show(self._how_far())
                    if until is not None and until():
                        return
            finally:
                progress.clear()
            if not self.dependents.waits:
                self.engine.complete_all()

    @property
    def all_have_begun(self) -> bool:
        """Whether every CTA of the grid runs, or has run."""
        return self._next_cluster == self.geometry.clusters

    def _advance(self) -> bool:
        """One step of the whole; False at the end."""
        if self.scheduler:
            if self.scheduler.turn():  # time passes for those who only look whether something has happened
                changed = self._place_clusters()
                if not (self.engine.complete_one() or changed):
                    self._check_repetition()
            elif self._many_have_ended():
                self._place_clusters()
            self.engine.maybe_complete()
            return True
        return self._place_clusters() or self.engine.complete_one() or self._wait_in_vain()

    def _check_repetition(self) -> None:
        """Grids before this one, which could still change memory, stand still while it runs."""
        if self.dependents.is_held or not self._repetition.found() or self._time_passes():
            return
        if self.mbarriers.looked_at and not self._goes_round:  # once more, to see who does nothing but look at them
            self._goes_round = True
            self.mbarriers.forget_looks()
        elif self.mbarriers.park_who_look():
            raise Stuck([*self.waiting()])
        else:
            raise self._repetition.fault()

    def _wait_in_vain(self) -> bool:
        if self.dependents.waits or not self.alive.any():
            return False
        if self._time_passes():
            return True
        raise Stuck([*self.waiting()])

    def _time_passes(self) -> bool:
        """Let those go on who wait for an mbarrier, but not for ever; False if there are none, or have been often."""
        if self._stalls >= _MOST_STALLS:
            return False
        waiting = [*self.waiting()]
        if not self.mbarriers.time_out():
            return False
        self.stalled = waiting
        self._slept += _STALL_NANOSECONDS << self._stalls
        self._stalls += 1
        return True

    def waiting(self) -> Iterator[Waiting]:
        """Everyone who waits, and for what."""
        for waits in (self.mbarriers, self.cta_barriers, self.cluster_barriers, self.warp_sync, self.register_pool):
            yield from waits.waiting()

    # ---- clusters come and go ----

    def _how_far(self) -> str:
        done = f"{self._ended_clusters()} of {self.geometry.clusters} clusters"
        return f"simulated: {done}, {self.scheduler.thread_steps / 1e6:.1f} million instructions of threads"

    def _ended_clusters(self) -> int:
        return self._next_cluster - self.geometry.slots + self.geometry.cluster_of_slot.count(-1)

    def _many_have_ended(self) -> bool:
        """Whether half of the places are free. Clusters that begin together run together, so one waits for others."""
        left = self.geometry.clusters - self._next_cluster
        return left > 0 and 2 * self.geometry.cluster_of_slot.count(-1) >= self.geometry.slots

    def _place_clusters(self) -> bool:
        """Start what fits where clusters have ended; False if nothing did."""
        started = False
        for slot, cluster in enumerate(self.geometry.cluster_of_slot):
            if cluster < 0 and self._next_cluster < self.geometry.clusters:
                self._start(slot, self._next_cluster)
                self._next_cluster += 1
                started = True
        return started

    def _check_time(self) -> None:
        if self.scheduler.is_interrupted:
            self.deadline.check()

    def _start(self, slot: int, cluster: int) -> None:
        self._check_time()
        lanes = self.geometry.place(slot, cluster)
        first = slot * self.geometry.cluster_ctas
        ctas = range(first, first + self.geometry.cluster_ctas)
        self.engine.complete_reads_of(ctas)
        self.mbarriers.forget(ctas)
        self.memory.clear_shared(ctas)
        if self.undefined is not None:
            self.undefined.fill(self.memory, ctas, lanes)
        self.local_use.forget(lanes)
        self.dependents.started(ctas)
        self.alive[lanes] = True
        self.cluster_barriers.lanes_in(lanes)
        self.register_pool.started(lanes)
        tell(self, "start", lanes)
        self._entry.begin(lanes)
        self.scheduler.add(self._entry, 0, lanes)

    def exit(self, lanes: np.ndarray, by: Instruction) -> None:
        """Threads end; a cluster whose last thread ends makes room."""
        self.alive[lanes] = False
        tell(self, "exit", lanes, by)
        self.progress()
        for slot in np.unique(self.geometry.cta_of_lane[lanes] // self.geometry.cluster_ctas):
            if not self.alive[self.geometry.lanes_of_slot(int(slot))].any():
                self.geometry.cluster_of_slot[slot] = -1
        for waits in (self.cta_barriers, self.cluster_barriers, self.warp_sync, self.register_pool):
            waits.exited(lanes)


def _too_deep(depth: int) -> Fault:
    return Fault("fault", f"stack overflow: calls are {depth} deep; the recursion is too deep, or does not end")


def _too_many_registers(code: Code, lanes: int) -> ValueError:
    return ValueError(
        f"{code.name} has {code.register_bytes} bytes of registers in each thread, and {lanes} threads that run at the "
        f"same time have {REGISTER_BYTES} bytes here: launch smaller blocks or clusters"
    )
