"""The check of local memory for reads before the first write, and for accesses beyond the variables of a function.

Source: PTX ISA 9.0, "Local State Space": local variables are private to a thread and not initialized.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._ptx import Address, Function, Instruction, Operand, Vector
from .._warps.events import UnwrittenRead
from .._warps.fault_log import FaultLog
from .._warps.faults import Fault
from .._warps.group import Group
from .._warps.lanes import Lanes, as_array
from .._warps.observe import Events
from .memory import Memory, Piece

__all__ = ["LocalUse"]

_MOST_BYTES = 1 << 26  # The record of writes covers at most 64 MB of the local memory of all threads together.
_VECTORS = frozenset({"v2", "v4", "v8"})


class LocalUse:
    """The bytes of local memory that threads have written since their CTA began.

    Parameters
    ----------
    lanes : int
        The number of threads that run at the same time.
    memory : Memory
    events : Events
    faults : FaultLog
    """

    def __init__(self, lanes: int, memory: Memory, events: Events, faults: FaultLog):
        self._memory, self._events, self._faults = memory, events, faults
        self._written = np.zeros((lanes, 0), bool)
        # The dictionary caches the result of `_only_copies` under the ``id`` of each load instruction.
        self._copies: dict[int, bool] = {}
        self._is_full = False

    def forget(self, lanes: Lanes) -> None:
        """Clear the recorded writes of threads that begin."""
        if self._written.size:
            self._written[lanes] = False

    def note(self, group: Group[Any], kind: str, lanes: Lanes, piece: Piece, size_bytes: int, by: Instruction) -> None:
        """Check and record accesses of `lanes` to local memory."""
        here, end = as_array(lanes), group.context.variables_end
        addresses = piece.positions - here * self._memory.local_pitch
        beyond = addresses + size_bytes > end
        if beyond.any():
            self._faults.keep(_beyond(here[beyond], int(addresses[beyond][0]), size_bytes, kind, group, by))
        if self._is_full or not self._has_room(int(addresses.max()) + size_bytes):
            return
        units = here[:, None], addresses[:, None] + np.arange(size_bytes)
        if kind != "read":
            self._written[units] = True
            return
        unwritten = ~(self._written[units].any(axis=1) | beyond)
        if unwritten.any() and _VECTORS.isdisjoint(by.opcode) and not self._copies_bytes(group, size_bytes, by):
            some, base = addresses[unwritten], group.context.local_base
            self._events.tell(UnwrittenRead(here[unwritten], by, some, base, size_bytes))

    def _has_room(self, end: int) -> bool:
        lanes, width = self._written.shape
        if end > width:
            wider = 1 << (end - 1).bit_length()
            self._is_full = wider * lanes > _MOST_BYTES
            if not self._is_full:
                self._written = np.pad(self._written, ((0, 0), (0, wider - width)))
        return not self._is_full

    def _copies_bytes(self, group: Group[Any], size_bytes: int, by: Instruction) -> bool:
        """Return whether a load is a part of a copy of bytes, for example of a structure with unused bytes."""
        if size_bytes > 1:
            return False
        if id(by) not in self._copies:
            self._copies[id(by)] = _only_copies(group.context.code.function, by)
        return self._copies[id(by)]


def _only_copies(function: Function, load: Instruction) -> bool:
    """Return whether only stores use the value of a load."""
    taken = [each for each in function.instructions if each is not load and _names(each.operands, load.operands[0])]
    return all(each.opcode[0] == "st" and not _names(each.operands[:1], load.operands[0]) for each in taken)


def _names(operands: tuple[Operand, ...], register: Operand) -> bool:
    for operand in operands:
        if isinstance(operand, Vector) and _names(operand.elements, register):
            return True
        if operand == register or (isinstance(operand, Address) and operand.base == register):
            return True
    return False


def _beyond(lanes: np.ndarray, address: int, size_bytes: int, kind: str, group: Group[Any], by: Instruction) -> Fault:
    functions = group.context.code.name + " and its callers" * (group.context.caller is not None)
    return Fault(
        "out-of-bounds",
        f"a {'read' if kind == 'read' else 'write'} of {size_bytes} bytes at byte {address} of local memory, where the "
        f"local variables of {functions} end at byte {group.context.variables_end}: see the index (PTX ISA, "
        '"Local State Space")',
        lanes,
        by,
    )
