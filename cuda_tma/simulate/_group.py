"""Threads that stand at the same place of a kernel, called from the same places: they run as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._lanes import Lanes, as_array, count, selected
from ._registers import RegisterFile
from .ptx import Instruction

if TYPE_CHECKING:
    from ._machine import Machine
    from ._program import Code

_CALL_BYTES = 16  # of the stack, at least: where to return to, and registers that are kept

__all__ = ["Context", "Group"]


class Context:
    """A function, and the calls that led to it: what a stack of return addresses says, without its threads.

    Equal stacks are one object, so that threads which come to the same place on different ways find each other.

    Attributes
    ----------
    caller : Context or None
    return_pc : int
        Where the caller goes on.
    registers : RegisterFile
        Of this function at this depth; shared by all who are at the same depth of it.
    local_base : int
        Where this function's local variables begin in a thread's stack.
    """

    __slots__ = ("_callees", "caller", "code", "depth", "local_base", "local_end", "registers", "return_pc")

    def __init__(self, code: Code, caller: Context | None, return_pc: int, registers: RegisterFile):
        self.code, self.caller, self.return_pc, self.registers = code, caller, return_pc, registers
        self.depth: int = caller.depth + 1 if caller else 0
        self.local_base: int = caller.local_end if caller else 0
        self.local_end: int = -(-(self.local_base + code.local_bytes) // 16) * 16 + (_CALL_BYTES if caller else 0)
        self._callees: dict[tuple[Code, int], Context] = {}

    @property
    def views(self) -> list[np.ndarray]:
        """The typed views of the function's registers, see :class:`RegisterFile`."""
        return self.registers.views

    @property
    def calls(self) -> tuple[Instruction, ...]:
        """What has called this function, and what has called that one, up to the kernel."""
        if self.caller is None:
            return ()
        by = self.caller.code.instruction(self.return_pc - 1)
        return (*((by,) if by is not None else ()), *self.caller.calls)

    def callee(self, machine: Machine, code: Code, return_pc: int) -> Context:
        """The context of a function that is called from here."""
        found = self._callees.get((code, return_pc))
        if found is None:
            registers = machine.registers_at(code, self.depth + 1)
            found = self._callees[code, return_pc] = Context(code, self, return_pc, registers)
            machine.memory.reserve_stack(found.local_end)
        return found


class Group:
    """Lanes that run together; what an instruction is given.

    Attributes
    ----------
    machine : Machine
    context : Context
    pc : int
        Index of the instruction that is executed now.
    lanes : slice or numpy.ndarray
    views : list of numpy.ndarray
        The typed views of the function's registers, see :class:`RegisterFile`.
    """

    __slots__ = ("context", "lanes", "machine", "pc", "views")

    def __init__(self, machine: Machine, context: Context, pc: int, lanes: np.ndarray):
        self.machine, self.context, self.pc = machine, context, pc
        self.lanes: Lanes = selected(lanes)
        self.views = context.registers.views

    @property
    def size(self) -> int:
        """How many threads it has."""
        return count(self.lanes)

    def array(self) -> np.ndarray:
        """Its lanes, ascending."""
        return as_array(self.lanes)
