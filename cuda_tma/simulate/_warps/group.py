"""Threads that stand at the same place of a kernel, called from the same places: they run as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._ptx import Instruction
from .lanes import Lanes, as_array, count, selected
from .registers import RegisterFile

if TYPE_CHECKING:
    from .._machine.machine import Machine
    from .program import Code

_CALL_BYTES = 16  # of the stack, at least: where to return to, and registers that are kept

DYNAMIC_BYTES = 8192  # of the stack, for what a function's threads allocate

__all__ = ["DYNAMIC_BYTES", "Context", "Group"]


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
    dynamic_end : int
        Where what ``alloca`` gives ends at the latest, behind them.
    """

    __slots__ = (
        "_callees", "_tops", "caller", "code", "depth", "dynamic_end", "local_base", "local_end", "registers",
        "return_pc",
    )  # fmt: skip

    def __init__(self, code: Code, caller: Context | None, return_pc: int, registers: RegisterFile):
        self.code, self.caller, self.return_pc, self.registers = code, caller, return_pc, registers
        self.depth: int = caller.depth + 1 if caller else 0
        self.local_base: int = caller.local_end if caller else 0
        self.dynamic_end: int = -(-(self.local_base + code.local_bytes) // 16) * 16 + DYNAMIC_BYTES * code.allocates
        self.local_end: int = self.dynamic_end + (_CALL_BYTES if caller else 0)
        self._tops: np.ndarray | None = None
        self._callees: dict[tuple[Code, int], Context] = {}

    @property
    def views(self) -> list[np.ndarray]:
        """The typed views of the function's registers, see :class:`RegisterFile`."""
        return self.registers.views

    def begin(self, lanes: np.ndarray) -> None:
        """Threads enter the function, and have allocated nothing in it."""
        if self.registers.flights is not None:
            self.registers.flights.forget(lanes)
        if self._tops is not None:
            self._tops[lanes] = self.dynamic_end - DYNAMIC_BYTES

    def dynamic_tops(self, machine: Machine) -> np.ndarray:
        """Until where ``alloca`` has given each lane's local memory away."""
        if self._tops is None:
            self._tops = np.full(machine.geometry.lanes, self.dynamic_end - DYNAMIC_BYTES, np.int64)
        return self._tops

    @property
    def variables_end(self) -> int:
        """Where the function's part of the stack ends: behind its local variables, and what it allocates."""
        return self.dynamic_end if self.code.allocates else self.local_base + self.code.local_bytes

    @property
    def calls(self) -> tuple[Instruction, ...]:
        """The calls that led to this function, the innermost first, up to the kernel."""
        found, context = [], self
        while context.caller is not None:
            found.append(context.caller.code.instruction(context.return_pc - 1))
            context = context.caller
        return tuple(by for by in found if by is not None)

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
