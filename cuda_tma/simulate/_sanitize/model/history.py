"""The last synchronization and the last access of each thread, which help to explain a finding.

Between two unordered accesses, a barrier, fence or wait is missing. The place for the missing statement is after the
last barrier or wait of the thread that makes the later access. If the thread last waited for an mbarrier, the last
arrival at the mbarrier completed the phase.
"""

from __future__ import annotations

import numpy as np

from ..._ptx import Instruction
from ..._sync.mbarrier import Mbarriers
from ..._warps.events import BarrierComplete, ClusterWait, OfBarrier, WholeBarrier
from ..._warps.faults import Fault, NotInitialised
from ..._warps.lanes import Lanes
from ..._warps.scheduler import Scheduler
from ..._warps.waiting import CALLED
from ..report.collector import FindingCollector
from ..report.statements import Explained

__all__ = ["History"]

_NOWHERE = -1
_MOST_ENDED, _MOST_WAITING = 2, 6


class History:
    """The last wait and the last access of each resident thread.

    Attributes
    ----------
    init_fence, map_acquire : Instruction or None
        The last ``fence.mbarrier_init`` and the last acquire of a tensor map, by any thread.
    """

    def __init__(self, lanes: int, scheduler: Scheduler, mbarriers: Mbarriers, collector: FindingCollector):
        self._scheduler, self._mbarriers, self._collector = scheduler, mbarriers, collector
        # The array contains the site of the last wait of each lane.
        self._last_wait = np.full(lanes, _NOWHERE, np.int32)
        self._mbarrier = np.full(lanes, _NOWHERE)  # The array contains the mbarrier of the last wait of each lane.
        self._touched = np.full(lanes, _NOWHERE, np.int32)
        self._ended: dict[int, None] = {}  # Each key is the site of the last wait of a thread that has ended.
        self.init_fence: Instruction | None = None
        self.map_acquire: Instruction | None = None

    def start(self, lanes: np.ndarray) -> None:
        """Reset the history of threads that begin."""
        for of in (self._last_wait, self._mbarrier, self._touched):
            of[lanes] = _NOWHERE

    def record_wait(self, lanes: Lanes, by: Instruction | None, mbarriers: np.ndarray | int = _NOWHERE) -> None:
        """Record a barrier, a wait or an acquire after which lanes continue."""
        if by is not None:
            self._last_wait[lanes], self._mbarrier[lanes] = self._collector.site(by), mbarriers

    def at_barrier(self, event: OfBarrier) -> None:
        """Record a barrier after which lanes continue, each at its own statement."""
        if isinstance(event, (WholeBarrier, ClusterWait)):
            self.record_wait(event.lanes, event.instruction)
        elif isinstance(event, BarrierComplete):
            for lanes, by in event.waits:
                self.record_wait(lanes, by)

    def touch(self, lanes: Lanes, site: int) -> None:
        """Record an access of lanes to shared memory, or a fence."""
        self._touched[lanes] = site

    def end(self, lanes: np.ndarray) -> None:
        """Keep the sites of the last waits of threads that end."""
        self._ended.update(dict.fromkeys(np.unique(self._last_wait[lanes]).tolist()))

    # ---- explanations of a finding ----

    def before(self, lane: int) -> tuple[Explained, ...]:
        """Return statements that precede the present statement of a lane, and the calls that lead to this statement."""
        position, group = int(self._mbarrier[lane]), self._scheduler.where
        arrived = self._mbarriers.last_arrival(position) if position != _NOWHERE else None
        calls = group.context.calls if group is not None else ()
        return (
            ("last barrier or wait before it", self._at(int(self._last_wait[lane]))),
            ("last arrival there", arrived),
            *((CALLED, by) for by in calls),
        )

    @property
    def fence_of_inits(self) -> Explained:
        """The last ``fence.mbarrier_init``; a barrier after this fence lets other threads use the mbarriers."""
        return "fence of initializations", self.init_fence

    def of_fault(self, fault: Fault, lanes: np.ndarray, waiting: list[np.ndarray]) -> tuple[Explained, ...]:
        """Return the statements that explain a fault, from the faulting, the waiting and the ended threads."""
        if isinstance(fault, NotInitialised) and len(lanes):
            return (*self.before(int(lanes[0])), self.fence_of_inits)
        if fault.kind not in ("deadlock", "transaction-count", "no-progress"):
            return ()
        ended = [self._at(site) for site in [*self._ended][-_MOST_ENDED:]]
        sites = dict.fromkeys(int(self._touched[some[0]]) for some in waiting if len(some))
        touched = [self._at(site) for site in [*sites][:_MOST_WAITING]]
        return (
            *(("last access, copy or fence of the waiting threads", by) for by in touched),
            *(("last barrier or wait of threads that have ended", by) for by in ended),
        )

    def _at(self, site: int) -> Instruction | None:
        return self._collector.instruction(site) if site != _NOWHERE else None
