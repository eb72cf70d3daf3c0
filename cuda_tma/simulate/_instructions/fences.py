"""Fences. Memory here is one, and each access takes effect in its turn: a fence is for those who observe."""

from __future__ import annotations

from .._binder import Binder
from .._observe import announce
from .._program import Step
from ._table import instruction


@instruction("fence", "membar", section="Parallel Synchronization and Communication Instructions: membar, fence")
def fence(binder: Binder) -> Step:
    name, by = ".".join(binder.instruction.opcode), binder.instruction

    return lambda group, lanes: announce(group, name, lanes, by)
