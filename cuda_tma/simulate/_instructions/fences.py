"""Fences. Memory here is one, and each access takes effect in its turn: a fence is for those who observe."""

from __future__ import annotations

from .._ptx import Address
from .._warps.binder import Binder
from .._warps.code import Step
from .._warps.lanes import Lanes
from ._table import Group, instruction


@instruction("fence", "membar", section="Parallel Synchronization and Communication Instructions: membar, fence")
def fence(binder: Binder) -> Step:
    """``fence.proxy.tensormap::generic.acquire.scope [address], 128`` names a map, other fences nothing."""
    if len(binder.instruction.opcode) < 2:
        raise binder.unsupported("without a scope or a proxy")
    name, by, operands = ".".join(binder.instruction.opcode), binder.instruction, binder.instruction.operands
    if operands and isinstance(operands[0], Address):
        addresses = binder.address(operands[0])

        def of_map(group: Group, lanes: Lanes) -> None:
            group.parts.events.tell(name, lanes, by, addresses=addresses(group, lanes))

        return of_map
    return lambda group, lanes: group.parts.events.tell(name, lanes, by)
