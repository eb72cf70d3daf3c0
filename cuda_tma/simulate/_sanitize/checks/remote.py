"""Shared memory of another CTA of the cluster: it must last until all who use it are through.

Source: PTX ISA 9.0, "Shared State Space", and CUDA C++ Programming Guide, "Distributed Shared Memory".
"""

from __future__ import annotations

import numpy as np

from ..._copies.parts import Parts
from ..._findings import Finding
from ..._ptx import Instruction
from ..._warps.geometry import Geometry
from ..model.clocks import ORDERED, Clocks
from ..model.units import SENDS

__all__ = ["Remote", "unclustered"]

_WITHOUT_CLUSTERS = (
    "Observed, and in no document (driver 580, sm_90): st.async and red.async end in CUDA_ERROR_ILLEGAL_INSTRUCTION "
    "without clusters, and run in clusters of one CTA"
)
_CLUSTERS_OF_ONE = "launch it with clusters, of one CTA if need be: Config(cluster=1), LaunchConfig(cluster=1)"


def unclustered(parts: Parts, lane: int, instruction: Instruction) -> Finding | None:
    """``st.async``, ``red.async`` in a launch without clusters: an error, as the GPU makes it one."""
    if parts.special.has_explicit_cluster or instruction.opcode[:2] not in SENDS:
        return None
    blocks, threads = parts.geometry.blocks_and_threads(np.array([lane]))
    text = f"thread {threads[0]} issues {'.'.join(instruction.opcode[:2])} in a launch without clusters"
    return Finding(
        "cluster",
        "error",
        f"{text}. {_WITHOUT_CLUSTERS}. Remedy: {_CLUSTERS_OF_ONE}",
        instruction.places,
        blocks,
        threads,
        instruction.line,
        rule=_WITHOUT_CLUSTERS,
        remedy=_CLUSTERS_OF_ONE,
    )


class Remote:
    """For each resident CTA, the last access of each thread of other CTAs."""

    def __init__(self, geometry: Geometry, pitch: int, alive: np.ndarray, clocks: Clocks):
        self._geometry, self._pitch, self._alive, self._clocks = geometry, pitch, alive, clocks
        self._epochs: dict[int, np.ndarray] = {}
        self._by: dict[int, Instruction] = {}  # the last instruction, by lane
        self._cta_of_lane = geometry.cta_of_lane

    def start(self, ctas: range) -> None:
        """A new cluster."""
        for cta in ctas:
            self._epochs.pop(cta, None)

    def access(
        self, lanes: np.ndarray, positions: np.ndarray, instruction: Instruction
    ) -> tuple[Instruction, int, int] | None:
        """Threads touch shared memory; what is said of the first that does so after the end of its CTA."""
        if self._geometry.cluster_ctas == 1:
            return None
        ctas = positions // self._pitch
        far = ctas != self._cta_of_lane[lanes]
        if not far.any():
            return None
        for cta in np.unique(ctas[far]).tolist():
            some = lanes[far & (ctas == cta)]
            epochs = self._epochs.setdefault(cta, np.zeros(self._clocks.threads, np.int32))
            epochs[some % self._clocks.threads] = self._clocks.own(some)
            self._by.update(dict.fromkeys(some.tolist(), instruction))
            if not self.alive(cta):
                return instruction, int(some[0]), cta
        return None

    def alive(self, cta: int) -> bool:
        """Whether any of its threads has not ended."""
        size = self._geometry.lanes_of_cta
        return bool(self._alive[cta * size : (cta + 1) * size].any())

    def unknown_at_end(self, cta: int) -> tuple[Instruction, int] | None:
        """A CTA ends: an access to it that none of its threads knows to be over, and whose."""
        epochs = self._epochs.get(cta)
        if epochs is None:
            return None
        size = self._geometry.lanes_of_cta
        known = self._clocks.known_to(slice(cta * size, (cta + 1) * size))[ORDERED, : self._clocks.threads]
        late = np.flatnonzero(epochs > known)
        if not len(late):
            return None
        lane = int(late[0]) + self._clocks.slot_of(cta * size) * self._clocks.threads
        return self._by[lane], lane
