"""Instructions at which the lanes of a warp wait for each other, but which do not order memory accesses.

By the PTX ISA, ``bar.warp.sync`` orders the accesses of a warp's threads. The threads also wait for each other at
``shfl.sync``, ``ldmatrix`` or ``wgmma``, but these instructions order no accesses ("Causality Order"). In DeepGEMM and
CUTLASS, one lane arrives for its whole warp after one of these instructions. Hardware keeps the order of the accesses,
so a finding of this kind is advice.
"""

from __future__ import annotations

import numpy as np

from ..._warps.events import CommitGroup, ProductFence, WaitGroup, WarpTogether
from ..._warps.geometry import Geometry
from ..._warps.lanes import WARP, as_array
from ..model.clocks import Clocks
from ..model.shadow import Conflict
from ..report.collector import FindingCollector

__all__ = ["Collectives"]

_Together = WarpTogether | CommitGroup | WaitGroup | ProductFence
_MOST = 32  # The check keeps the last 32 warp-wide instructions of each warp.
_NONE = -1
# The instruction elect.sync chooses a lane, and reads no values of other lanes.
_BARRIERS = ("bar", "barrier", "elect")

# The instruction wgmma.commit_group needs no record, because wgmma.fence and wgmma.wait_group are recorded.
_COVERED = "commit_group"


class Collectives:
    """The last instructions at which the lanes of each warp waited for each other without an order of memory.

    If no lane releases its clock between two of these instructions, the record contains only the later instruction.
    """

    def __init__(self, geometry: Geometry, clocks: Clocks, collector: FindingCollector):
        warps = geometry.lanes // WARP
        self._clocks, self._collector = clocks, collector
        # The array contains the epoch of each lane at each recorded instruction.
        self._epochs = np.full((_MOST, warps, WARP), _NONE, np.int32)
        self._sites = np.zeros((_MOST, warps), np.int32)
        # The array contains the index of the last recorded instruction of each warp.
        self._at = np.zeros(warps, np.intp)
        self._last: tuple[int, slice | np.ndarray] | None = None

    def start(self, lanes: np.ndarray) -> None:
        """Remove the instructions of warps that begin."""
        self._epochs[:, np.unique(lanes // WARP)] = _NONE

    def met(self, event: _Together) -> None:
        """Record an instruction that all lanes of some warps have executed."""
        by = event.instruction
        self._clocks.last_acquire[event.lanes] = self._clocks.now
        if by is None or by.opcode[0] in _BARRIERS or by.opcode[1] == _COVERED or self._repeats(event):
            return
        here = as_array(event.lanes)
        warps = here[::WARP] // WARP
        if len(here) % WARP or (here.reshape(-1, WARP)[:, -1] != warps * WARP + WARP - 1).any():
            return
        own = self._clocks.own(here).reshape(-1, WARP)
        at = self._at[warps]
        # The new instruction replaces the last recorded instruction if no lane has released since then.
        at += (self._epochs[at, warps] + 1 != own).any(axis=1)
        at %= _MOST
        self._at[warps], self._epochs[at, warps], self._sites[at, warps] = at, own, self._collector.site(by)
        self._clocks.tick(here)

    def _repeats(self, event: _Together) -> bool:
        """Return whether the preceding event was also an instruction that the same lanes executed together."""
        now, last = self._clocks.now, self._last
        self._last = now, event.lanes
        if last is None or last[0] != now - 1 or not isinstance(event.lanes, slice) or not isinstance(last[1], slice):
            return False
        return last[1] == event.lanes

    def of(self, found: Conflict, known: np.ndarray, lane: int) -> tuple[np.ndarray, int | None]:
        """Return the earlier accesses that only recorded instructions order, and the site of one of these instructions.

        Parameters
        ----------
        found : Conflict
        known : numpy.ndarray, [column]
            The clock of the lane at its present access.
        lane : int
        """
        threads = self._clocks.threads
        first = lane // threads * threads
        which, site = np.zeros(len(found.columns), bool), None
        for column in np.unique(found.columns[found.columns < threads]).tolist():
            warp = (first + column) // WARP
            others = known[warp * WARP - first : (warp + 1) * WARP - first].copy()
            if found.before == "write" and lane // WARP == warp:
                others[lane % WARP] = 0  # A release by one lane does not order the writes of another lane.
            passed = (others > self._epochs[:, warp]).any(axis=1)
            some = found.columns == column
            epochs = np.where(passed, self._epochs[:, warp, column % WARP], _NONE)
            which[some] = found.epochs[some] <= epochs.max()
            if which.any() and site is None:
                behind = epochs >= found.epochs[which].min()
                site = int(self._sites[np.flatnonzero(behind)[epochs[behind].argmin()], warp])
        return which, site
