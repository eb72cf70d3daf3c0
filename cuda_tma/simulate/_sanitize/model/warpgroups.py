"""The writes that precede a ``wgmma`` in every thread of its warpgroup, in contrast to only some of its threads.

The four warps of a warpgroup execute ``wgmma`` together. On an H200, no warp continues before the other warps arrive
(observed). A write that precedes ``wgmma`` in one thread therefore also precedes the reads of ``wgmma``. The PTX ISA
does not guarantee this order, because ``wgmma`` is not a memory barrier.
"""

from __future__ import annotations

import numpy as np

from ..._warps.lanes import WARP
from .clocks import FENCED, Clocks

__all__ = ["Warpgroups"]


class Warpgroups:
    """The minimum of all threads' clocks in each warpgroup."""

    def __init__(self, clocks: Clocks):
        self._clocks = clocks
        # The dictionary maps the first lane of a warpgroup to a clock and the cached result for this clock.
        self._of_warps: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def known_to_each(self, lanes: slice) -> np.ndarray:
        """Return the minimum of the clocks of some lanes, [row, column], but their union in row FENCED."""
        clocks, here = self._clocks, np.arange(lanes.start, lanes.stop)
        found = np.maximum(clocks.rows[:, here], clocks.warps[:, here // WARP]).min(axis=1)
        found[FENCED] = clocks.fitting(clocks.known_to(lanes))[FENCED]
        return found

    def known_to_each_warp(self, lanes: slice, known: np.ndarray) -> np.ndarray:
        """Return a lower bound of `known_to_each` in less time: the minimum of the clocks of the warps.

        `known` is the union of the clocks of the lanes. If `known` is the same object as in the last call, no clock has
        changed.
        """
        kept = self._of_warps.get(lanes.start)
        if kept is not None and kept[0] is known:
            return self._clocks.fitting(kept[1])
        found = self._clocks.warps[:, lanes.start // WARP : lanes.stop // WARP].min(axis=1)
        found[FENCED] = self._clocks.fitting(known)[FENCED]
        self._of_warps[lanes.start] = known, found
        return found
