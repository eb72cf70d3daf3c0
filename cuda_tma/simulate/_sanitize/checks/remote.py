"""Shared memory of another CTA of the cluster, which lasts until the end of that CTA.

Source: PTX ISA 9.0, "Shared State Space", and CUDA C++ Programming Guide, "Distributed Shared Memory".
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
        The epoch of the last use by each thread of the cluster; 0 if it has none.
    arrivals : numpy.ndarray of int32, [column]
        The number of arrivals of each thread at the barrier of the cluster before that use.
    by : dict of int to Instruction
        The last use by each lane.
    """

    epochs: np.ndarray
    arrivals: np.ndarray
    by: dict[int, Instruction] = field(default_factory=dict)


class LateUse(NamedTuple):
    """A use of the shared memory of a CTA that is not ordered before the end of the CTA.

    Attributes
    ----------
    instruction : Instruction
    lane : int
        The thread that uses the memory.
    is_load_before_arrival : bool
        Whether it is a load, and only a relaxed arrival at the barrier of the cluster follows it.
    """

    instruction: Instruction
    lane: int
    is_load_before_arrival: bool = False


class Remote:
    """For each resident CTA, the last access of each thread of other CTAs.

    Loads are kept separately. The barrier of the cluster with ``.relaxed`` orders no memory, but a load is complete
    once its value is used, and that may precede the arrival.
    """

    def __init__(self, geometry: Geometry, pitch: int, alive: np.ndarray, clocks: Clocks):
        self._geometry, self._pitch, self._alive, self._clocks = geometry, pitch, alive, clocks
        self._uses: dict[tuple[int, bool], _Uses] = {}  # by CTA, and whether they are loads
        self._cta_of_lane = geometry.cta_of_lane
        self._arrivals, self._waits = (np.zeros(geometry.lanes, np.int32) for _ in range(2))  # at clusters' barriers

    def start(self, ctas: range) -> None:
        """Forget the accesses to CTAs that begin."""
        for cta in ctas:
            self._uses.pop((cta, False), None)
            self._uses.pop((cta, True), None)
        size = self._geometry.lanes_of_cta
        self._arrivals[ctas.start * size : ctas.stop * size] = self._waits[ctas.start * size : ctas.stop * size] = 0

    def at_barrier(self, event: BarrierEvent) -> None:
        """Count arrivals and waits at the barriers of clusters."""
        if isinstance(event, ClusterArrive):
            self._arrivals[event.lanes] += 1
        elif isinstance(event, ClusterWait):
            self._waits[event.lanes] += 1

    def access(
        self, lanes: np.ndarray, positions: np.ndarray, instruction: Instruction, kind: str
    ) -> tuple[Instruction, int, int] | None:
        """Take accesses to shared memory; return the first that follows the end of its CTA."""
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
        """Return whether any thread of a CTA has not ended."""
        size = self._geometry.lanes_of_cta
        return bool(self._alive[cta * size : (cta + 1) * size].any())

    def unknown_at_end(self, cta: int) -> LateUse | None:
        """Return an access to the memory of a CTA that ends, if it is not ordered before that end."""
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
