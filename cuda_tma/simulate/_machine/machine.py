"""The machine of a launch: the state of all resident threads, and the loop that runs them to their end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._copies.engine import Engine
from .._copies.parts import Parts
from .._memory.altered_reads import AlteredReads
from .._memory.global_memory import GlobalMemory
from .._memory.local_use import LocalUse
from .._memory.memory import Memory
from .._memory.runtime_state import RuntimeState
from .._memory.undefined import Undefined
from .._sync.cluster_barrier import ClusterBarriers
from .._sync.cta_barrier import CtaBarriers
from .._sync.dependents import Dependents
from .._sync.detours import Detours
from .._sync.mbarrier import Mbarriers
from .._sync.register_pool import RegisterPool
from .._sync.warp_sync import WarpSync
from .._tensor_memory.memory import TensorMemory
from .._warps.clock import Clock
from .._warps.code import Context, Frames
from .._warps.events import Start
from .._warps.fault_log import FaultLog
from .._warps.observe import Events
from .._warps.pending import PendingClusters
from .._warps.program import Program
from .._warps.scheduler import Scheduler
from .._warps.special import SpecialValues
from .._warps.waiting import Stuck, Waiting
from .deadline import NEVER, Deadline
from .observer import Observer
from .plan import LaunchPlan
from .progress import Progress
from .repetition import Repetition

__all__ = ["MAX_STEPS", "Machine", "Settings"]

MAX_STEPS = 4_000_000
_MOST_STALLS = 20  # While all threads wait for time to pass, the clock advances at most 20 times by growing amounts.
_STALL_NANOSECONDS = 1 << 20


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a launch on the simulator, except its configuration.

    Attributes
    ----------
    multiprocessor_count : int
    order : str
        The time at which asynchronous copies take effect: ``"early"``, ``"late"`` or ``"random"``.
    seed : int
        The seed of the order ``"random"``.
    max_steps : int
        The number of steps after which a kernel counts as endless.
    altered : AlteredReads, optional
        The loads of a replay that return altered values.
    undefined : Undefined, optional
        The undefined values of a replay.
    deadline : Deadline, optional
        The time limit of the launch.
    strict : bool
        Whether disputed faults are errors.
    """

    multiprocessor_count: int = 8
    order: str = "early"
    seed: int = 0
    max_steps: int = MAX_STEPS
    altered: AlteredReads | None = None
    undefined: Undefined | None = None
    deadline: Deadline = NEVER
    strict: bool = False


class Machine:
    """The execution of one launch on the simulator.

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
        self.parts = parts = _parts(program, plan, memory, settings, observer)
        self.observer, self.deadline, self.strict = observer, settings.deadline, settings.strict
        self._stalled: list[Waiting] = []
        self._stalls = 0
        self._repetition = Repetition(parts.alive, parts.runtime, parts.scheduler, parts.memory, parts.frames)
        self._goes_round = False
        self._entry = Context(program.entry, None, 0, parts.frames.registers_at(program.entry, 0))

    def close(self) -> None:
        """Release the observer, which contains records of all memory and refers to the parts of this machine."""
        self.observer = self.parts.events.observer = None

    @property
    def stalled(self) -> list[Waiting]:
        """Return the threads that waited when the launch last had no runnable thread; empty if an event has happened
        since."""
        return [] if self.parts.scheduler.has_progressed else self._stalled

    # ---- the loop ----

    def run(self, until: Callable[[], bool] | None = None) -> None:
        """Run until all threads of the grid have ended or wait for preceding grids, or until `until` returns true.

        A fault of the kernel ends the run with an exception.
        """
        if not self.parts.clusters.first:
            self.parts.memory.reserve_stack(self._entry.local_end)
            if self.observer is not None:
                self.observer.begin(self.parts)
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
            if not self.parts.dependents.waits:
                self.parts.engine.complete_all()

    def lets_begin(self) -> bool:
        """Return whether every CTA of the grid has ended, or has signaled that the next grid may begin."""
        return not self.parts.clusters.left and self.parts.dependents.have_signalled()

    def _advance(self) -> bool:
        """Advance the machine by one turn of threads; return False at the end of the launch."""
        if self.parts.scheduler:
            # The clock advances at each turn, because threads that only poll an mbarrier may time out.
            if self.parts.scheduler.turn(self.parts):
                changed = self._place_clusters()
                if not (self.parts.engine.complete_one() or changed):
                    self._check_repetition()
            elif self._many_have_ended():
                self._place_clusters()
            self.parts.engine.maybe_complete()
            return True
        return self._place_clusters() or self.parts.engine.complete_one() or self._wait_in_vain()

    def _check_repetition(self) -> None:
        """Raise the fault of an endless loop if the state of the launch repeats; preceding grids do not run
        meanwhile."""
        if self.parts.dependents.is_held or not self._repetition.found() or self._time_passes():
            return
        # The machine runs the repeated loop once more, to find the threads that only poll an mbarrier.
        if self.parts.mbarriers.looked_at and not self._goes_round:
            self._goes_round = True
            self.parts.mbarriers.forget_looks()
        elif self.parts.mbarriers.park_who_look():
            raise Stuck([*self.parts.waiting()])
        else:
            raise self._repetition.fault()

    def _wait_in_vain(self) -> bool:
        if self.parts.dependents.waits or not self.parts.alive.any():
            return False
        if self._time_passes():
            return True
        raise Stuck([*self.parts.waiting()])

    def _time_passes(self) -> bool:
        """Let waits for mbarriers time out; return False without such waits, or after many repetitions."""
        if self.parts.scheduler.has_progressed:
            self._stalls = 0
        if self._stalls >= _MOST_STALLS:
            return False
        waiting = [*self.parts.waiting()]
        if not self.parts.mbarriers.time_out():
            return False
        self._stalled, self.parts.scheduler.has_progressed = waiting, False
        self.parts.clock.sleep(_STALL_NANOSECONDS << self._stalls)
        self._stalls += 1
        return True

    # ---- the start and the end of clusters ----

    def _how_far(self) -> str:
        done = f"{self._ended_clusters()} of {self.parts.geometry.clusters} clusters"
        return f"simulated: {done}, {self.parts.scheduler.thread_steps / 1e6:.1f} million thread instructions"

    def _ended_clusters(self) -> int:
        return self.parts.clusters.first - self.parts.geometry.slots + self.parts.geometry.cluster_of_slot.count(-1)

    def _many_have_ended(self) -> bool:
        """Return whether half of the slots for clusters are free; clusters that start together also run together."""
        return (
            self.parts.clusters.left > 0
            and 2 * self.parts.geometry.cluster_of_slot.count(-1) >= self.parts.geometry.slots
        )

    def _place_clusters(self) -> bool:
        """Start clusters in the free slots; return False if no cluster started."""
        started = False
        for slot, cluster in enumerate(self.parts.geometry.cluster_of_slot):
            if cluster < 0 and self.parts.clusters.left:
                self._start(slot, self.parts.clusters.take())
                started = True
        return started

    def _check_time(self) -> None:
        if self.parts.scheduler.is_interrupted:
            self.deadline.check()

    def _start(self, slot: int, cluster: int) -> None:
        self._check_time()
        parts, geometry = self.parts, self.parts.geometry
        lanes, first = geometry.place(slot, cluster), slot * geometry.cluster_ctas
        ctas = range(first, first + geometry.cluster_ctas)
        parts.engine.complete_reads_of(ctas)
        parts.mbarriers.forget(ctas)
        parts.cta_barriers.forget(ctas)
        parts.memory.clear_shared(ctas)
        if parts.undefined is not None:
            parts.undefined.fill(parts.memory, ctas, lanes)
        parts.local_use.forget(lanes)
        parts.dependents.started(ctas)
        parts.alive[lanes] = True
        parts.cluster_barriers.lanes_in(lanes)
        parts.register_pool.started(lanes)
        parts.tensor_memory.started(ctas)
        parts.events.tell(Start(lanes))
        self._entry.begin(lanes)
        parts.scheduler.add(self._entry, 0, lanes)


def _parts(
    program: Program, plan: LaunchPlan, memory: GlobalMemory, settings: Settings, observer: Observer | None
) -> Parts:
    """Create all parts of a machine; each part follows the parts that it uses."""
    geometry, special = plan.geometry, _special_values(program, plan, settings)
    alive, random = np.zeros(geometry.lanes, bool), _generator(settings)
    events, engine = Events(observer), Engine(settings.order, random, geometry.cluster_ctas)
    scheduler = Scheduler(settings.max_steps, random, engine, events)
    faults, clock = FaultLog(scheduler), Clock(scheduler)
    reached = Memory(memory, geometry, special.shared_bytes, program.shared_first)
    detours = Detours(geometry, scheduler, faults)
    warp_sync = WarpSync(geometry, alive, scheduler, events, detours)
    attributes = program.entry.function.attributes
    return Parts(
        program,
        geometry,
        special,
        plan.parameters,
        settings.deadline.check,
        alive,
        events,
        faults,
        scheduler,
        clock,
        Frames(geometry.lanes, reached.reserve_stack),
        reached,
        LocalUse(geometry.lanes, reached, events, faults),
        RuntimeState(),
        settings.altered,
        settings.undefined,
        warp_sync,
        CtaBarriers(geometry, alive, scheduler, events, faults, detours),
        ClusterBarriers(geometry, alive, scheduler, events),
        Mbarriers(program, reached, geometry, alive, scheduler, events, faults),
        Dependents(geometry, scheduler, events, plan.is_held),
        RegisterPool(attributes, geometry, alive, scheduler, warp_sync),
        TensorMemory(geometry, alive, scheduler, faults),
        engine,
        PendingClusters(geometry),
    )


def _special_values(program: Program, plan: LaunchPlan, settings: Settings) -> SpecialValues:
    return SpecialValues(
        settings.multiprocessor_count,
        plan.has_explicit_cluster,
        plan.dynamic_shared_bytes,
        program.static_shared_bytes + plan.dynamic_shared_bytes,
        plan.grid_workspace,
    )


def _generator(settings: Settings) -> np.random.Generator | None:
    return np.random.default_rng(settings.seed) if settings.order == "random" else None
