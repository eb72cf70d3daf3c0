"""The instruction ``barrier.cluster``, by which all running threads of a cluster arrive, and wait at once or later.

Source: PTX ISA 9.0, "Parallel Synchronization and Communication Instructions: barrier.cluster".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...hang import BarrierWait
from .._ptx import Instruction
from .._warps.code import YIELD, Outcome
from .._warps.events import ClusterArrive, ClusterComplete, ClusterWait
from .._warps.faults import Fault
from .._warps.geometry import Geometry
from .._warps.group import Group
from .._warps.lanes import Lanes, as_array
from .._warps.observe import Events
from .._warps.scheduler import Scheduler
from .._warps.waiting import Parked, Waiting

__all__ = ["ClusterBarriers"]


class ClusterBarriers:
    """The barriers of all resident clusters, each with its phase, and with the threads that have arrived."""

    def __init__(self, geometry: Geometry, alive: np.ndarray, scheduler: Scheduler, events: Events):
        self._alive, self._scheduler, self._events = alive, scheduler, events
        self._size = geometry.cluster_ctas * geometry.lanes_of_cta
        self._phases = np.zeros(geometry.slots, np.int64)
        # The array contains the barrier phase in which each thread last arrived.
        self._arrived_in = np.full(geometry.lanes, -1)
        self._waited = np.ones(geometry.lanes, bool)
        # The dictionary maps a cluster to the last arrival at its barrier.
        self._arrived_at: dict[int, Instruction] = {}
        self._parked: list[Parked] = []

    def lanes_in(self, lanes: np.ndarray) -> None:
        """Initialize the state of threads that begin."""
        self._arrived_in[lanes] = -1
        self._waited[lanes] = True
        self._phases[lanes[0] // self._size] = 0

    def arrive(self, lanes: Lanes, by: Instruction, relaxed: bool = False) -> None:
        """Execute ``barrier.cluster.arrive``."""
        here = as_array(lanes)
        if not self._waited[here].all():
            raise Fault(
                "barrier-use",
                "threads execute barrier.cluster.arrive again without barrier.cluster.wait after the first: execute "
                "one wait after each arrive",
                here[~self._waited[here]],
                related=[("arrived before", self._arrived_at[int(slot)]) for slot in np.unique(here // self._size)[:1]],
            )
        self._arrived_at.update(dict.fromkeys(np.unique(here // self._size).tolist(), by))
        self._arrived_in[here] = self._phases[here // self._size]
        self._waited[here] = False
        self._events.tell(ClusterArrive(here, relaxed))
        self._complete(np.unique(here // self._size))

    def wait(self, group: Group[Any], lanes: Lanes, pc: int) -> Outcome:
        """Execute ``barrier.cluster.wait``."""
        here = as_array(lanes)
        if self._waited[here].any():
            raise Fault(
                "barrier-use",
                "threads execute barrier.cluster.wait without a preceding barrier.cluster.arrive: execute the arrive "
                "first",
                here[self._waited[here]],
            )
        done = self._arrived_in[here] < self._phases[here // self._size]
        self._waited[here[done]] = True
        if done.any():
            self._events.tell(ClusterWait(here[done], group.context.code.instruction(pc)))
        if done.all():
            return None
        if done.any():
            self._scheduler.add(group.context, pc + 1, here[done])
        self._parked.append(Parked(group.context, pc, pc, here[~done]))
        return YIELD

    def _complete(self, slots: np.ndarray) -> None:
        changed = False
        for slot in map(int, slots):
            lanes = slice(slot * self._size, (slot + 1) * self._size)
            alive = self._alive[lanes]
            if alive.any() and (self._arrived_in[lanes][alive] == self._phases[slot]).all():
                self._phases[slot] += 1
                self._events.tell(ClusterComplete(slot))
                changed = True
        if changed:
            self._scheduler.progress()
            parked, self._parked = self._parked, []
            for each in parked:
                # The released threads execute barrier.cluster.wait again.
                self._scheduler.add(each.context, each.pc, each.lanes)

    def exited(self, lanes: np.ndarray) -> None:
        """Complete the barriers at which only ended threads are missing.

        A cluster does not wait for threads that have ended.
        """
        self._complete(np.unique(lanes // self._size))

    def waiting(self) -> Iterator[Waiting]:
        """Yield the waiting threads for the report of a deadlock."""
        for parked in self._parked:
            slot = int(parked.lanes[0]) // self._size
            lanes = np.arange(slot * self._size, (slot + 1) * self._size)
            late = self._alive[lanes] & (self._arrived_in[lanes] < self._phases[slot])
            missing = f"{int(late.sum())} threads of the cluster have not arrived"
            yield Waiting(parked, BarrierWait("the cluster's barrier", missing))
