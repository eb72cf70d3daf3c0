"""The order of writes before a product: in each thread of its warpgroup, or in some threads only.

The four warps of a warpgroup come together at ``wgmma``. An H200 lets no warp go ahead, so that a write that one thread
knows of precedes the reads of the product. The PTX ISA has no such rule: ``wgmma`` is no barrier for memory.
"""

from __future__ import annotations

import numpy as np

from ..._warps.lanes import WARP
from .clocks import FENCED, Clocks

__all__ = ["Warpgroups"]


class Warpgroups:
    """What all threads of each warpgroup know."""

    def __init__(self, clocks: Clocks):
        self._clocks = clocks
        self._of_warps: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # by the first lane, from a clock of known_to

    def known_to_each(self, lanes: slice) -> np.ndarray:
        """Return what each of some lanes knows to precede, [row, column]; of FENCED, what one or the other knows."""
        clocks, here = self._clocks, np.arange(lanes.start, lanes.stop)
        found = np.maximum(clocks.rows[:, here], clocks.warps[:, here // WARP]).min(axis=1)
        found[FENCED] = clocks.fitting(clocks.known_to(lanes))[FENCED]
        return found

    def known_to_each_warp(self, lanes: slice, known: np.ndarray) -> np.ndarray:
        """Return a part of `known_to_each` that takes less time: what the warps know as such.

        `known` is what one or the other knows; as long as it is the same object, no clock has changed.
        """
        kept = self._of_warps.get(lanes.start)
        if kept is not None and kept[0] is known:
            return self._clocks.fitting(kept[1])
        found = self._clocks.warps[:, lanes.start // WARP : lanes.stop // WARP].min(axis=1)
        found[FENCED] = self._clocks.fitting(known)[FENCED]
        self._of_warps[lanes.start] = known, found
        return found
