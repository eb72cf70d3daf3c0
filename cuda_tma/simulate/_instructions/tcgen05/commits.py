"""The instruction ``tcgen05.commit``, which arrives at an mbarrier after all operations that the thread has issued."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..._copies.copy import Issue, each_lane
from ..._copies.engine import Operation
from ..._ptx import Address, Operand
from ..._sync.mbarrier import BYTES
from ..._warps.binder import I64, U32, Binder, Read
from ..._warps.code import Step
from ..._warps.faults import Fault
from ..._warps.lanes import Lanes, count
from ..._warps.spaces import OFFSET_MASK, RANK_SHIFT, WINDOWS
from ..._warps.tensor_events import CommitArrived, OperationCommitted
from .._table import Group, instruction
from ..addresses import space_of
from .allocation import SECTION


@instruction("tcgen05.commit", section=SECTION.format("commit"))
def commit(binder: Binder) -> Step:
    """Return the step that executes ``tcgen05.commit``, with or without a multicast."""
    where, *masks = binder.instruction.operands
    address = _address(binder, where)
    mask = binder.read(masks[0], U32) if masks else None

    def step(group: Group, lanes: Lanes) -> None:
        size = count(lanes)
        places = np.broadcast_to(address(group, lanes), (size,)).tolist()
        named = [None] * size if mask is None else np.broadcast_to(mask(group, lanes), (size,)).tolist()
        for index, issue in each_lane(group, lanes, binder.instruction):
            with issue.faults():
                _begin(issue, _barriers(issue, places[index], named[index]))

    return step


def _address(binder: Binder, operand: Operand) -> Read:
    """Return a function that reads shared addresses from an operand with a shared or a generic address."""
    found = binder.address(operand) if isinstance(operand, Address) else binder.read(operand, I64)
    window = 0 if space_of(binder.instruction.opcode) else WINDOWS["shared::cluster"]
    return lambda group, lanes: found(group, lanes) - window


def _barriers(issue: Issue, address: int, mask: int | None) -> list[int]:
    """Return the positions of the mbarriers that a commit signals.

    With a mask, the mbarriers are at the same offset in each CTA of the mask.
    """
    ctas = issue.parts.geometry.cluster_ctas
    ranks = [] if mask is None else [rank for rank in range(16) if mask >> rank & 1]
    if ranks and ranks[-1] >= ctas:
        text = f"the mask 0x{mask:x} of tcgen05.commit names a CTA that the cluster of {ctas} does not have"
        raise Fault("cluster", text, issue.lanes)
    addresses = [address] if mask is None else [rank << RANK_SHIFT | address & OFFSET_MASK for rank in ranks]
    return [issue.position("shared::cluster", each, BYTES, BYTES) for each in addresses]


def _begin(issue: Issue, positions: list[int]) -> None:
    """Add the arrival to the pipe, so that arrivals of one thread have the order of their commits."""
    parts, event = issue.parts, OperationCommitted(issue.lanes, issue.instruction, positions)
    parts.tensor_memory.check_group(issue.instruction, issue.lanes)
    parts.events.tell(event)
    pipes, cta = parts.tensor_memory.pipes, int(parts.geometry.cta_of_lane[issue.lane])
    arrive: Callable[[], None] = partial(_arrive, issue, event)
    if (pipe := pipes.pending_of(issue.lane)) is not None:
        arrive = partial(pipes.run_until, pipe, pipes.issue(pipe, issue.lane, arrive))
    parts.engine.submit(Operation([arrive], (cta,)))


def _arrive(issue: Issue, event: OperationCommitted) -> None:
    with issue.faults():
        for position in event.positions:
            issue.parts.events.tell(CommitArrived(event, position))
            issue.parts.mbarriers.arrive(position, 1, issue.instruction)
