"""Calls of functions by name or by address, and calls of functions of the CUDA runtime."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from .._ptx import Group as Listed
from .._ptx import Immediate, Operand, Register, Symbol, Variable
from .._warps.binder import U64, Binder, dtype_of
from .._warps.code import YIELD, Code, Context, Outcome, Step
from .._warps.faults import Fault
from .._warps.lanes import Lanes, as_array, count
from ._table import Group, instruction
from .runtime import RUNTIME

SECTION = "Control Flow Instructions: call"
# A Copy function copies an argument from a source to a target for some lanes. The source and the target are groups or
# contexts.
Copy = Callable[[Any, Any, Lanes], None]


class CallSite:
    """The arguments and results of a call at one place in the PTX."""

    def __init__(self, binder: Binder, results: tuple[Operand, ...], arguments: tuple[Operand, ...]):
        self._binder, self._results, self._arguments = binder, results, arguments
        self._bound: dict[Code, tuple[list[Copy], list[Copy]]] = {}

    def enter(self, group: Group, lanes: Lanes, code: Code) -> Outcome:
        """Copy the arguments of the call, and continue the threads in the called function."""
        context = group.context.callee(group.parts.frames, code, self._binder.pc + 1)
        for copy in self.copies(code)[0]:
            copy(group.context, context, lanes)
        context.begin(as_array(lanes))
        group.parts.scheduler.add(context, 0, as_array(lanes))
        return YIELD

    def give_back(self, context: Context, lanes: Lanes) -> None:
        """Copy the results of a function to its caller."""
        for copy in self.copies(context.code)[1]:
            copy(context, context.caller, lanes)

    def copies(self, code: Code) -> tuple[list[Copy], list[Copy]]:
        """Return the functions that copy the arguments into a function and its results to the caller.

        Raises
        ------
        ValueError, LookupError
            If the parameters of the function do not fit the call.
        """
        found = self._bound.get(code)
        if found is None:
            caller, there = self._binder, Binder(self._binder.program, code, self._binder.instruction, 0)
            params, returns = code.function.params, code.function.returns
            taken = [
                _copy(caller, a, there, _operand(code, p), p) for a, p in zip(self._arguments, params, strict=True)
            ]
            given = [
                _copy(there, _operand(code, p), caller, r, p)
                for p, r in zip(returns, self._results, strict=bool(self._results))
            ]
            found = self._bound[code] = taken, given
        return found


def _operand(code: Code, variable: Variable) -> Operand:
    """Return the operand inside the function for a parameter or result; a register is one of its first registers."""
    if variable.space != "reg":
        return Symbol(variable.name)
    declared = (*code.function.returns, *code.function.params)
    return Register([v.name for v in declared if v.space == "reg"].index(variable.name))


def _copy(source: Binder, a: Operand, target: Binder, b: Operand, declared: Variable) -> Copy:
    """Return the function that copies a parameter: bytes in the ``.param`` space, a register, or a number."""
    if isinstance(a, Symbol) and isinstance(b, Symbol):
        size = declared.size_bytes
        first, second = _place(source, a, size), _place(target, b, size)

        def copy(giver: Any, taker: Any, lanes: Lanes) -> None:
            taken = giver.registers.parameters[lanes, first : first + size]
            taker.registers.parameters[lanes, second : second + size] = taken

        return copy
    dtype = dtype_of(declared.type)
    read, write = _reader(source, a, dtype), _writer(target, b, dtype)
    return lambda giver, taker, lanes: write(taker, lanes, read(giver, lanes))


def _place(binder: Binder, symbol: Symbol, size_bytes: int) -> int:
    """Return the offset of a variable in a function's ``.param`` space; refuse a variable that is too small."""
    function = binder.code.function
    declared = (*function.variables.values(), *function.params, *function.returns)
    if all(each.size_bytes < size_bytes for each in declared if each.name == symbol.name):
        raise ValueError(f"{symbol.name} has fewer than {size_bytes} bytes")
    return binder.code.parameters[symbol.name]


def _reader(binder: Binder, operand: Operand, dtype: np.dtype) -> Callable[[Any, Lanes], Any]:
    if not isinstance(operand, Symbol):
        return binder.read(operand, dtype)
    at = _place(binder, operand, dtype.itemsize)

    def read(context: Any, lanes: Lanes) -> Any:
        taken = context.registers.parameters[lanes, at : at + dtype.itemsize]
        return np.ascontiguousarray(taken).view(dtype)[:, 0]

    return read


def _writer(binder: Binder, operand: Operand, dtype: np.dtype) -> Callable[[Any, Lanes, Any], None]:
    if not isinstance(operand, Symbol):
        return binder.write(operand, dtype)
    at = _place(binder, operand, dtype.itemsize)

    def write(context: Any, lanes: Lanes, values: Any) -> None:
        given = np.array(np.broadcast_to(values, (count(lanes),)), dtype)
        context.registers.parameters[lanes, at : at + dtype.itemsize] = given.view(np.uint8).reshape(-1, dtype.itemsize)

    return write


@instruction("call", section=SECTION, moves=True)
def call(binder: Binder) -> Step:
    """Return the step that executes ``call (result), function, (arguments), prototype;``.

    Only the function is required.
    """
    operands = [*binder.instruction.operands]
    results = _listed(operands.pop(0)) if isinstance(operands[0], Listed) else ()
    target, *rest = operands
    arguments = _listed(rest[0]) if rest else ()
    if isinstance(target, Symbol) and target.name in RUNTIME:
        return _runtime_call(binder, target.name, _variables(binder, results), _variables(binder, arguments))
    site = binder.code.call_sites[binder.pc + 1] = CallSite(binder, results, arguments)
    if isinstance(target, Symbol):
        code = binder.program.codes[target.name]
        if code.function.declared_only:
            raise binder.unsupported(f"no body of {target.name}")
        site.copies(code)  # The method CallSite.copies raises an error if the arguments do not match the parameters.
        return lambda group, lanes: site.enter(group, lanes, code)
    return _indirect(binder, target, site)


def _listed(operand: Operand) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, Listed) else ()


def _variables(binder: Binder, listed: tuple[Operand, ...]) -> tuple[Symbol, ...]:
    """Return the arguments or results of a call of the runtime; refuse operands that are not variables."""
    found = tuple(element for element in listed if isinstance(element, Symbol))
    if len(found) != len(listed):
        raise binder.unsupported("arguments in registers")
    return found


def _indirect(binder: Binder, target: Operand, site: CallSite) -> Step:
    if not isinstance(target, (Register, Immediate)):
        raise binder.unsupported(f"a call of {target}")
    read, codes, program = binder.read(target, U64), binder.program.codes, binder.program

    def step(group: Group, lanes: Lanes) -> Outcome:
        addresses = np.broadcast_to(read(group, lanes), as_array(lanes).shape)
        for address in np.unique(addresses):
            name = program.function_at(int(address))
            if name not in codes:
                raise Fault(
                    "fault", (f"a call of address 0x{int(address):x}, which is not the address of a function"), lanes
                )
            try:
                site.copies(codes[name])
            except (ValueError, LookupError, TypeError):
                raise Fault(
                    "fault", (f"a call of {name} passes parameters that do not match those of the function"), lanes
                ) from None
            site.enter(group, as_array(lanes)[addresses == address], codes[name])
        return YIELD

    return step


def _runtime_call(binder: Binder, name: str, results: tuple[Symbol, ...], arguments: tuple[Symbol, ...]) -> Step:
    code, function = binder.code, RUNTIME[name]
    # The method Signature.bind raises TypeError if the number of arguments is wrong.
    signature(function).bind(None, None, *arguments)
    widths = {v.name: v.size_bytes for v in code.function.variables.values()}
    takes = [(code.parameters[a.name], widths[a.name]) for a in arguments]
    gives = [(code.parameters[r.name], widths[r.name]) for r in results]
    if len(gives) > 1 or any(size not in (1, 2, 4, 8) for _, size in (*takes, *gives)):
        raise binder.unsupported("with other parameters")

    def step(group: Group, lanes: Lanes) -> Outcome:
        area = group.context.registers.parameters
        given = [
            np.ascontiguousarray(area[lanes, at : at + size]).view(dtype_of(f"u{8 * size}"))[:, 0].astype(np.int64)
            for at, size in takes
        ]
        answer = function(group, lanes, *given)
        for at, size in gives:
            bits = np.ascontiguousarray(answer.astype(dtype_of(f"u{8 * size}")))
            area[lanes, at : at + size] = bits.view(np.uint8).reshape(-1, size)
        return None

    return step
