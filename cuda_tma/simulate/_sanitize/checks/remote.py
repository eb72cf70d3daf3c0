"""The check that no thread uses distributed shared memory after the end of the memory's CTA.

Source: PTX ISA 9.0, "Shared State Space"; CUDA C++ Programming Guide, "Distributed Shared Memory".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..._ptx import Instruction
from ..._warps.events import BarrierEvent, ClusterArrive, ClusterWait
from ..._warps.geometry import Geometry
from ..model.clocks import ORDERED, Clocks

__all__ = ["LateUse", "Remote"]


@dataclass(slots=True)
class _Uses:
    """The last uses of a CTA's shared memory by threads of other CTAs.

    Attributes
    ----------
    epochs : numpy.ndarray of int32, [column]
        The epoch of the last use by each thread of the cluster; 0 for a thread without a use.
    arrivals : numpy.ndarray of int32, [column]
        The number of each thread's arrivals at the cluster's barrier before its last use.
    by : dict of int to Instruction
        The instruction of the last use by each lane.
    """

    epochs: np.ndarray
    arrivals: np.ndarray
    by: dict[int, Instruction] = field(default_factory=dict)


class LateUse(NamedTuple):
    """A use of a CTA's shared memory that may follow the end of the CTA.

    Attributes
    ----------
    instruction : Instruction
    lane : int
        The lane of the thread that uses the memory.
    is_load_before_arrival : bool
        Whether the use is a load that is followed only by a relaxed arrival at the barrier of the cluster.
    """

    instruction: Instruction
    lane: int
    is_load_before_arrival: bool = False


class Remote:
    """The last accesses to the shared memory of each resident CTA by the threads of other CTAs.

    The check records loads separately from other accesses. A ``.relaxed`` arrival at the barrier of the cluster orders
    no memory accesses. However, a load is complete once an instruction uses its value, and this use may precede the
    arrival.
    """

    def __init__(self, geometry: Geometry, pitch: int, alive: np.ndarray, clocks: Clocks):
        self._geometry, self._pitch, self._alive, self._clocks = geometry, pitch, alive, clocks
        # The key consists of a CTA, and of True for loads or False for other uses of shared memory.
        self._uses: dict[tuple[int, bool], _Uses] = {}
        self._cta_of_lane = geometry.cta_of_lane
        # The first array counts the arrivals of each lane at the cluster barrier, and the second array counts its
        # waits.
        self._arrivals, self._waits = (np.zeros(geometry.lanes, np.int32) for _ in range(2))

    def start(self, ctas: range) -> None:
        """Remove the accesses to CTAs that have ended, because new CTAs use their memory."""
        for cta in ctas:
            self._uses.pop((cta, False), None)
            self._uses.pop((cta, True), None)
        size = self._geometry.lanes_of_cta
        self._arrivals[ctas.start * size : ctas.stop * size] = self._waits[ctas.start * size : ctas.stop * size] = 0

    def at_barrier(self, event: BarrierEvent) -> None:
        """Count the arrivals and waits of threads at the barriers of clusters."""
        if isinstance(event, ClusterArrive):
            self._arrivals[event.lanes] += 1
        elif isinstance(event, ClusterWait):
            self._waits[event.lanes] += 1

    def access(
        self, lanes: np.ndarray, positions: np.ndarray, instruction: Instruction, kind: str
    ) -> tuple[Instruction, int, int] | None:
        """Record accesses to shared memory, and return the first access to a CTA that has already ended, or None.

        The result contains the instruction, the lane and the CTA.
        """
        if self._geometry.cluster_ctas == 1:
            return None
        ctas = positions // self._pitch
        far = ctas != self._cta_of_lane[lanes]
        if not far.any():
            return None
        for cta in np.unique(ctas[far]).tolist():
            some = lanes[far & (ctas == cta)]
            self._use(cta, some, instruction, kind == "read")
            if not self.alive(cta):
                return instruction, int(some[0]), cta
        return None

    def _use(self, cta: int, lanes: np.ndarray, instruction: Instruction, is_load: bool) -> None:
        threads = self._clocks.threads
        uses = self._uses.get((cta, is_load))
        if uses is None:
            uses = self._uses[cta, is_load] = _Uses(np.zeros(threads, np.int32), np.zeros(threads, np.int32))
        uses.epochs[lanes % threads] = self._clocks.own(lanes)
        uses.arrivals[lanes % threads] = self._arrivals[lanes]
        uses.by.update(dict.fromkeys(lanes.tolist(), instruction))

    def alive(self, cta: int) -> bool:
        """Return whether at least one thread of a CTA still runs."""
        size = self._geometry.lanes_of_cta
        return bool(self._alive[cta * size : (cta + 1) * size].any())

    def unknown_at_end(self, cta: int) -> LateUse | None:
        """Return an access to the shared memory of a CTA that may follow the CTA's end; None without such an access."""
        size, threads = self._geometry.lanes_of_cta, self._clocks.threads
        first = self._clocks.slot_of(cta * size) * threads
        found = None
        for is_load in (False, True):
            if (uses := self._uses.get((cta, is_load))) is None:
                continue
            known = self._clocks.known_to(slice(cta * size, (cta + 1) * size))[ORDERED, :threads]
            late = np.flatnonzero(uses.epochs > known)
            waits = self._waits[cta * size : (cta + 1) * size].max()
            waited = is_load & (uses.arrivals[late] < np.minimum(self._arrivals[first + late], waits))
            for lane in (late[~waited] + first)[:1].tolist():
                return LateUse(uses.by[lane], lane)
            for lane in (late[waited] + first)[:1].tolist():
                found = LateUse(uses.by[lane], lane, True)
        return found
