"""The state of a launch that instructions and observers use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .._memory.altered_reads import AlteredReads
from .._memory.global_memory import Segment
from .._memory.local_use import LocalUse
from .._memory.memory import Memory
from .._memory.runtime_state import RuntimeState
from .._memory.undefined import Undefined
from .._ptx import Instruction
from .._sync.cluster_barrier import ClusterBarriers
from .._sync.cta_barrier import CtaBarriers
from .._sync.dependents import Dependents
from .._sync.mbarrier import Mbarriers
from .._sync.register_pool import RegisterPool
from .._sync.warp_sync import WarpSync
from .._tensor_memory.memory import TensorMemory
from .._warps.clock import Clock
from .._warps.code import Frames
from .._warps.events import Exit
from .._warps.fault_log import FaultLog
from .._warps.geometry import Geometry
from .._warps.observe import Events
from .._warps.pending import PendingClusters
from .._warps.program import Program
from .._warps.scheduler import Scheduler
from .._warps.special import SpecialValues
from .._warps.waiting import Waiting
from .engine import Engine

__all__ = ["Parts"]


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The state of all resident threads of a launch, divided into parts.

    Attributes
    ----------
    program : Program
    geometry : Geometry
    special : SpecialValues
    parameters : Segment
        The parameters of the kernel.
    check_time : callable
        A function that raises an exception at the time limit of the launch.
    alive : numpy.ndarray of bool, [lane]
        Whether each resident thread is running: it has begun and has not ended.
    events : Events
    faults : FaultLog
    scheduler, clock, frames
    memory, local_use, runtime
    altered : AlteredReads or None
        The loads of a replay that return altered values.
    undefined : Undefined or None
        The undefined values of a replay.
    warp_sync, cta_barriers, cluster_barriers, mbarriers, dependents, register_pool
    tensor_memory : TensorMemory
    engine : Engine
        The engine of asynchronous copies.
    clusters : PendingClusters
    """

    program: Program
    geometry: Geometry
    special: SpecialValues
    parameters: Segment
    check_time: Callable[[], None]
    alive: np.ndarray
    events: Events
    faults: FaultLog
    scheduler: Scheduler
    clock: Clock
    frames: Frames
    memory: Memory
    local_use: LocalUse
    runtime: RuntimeState
    altered: AlteredReads | None
    undefined: Undefined | None
    warp_sync: WarpSync
    cta_barriers: CtaBarriers
    cluster_barriers: ClusterBarriers
    mbarriers: Mbarriers
    dependents: Dependents
    register_pool: RegisterPool
    tensor_memory: TensorMemory
    engine: Engine
    clusters: PendingClusters

    def exit(self, lanes: np.ndarray, by: Instruction) -> None:
        """End threads, and free the slot of each cluster whose last thread ends."""
        self.alive[lanes] = False
        self.events.tell(Exit(lanes, by))
        self.scheduler.progress()
        for slot in np.unique(self.geometry.cta_of_lane[lanes] // self.geometry.cluster_ctas):
            if not self.alive[self.geometry.lanes_of_slot(int(slot))].any():
                self.geometry.cluster_of_slot[slot] = -1
        for waits in (self.cta_barriers, self.cluster_barriers, self.warp_sync, self.register_pool, self.tensor_memory):
            waits.exited(lanes)

    def waiting(self) -> Iterator[Waiting]:
        """Yield each waiting thread with the barrier or other object for which it waits."""
        barriers = self.mbarriers, self.cta_barriers, self.cluster_barriers
        for waits in (*barriers, self.warp_sync, self.register_pool, self.tensor_memory):
            yield from waits.waiting()
