"""Calls: of functions in the module, by name or address, and of those that the runtime has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._binder import U64, Binder, dtype_of
from .._faults import Fault
from .._group import Context, Group
from .._lanes import Lanes, as_array
from .._program import YIELD, Code, Outcome, Step
from .._runtime import RUNTIME
from ..ptx import Group as Listed
from ..ptx import Immediate, Operand, Register, Symbol, Variable
from ._table import instruction

SECTION = "Control Flow Instructions: call"
Copy = Callable[[Any, Any, Lanes], None]  # from, to: groups or contexts


class CallSite:
    """What a call passes, and takes back."""

    def __init__(self, binder: Binder, results: tuple[Symbol, ...], arguments: tuple[Symbol, ...]):
        self._binder, self._results, self._arguments = binder, results, arguments
        self._bound: dict[Code, tuple[list[Copy], list[Copy]]] = {}

    def enter(self, group: Group, lanes: Lanes, code: Code) -> Outcome:
        """Threads go on in a function."""
        context = group.context.callee(group.machine, code, self._binder.pc + 1)
        for copy in self._copies(code)[0]:
            copy(group.context, context, lanes)
        group.machine.scheduler.add(context, 0, as_array(lanes))
        return YIELD

    def give_back(self, context: Context, lanes: Lanes) -> None:
        """A function's results to its caller."""
        for copy in self._copies(context.code)[1]:
            copy(context, context.caller, lanes)

    def _copies(self, code: Code) -> tuple[list[Copy], list[Copy]]:
        found = self._bound.get(code)
        if found is None:
            function, caller = code.function, self._binder.code
            taken = [_copy(caller, a, code, p) for a, p in zip(self._arguments, function.params, strict=True)]
            given = [
                _copy(code, Symbol(p.name), caller, r)
                for p, r in zip(function.returns, self._results, strict=bool(self._results))
            ]
            found = self._bound[code] = taken, given
        return found


def _copy(source: Code, a: Symbol | Variable, target: Code, b: Symbol | Variable) -> Copy:
    """Bytes of a variable of the ``.param`` space to another."""
    first, second = source.parameters[a.name], target.parameters[b.name]
    function = source.function
    declared = (*function.variables.values(), *function.params, *function.returns)
    size = next(v.size_bytes for v in declared if v.name == a.name)

    def copy(giver: Context, taker: Context, lanes: Lanes) -> None:
        taken = giver.registers.parameters[lanes, first : first + size]
        taker.registers.parameters[lanes, second : second + size] = taken

    return copy


@instruction("call", section=SECTION, moves=True)
def call(binder: Binder) -> Step:
    """``call (result), function, (arguments), prototype;``: all but the function may be missing."""
    operands = [*binder.instruction.operands]
    results = _variables(binder, operands.pop(0)) if isinstance(operands[0], Listed) else ()
    target, *rest = operands
    arguments = _variables(binder, rest[0]) if rest and isinstance(rest[0], Listed) else ()
    if isinstance(target, Symbol) and target.name in RUNTIME:
        return _runtime_call(binder, target.name, results, arguments)
    site = binder.code.call_sites[binder.pc + 1] = CallSite(binder, results, arguments)
    if isinstance(target, Symbol):
        code = binder.program.codes[target.name]
        if code.function.declared_only:
            raise binder.unsupported(f"no body of {target.name}")
        return lambda group, lanes: site.enter(group, lanes, code)
    return _indirect(binder, target, site)


def _variables(binder: Binder, listed: Operand) -> tuple[Symbol, ...]:
    """The variables that a call passes, or takes."""
    elements = listed.elements if isinstance(listed, Listed) else ()
    found = tuple(element for element in elements if isinstance(element, Symbol))
    if len(found) != len(elements):
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
                raise Fault("fault", f"a call of 0x{int(address):x}, which is no function's address", lanes)
            site.enter(group, as_array(lanes)[addresses == address], codes[name])
        return YIELD

    return step


def _runtime_call(binder: Binder, name: str, results: tuple[Symbol, ...], arguments: tuple[Symbol, ...]) -> Step:
    code, function = binder.code, RUNTIME[name]
    widths = {v.name: v.size_bytes for v in code.function.variables.values()}
    takes = [(code.parameters[a.name], widths[a.name]) for a in arguments]
    gives = [(code.parameters[r.name], widths[r.name]) for r in results]

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
