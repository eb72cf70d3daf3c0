"""The functions of a program as lists of steps, and the contexts of calls, with registers and a part of the stack."""

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

DYNAMIC_BYTES = 8192  # A function can allocate at most 8,192 bytes of its stack by alloca.
_CALL_BYTES = 16  # A call takes at least 16 bytes of the stack for the return address and saved registers.
_OF_STACK = ("alloca", "stacksave", "stackrestore")


class _Yield:
    """The result of a step that ends its group, because each lane of the group continues elsewhere."""

    def __repr__(self) -> str:
        return "YIELD"


YIELD = _Yield()
# The outcome of a step is the index of the next instruction, the end of the group, or None for the following
# instruction.
Outcome = int | _Yield | None
Step = Callable[[Any, Lanes], Outcome]  # A Step function executes an instruction for some lanes of a Group.


class CallSite(Protocol):
    """The interface of a call of a function at one place in the PTX."""

    def give_back(self, context: Context, lanes: Lanes) -> None:
        """Copy the results of a function to its caller."""


class Code:
    """One function of a program.

    Attributes
    ----------
    steps : list of Step
        A step for each instruction, and a last step that returns from the function.
    hazards : Hazards
        The accesses of the function's instructions to registers of products that may still be in flight.
    call_sites : dict
        The calls that the function contains, by the index of the instruction after each call.
    parameters : dict
        The offsets of parameters, results and variables of the ``.param`` space in :attr:`RegisterFile.parameters`.
    locals : dict
        The offsets of local variables in the function's part of the stack.
    allocates : bool
        Whether threads in the function may allocate local memory by ``alloca``.
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
        """Return the instruction at an index; None for the return at the end of the function."""
        instructions = self.function.instructions
        return instructions[at] if at < len(instructions) else None

    @property
    def register_bytes(self) -> int:
        """The size in bytes of one lane's registers."""
        return sum(max(1, size) * count for size, count in self.row_counts.items())

    @property
    def thread_bytes(self) -> int:
        """The number of bytes of a :class:`RegisterFile` for each lane."""
        return self.register_bytes + self.parameter_bytes + 1  # The carry flag takes one byte in each lane.


def laid_out(variables: Iterator[Variable] | list[Variable], start: int = 0) -> tuple[dict[str, int], int]:
    """Return the offset of each variable, at the next multiple of its alignment, and the end of the last variable."""
    places = {}
    for variable in variables:
        start = -(-start // variable.align) * variable.align
        places[variable.name] = start
        start += variable.size_bytes
    return places, start


class Context:
    """A function and the calls that led to it, which correspond to the stack of return addresses of a thread.

    Threads with equal stacks have the same context. Threads that reach an instruction on different paths can therefore
    run together again.

    Attributes
    ----------
    caller : Context or None
    return_pc : int
        The index of the instruction at which the caller continues.
    registers : RegisterFile
        The registers of this function at this depth of calls; all contexts with the same function and depth share them.
    local_base : int
        The offset of this function's local variables in the stack of a thread.
    dynamic_end : int
        The end of the memory for ``alloca``, which follows the local variables.
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
        """The typed views of the function's registers, as in :class:`RegisterFile`."""
        return self.registers.views

    def begin(self, lanes: np.ndarray) -> None:
        """Begin the function for some threads, which have no allocations yet."""
        if self.registers.flights is not None:
            self.registers.flights.forget(lanes)
        if self._tops is not None:
            self._tops[lanes] = self.dynamic_end - DYNAMIC_BYTES

    def dynamic_tops(self, lanes: int) -> np.ndarray:
        """Return, for all lanes, the end of the local memory that ``alloca`` has allocated."""
        if self._tops is None:
            self._tops = np.full(lanes, self.dynamic_end - DYNAMIC_BYTES, np.int64)
        return self._tops

    @property
    def variables_end(self) -> int:
        """The end of the function's part of the stack, which follows its local variables and allocations."""
        return self.dynamic_end if self.code.allocates else self.local_base + self.code.local_bytes

    @property
    def calls(self) -> tuple[Instruction, ...]:
        """The calls that led to this function, from the innermost call to the call in the kernel."""
        found, context = [], self
        while context.caller is not None:
            found.append(context.caller.code.instruction(context.return_pc - 1))
            context = context.caller
        return tuple(by for by in found if by is not None)

    def callee(self, frames: Frames, code: Code, return_pc: int) -> Context:
        """Return the context of a function that this context calls."""
        found = self._callees.get((code, return_pc))
        if found is None:
            registers = frames.registers_at(code, self.depth + 1)
            found = self._callees[code, return_pc] = Context(code, self, return_pc, registers)
            frames.reserve(found.local_end)
        return found


class Frames:
    """The registers and the stacks of all functions that a launch has called.

    Parameters
    ----------
    lanes : int
        The number of threads that run at the same time.
    reserve : callable
        A function that extends the stack of each thread to a number of bytes.
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
