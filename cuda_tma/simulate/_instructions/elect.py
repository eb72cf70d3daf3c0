"""The instruction ``elect.sync``, which elects one thread of a warp."""

from __future__ import annotations

import numpy as np

from .._ptx import Pair
from .._sync.warp_sync import when_together
from .._warps.binder import BOOL, U32, Binder
from .._warps.code import Outcome, Step
from .._warps.lanes import WARP, Lanes, count, warps_of
from ._table import Group, instruction


@instruction("elect.sync", section="Parallel Synchronization and Communication Instructions: elect.sync", moves=True)
def elect(binder: Binder) -> Step:
    """Return the step that elects the lowest thread in the mask, as hardware does."""
    result, membermask = binder.instruction.operands
    if not isinstance(result, Pair):
        raise binder.unsupported("one result")
    leader, elected = binder.write(result.first, U32), binder.write(result.second, BOOL)
    masks, pc = binder.membermask(membermask), binder.pc

    def act(group: Group, lanes: Lanes) -> None:
        warps = warps_of(lanes)
        found = masks if isinstance(masks, int) else masks(group, lanes)
        given = np.broadcast_to(found, (count(lanes),)).astype(np.int64)
        lane = np.broadcast_to(np.arange(WARP), warps.active.shape)[warps.active]
        lowest = np.log2(given & -given).astype(np.uint32)
        leader(group, lanes, lowest)
        elected(group, lanes, lane == lowest)

    def step(group: Group, lanes: Lanes) -> Outcome:
        return when_together(group, lanes, pc, act, masks)

    return step
