"""The order of writes before a product: in each thread of its warpgroup, or in some threads only.

The four warps of a warpgroup come together at ``wgmma``. An H200 lets no warp go ahead, so that a write that one thread
knows of precedes the reads of the product. The PTX ISA has no such rule: ``wgmma`` is no barrier for memory.
"""

from __future__ import annotations

import numpy as np

from .._lanes import WARP
from .clocks import FENCED, Clocks

__all__ = ["known_to_each", "known_to_each_warp"]


def known_to_each(clocks: Clocks, lanes: slice) -> np.ndarray:
    """Return what each of some lanes knows to precede, [row, column]; of FENCED, what one or the other knows."""
    here = np.arange(lanes.start, lanes.stop)
    found = np.maximum(clocks.rows[:, here], clocks.warps[:, here // WARP]).min(axis=1)
    found[FENCED] = clocks.fitting(clocks.known_to(lanes))[FENCED]
    return found


def known_to_each_warp(clocks: Clocks, lanes: slice) -> np.ndarray:
    """Return a part of `known_to_each` that takes less time: what the warps know as such."""
    found = clocks.warps[:, lanes.start // WARP : lanes.stop // WARP].min(axis=1)
    found[FENCED] = clocks.fitting(clocks.known_to(lanes))[FENCED]
    return found
