"""Fences, which have an effect only on observers, because the simulator performs all accesses to a memory in order."""

from __future__ import annotations

from functools import partial

from .._ptx import Address, Instruction
from .._warps.binder import Binder
from .._warps.code import Step
from .._warps.events import AsyncProxyFence, InitFence, MapAcquire, MapRelease, MemoryFence, OtherProxyFence
from .._warps.lanes import Lanes
from ._table import Group, instruction

_SCOPES = frozenset({"cta", "cluster", "gpu", "sys", "gl"})
_Simple = MemoryFence | AsyncProxyFence | OtherProxyFence | MapRelease | InitFence


@instruction("fence", "membar", section="Parallel Synchronization and Communication Instructions: membar, fence")
def fence(binder: Binder) -> Step:
    """Return the step of a fence; only ``fence.proxy.tensormap::generic.acquire.scope [address], 128`` has operands."""
    by, operands = binder.instruction, binder.instruction.operands
    if len(by.opcode) < 2:
        raise binder.unsupported("without a scope or a proxy")
    if operands and isinstance(operands[0], Address):
        addresses, scope = binder.address(operands[0]), _scope(by)

        def of_map(group: Group, lanes: Lanes) -> None:
            group.parts.events.tell(MapAcquire(lanes, by, scope, addresses(group, lanes)))

        return of_map
    if by.opcode[1:3] == ("proxy", "async::generic"):
        return partial(_one_way, by)
    return lambda group, lanes: group.parts.events.tell(_event(lanes, by))


def _one_way(by: Instruction, group: Group, lanes: Lanes) -> None:
    """Report a ``fence.proxy.async::generic`` to the observer as two fences.

    For ``.release``, a proxy fence precedes the release. For ``.acquire``, a proxy fence follows the acquire.
    """
    memory, proxy = MemoryFence(lanes, by, _scope(by)), AsyncProxyFence(lanes, by, of_global=False, of_shared=True)
    for event in (memory, proxy) if "acquire" in by.opcode else (proxy, memory):
        group.parts.events.tell(event)


def _event(lanes: Lanes, by: Instruction) -> _Simple:
    """Return the event that describes a fence without operands."""
    opcode = by.opcode
    if opcode[1:3] == ("proxy", "async"):
        of_all = len(opcode) == 3
        of_global = "global" in opcode
        return AsyncProxyFence(lanes, by, of_all or of_global, of_all or not of_global)
    if opcode[1] == "proxy" and "acquire" not in opcode:
        return MapRelease(lanes, by, _scope(by)) if "release" in opcode else OtherProxyFence(lanes, by)
    if opcode[1] == "mbarrier_init":
        return InitFence(lanes, by)
    return MemoryFence(lanes, by, _scope(by))


def _scope(by: Instruction) -> str:
    return next((part for part in by.opcode if part in _SCOPES), "")
