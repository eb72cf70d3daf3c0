"""Functions as bound callables, and the calls that led to one: their registers, and their part of the stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import numpy as np

from ..._budget import CALL_DEPTH, REGISTER_BYTES
from .._ptx import Function, Instruction, Variable
from .faults import Fault
from .hazards import Hazards
from .lanes import Lanes
from .registers import RegisterFile, rows_of

__all__ = ["DYNAMIC_BYTES", "YIELD", "CallSite", "Code", "Context", "Frames", "Outcome", "Step", "laid_out"]

DYNAMIC_BYTES = 8192  # of the stack, for alloca of a function's threads
_CALL_BYTES = 16  # of the stack, at least: where to return to, and registers that are kept
_OF_STACK = ("alloca", "stacksave", "stackrestore")


class _Yield:
    """The result of a step that ends its group: each of its lanes continues elsewhere."""

    def __repr__(self) -> str:
        return "YIELD"


YIELD = _Yield()
Outcome = int | _Yield | None  # where to go on, nowhere, or at the next instruction
Step = Callable[[Any, Lanes], Outcome]  # of a Group


class CallSite(Protocol):
    """A call of a function."""

    def give_back(self, context: Context, lanes: Lanes) -> None:
        """A function's results to its caller."""


class Code:
    """One function.

    Attributes
    ----------
    steps : list of Step
        One for each instruction, and a last one that returns.
    hazards : Hazards
        What its instructions may do to registers of products that are under way.
    call_sites : dict
        The calls in it, by where each goes on.
    parameters : dict
        Where parameters, results and variables of the ``.param`` space lie among :attr:`RegisterFile.parameters`.
    locals : dict
        Where local variables lie, from the function's part of the stack on.
    allocates : bool
        Whether its threads may ask for more of it.
    """

    def __init__(self, function: Function):
        self.function = function
        self.steps: list[Step] = []
        self.hazards = Hazards()
        self.call_sites: dict[int, CallSite] = {}
        self.register_rows, self.row_counts = rows_of(function.registers)
        passed = [*function.params, *function.returns] if function.kind == "func" else []
        passed += [v for v in function.variables.values() if v.space == "param"]
        self.parameters, self.parameter_bytes = laid_out([v for v in passed if v.space == "param"])
        self.allocates = any(each.opcode[0] in _OF_STACK for each in function.instructions)
        self.locals, self.local_bytes = laid_out(v for v in function.variables.values() if v.space == "local")

    @property
    def name(self) -> str:
        return self.function.name

    def instruction(self, at: int) -> Instruction | None:
        """The one at a place; None for the return at the end."""
        instructions = self.function.instructions
        return instructions[at] if at < len(instructions) else None

    @property
    def register_bytes(self) -> int:
        """The bytes of one lane."""
        return sum(max(1, size) * count for size, count in self.row_counts.items())

    @property
    def thread_bytes(self) -> int:
        """The memory of a :class:`RegisterFile` for each lane."""
        return self.register_bytes + self.parameter_bytes + 1  # the carry flag


def laid_out(variables: Iterator[Variable] | list[Variable], start: int = 0) -> tuple[dict[str, int], int]:
    """Each at the next multiple of its alignment; and where the last one ends."""
    places = {}
    for variable in variables:
        start = -(-start // variable.align) * variable.align
        places[variable.name] = start
        start += variable.size_bytes
    return places, start


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
        The last end of the memory of ``alloca``, which follows them.
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

    def dynamic_tops(self, lanes: int) -> np.ndarray:
        """Return, for all lanes, the end of the local memory that ``alloca`` has given away."""
        if self._tops is None:
            self._tops = np.full(lanes, self.dynamic_end - DYNAMIC_BYTES, np.int64)
        return self._tops

    @property
    def variables_end(self) -> int:
        """The end of the function's part of the stack, after its local variables and allocations."""
        return self.dynamic_end if self.code.allocates else self.local_base + self.code.local_bytes

    @property
    def calls(self) -> tuple[Instruction, ...]:
        """The calls that led to this function, the innermost first, up to the kernel."""
        found, context = [], self
        while context.caller is not None:
            found.append(context.caller.code.instruction(context.return_pc - 1))
            context = context.caller
        return tuple(by for by in found if by is not None)

    def callee(self, frames: Frames, code: Code, return_pc: int) -> Context:
        """The context of a function that is called from here."""
        found = self._callees.get((code, return_pc))
        if found is None:
            registers = frames.registers_at(code, self.depth + 1)
            found = self._callees[code, return_pc] = Context(code, self, return_pc, registers)
            frames.reserve(found.local_end)
        return found


class Frames:
    """The registers and the stack of all functions that a launch has called.

    Parameters
    ----------
    lanes : int
        Threads that run at the same time.
    reserve : callable
        Lets the stack of each thread reach to a byte.
    """

    def __init__(self, lanes: int, reserve: Callable[[int], None]):
        self._lanes, self.reserve = lanes, reserve
        self._registers: dict[tuple[Code, int], RegisterFile] = {}
        self._bytes = 0

    def registers_at(self, code: Code, depth: int) -> RegisterFile:
        """Return the registers of a function at a depth of calls."""
        found = self._registers.get((code, depth))
        if found is None:
            if depth > CALL_DEPTH:
                raise _too_deep(depth)
            self._bytes += code.thread_bytes * self._lanes
            if self._bytes > REGISTER_BYTES:
                raise _too_deep(depth) if depth else _too_many_registers(code, self._lanes)
            found = RegisterFile(code.row_counts, code.parameter_bytes, self._lanes)
            self._registers[code, depth] = found
        return found

    def all(self) -> Iterable[RegisterFile]:
        """Return the registers of all functions that have been called."""
        return self._registers.values()


def _too_deep(depth: int) -> Fault:
    return Fault("fault", f"stack overflow: calls are {depth} deep; the recursion is too deep, or does not end")


def _too_many_registers(code: Code, lanes: int) -> ValueError:
    return ValueError(
        f"{code.name} has {code.register_bytes} bytes of registers in each thread, and {lanes} threads that run at the "
        f"same time have {REGISTER_BYTES} bytes here: launch smaller blocks or clusters"
    )
