"""The order of writes before a ``wgmma``: for each thread of its warpgroup, or for some threads only.

The four warps of a warpgroup converge at ``wgmma``. An H200 lets no warp run ahead (observed), so a write that precedes
``wgmma`` in one thread also precedes its reads. The PTX ISA has no such rule: ``wgmma`` is not a memory barrier.
"""

from __future__ import annotations

import numpy as np

from ..._warps.lanes import WARP
from .clocks import FENCED, Clocks

__all__ = ["Warpgroups"]


class Warpgroups:
    """The minimum of the clocks of all threads of each warpgroup."""

    def __init__(self, clocks: Clocks):
        self._clocks = clocks
        self._of_warps: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # by the first lane, from a clock of known_to

    def known_to_each(self, lanes: slice) -> np.ndarray:
        """Return the minimum of the clocks of some lanes, [row, column]; for row FENCED, their union."""
        clocks, here = self._clocks, np.arange(lanes.start, lanes.stop)
        found = np.maximum(clocks.rows[:, here], clocks.warps[:, here // WARP]).min(axis=1)
        found[FENCED] = clocks.fitting(clocks.known_to(lanes))[FENCED]
        return found

    def known_to_each_warp(self, lanes: slice, known: np.ndarray) -> np.ndarray:
        """Return a lower bound of `known_to_each` in less time: the minimum of the warps' clocks.

        `known` is the union of the lanes' clocks; while it is the same object, no clock has changed.
        """
        kept = self._of_warps.get(lanes.start)
        if kept is not None and kept[0] is known:
            return self._clocks.fitting(kept[1])
        found = self._clocks.warps[:, lanes.start // WARP : lanes.stop // WARP].min(axis=1)
        found[FENCED] = self._clocks.fitting(known)[FENCED]
        self._of_warps[lanes.start] = known, found
        return found
