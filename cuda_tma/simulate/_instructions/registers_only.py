"""Instructions whose results depend only on their operands: the functions of `_pure`, bound to registers."""

from __future__ import annotations

import numpy as np

from .._ptx import Operand, Register
from .._pure import Pure, lookup
from .._sync.warp_sync import WHOLE, when_together
from .._warps.binder import BOOL, Binder, Read, dtype_of
from .._warps.code import Outcome, Step
from .._warps.lanes import WARP, Lanes, warps_of
from .._warps.registers import VIEW
from ._shuffles import shuffled
from ._table import Group

__all__ = ["bind_pure"]


def bind_pure(binder: Binder) -> tuple[Step, bool]:
    """Return the step of an instruction in the table of `_pure`, and whether it may make threads wait."""
    pure = lookup(binder.instruction)
    if pure is not None:
        return _bind(binder, pure), pure.warp
    if binder.instruction.opcode[0] == "mov":
        return _bind_look(binder), False
    raise binder.unsupported()


def _bind_look(binder: Binder) -> Step:
    """Bind ``mov`` of a special register, or of a variable's address."""
    result, source = binder.instruction.operands
    dtype = dtype_of(binder.instruction.opcode[-1])
    read, write = binder.read(source, dtype), binder.write(result, dtype)
    return lambda group, lanes: write(group, lanes, read(group, lanes))


def _bind(binder: Binder, pure: Pure) -> Step:
    operands = binder.flat(binder.instruction.operands)
    count = len(pure.results)
    if len(operands) != count + len(pure.sources):
        raise binder.unsupported(f"{len(operands)} operands")
    results, sources = operands[:count], operands[count:]
    if pure.warp:
        return _bind_warp(binder, pure, results, sources)
    if pure.carry_in or pure.carry_out:
        return _bind_carry(binder, pure, results, sources)
    return _bind_lanes(binder, pure, results, sources)


def _bind_lanes(binder: Binder, pure: Pure, results: list[Operand], sources: list[Operand]) -> Step:
    reads = [binder.read(operand, dtype) for operand, dtype in zip(sources, pure.sources, strict=True)]
    writes = [binder.write(operand, dtype) for operand, dtype in zip(results, pure.results, strict=True)]
    compute = pure.compute
    if len(writes) != 1:

        def several(group: Group, lanes: Lanes) -> None:
            values = compute(*(read(group, lanes) for read in reads))
            values = [np.array(value) for value in (values if isinstance(values, tuple) else (values,))]
            for write, value in zip(writes, values, strict=True):
                write(group, lanes, value)

        return several
    (write,) = writes
    if len(reads) == 1:
        (only,) = reads
        return lambda group, lanes: write(group, lanes, compute(only(group, lanes)))
    if len(reads) == 2:
        a, b = reads
        place = _place(binder, results[0], pure)
        if place is not None:
            view, row = place

            def in_place(group: Group, lanes: Lanes) -> None:
                group.views[view][row, lanes] = compute(a(group, lanes), b(group, lanes))

            return in_place
        return lambda group, lanes: write(group, lanes, compute(a(group, lanes), b(group, lanes)))
    return lambda group, lanes: write(group, lanes, compute(*[read(group, lanes) for read in reads]))


def _place(binder: Binder, result: Operand, pure: Pure) -> tuple[int, int] | None:
    """Return the row of a result's register if the result can be written directly to it; otherwise None."""
    if not isinstance(result, Register):
        return None
    (dtype,) = pure.results
    size, row = binder.row(result, dtype)
    return (VIEW[dtype], row) if size == dtype.itemsize or dtype == BOOL else None


def _bind_carry(binder: Binder, pure: Pure, results: list[Operand], sources: list[Operand]) -> Step:
    """Bind an instruction for which the condition code register is an additional source or result."""
    reads = [binder.read(operand, dtype) for operand, dtype in zip(sources, pure.sources, strict=True)]
    writes = [binder.write(operand, dtype) for operand, dtype in zip(results, pure.results, strict=True)]

    def step(group: Group, lanes: Lanes) -> None:
        carry = group.context.registers.carry
        given = [read(group, lanes) for read in reads]
        if pure.carry_in:
            given.append(carry[lanes])
        values = pure.compute(*given)
        values = [np.array(value) for value in (values if isinstance(values, tuple) else (values,))]
        if pure.carry_out:
            carry[lanes] = values.pop()
        for write, value in zip(writes, values, strict=True):
            write(group, lanes, value)

    return step


def _bind_warp(binder: Binder, pure: Pure, results: list[Operand], sources: list[Operand]) -> Step:
    """Bind an instruction whose lanes read the registers of other lanes, for whole warps."""
    reads = [binder.read(operand, dtype) for operand, dtype in zip(sources, pure.sources, strict=True)]
    writes = [binder.write(operand, dtype) for operand, dtype in zip(results, pure.results, strict=True)]

    by, is_shuffle = binder.instruction, binder.instruction.opcode[0] == "shfl"
    masks, pc = _membermask(binder, sources) if "sync" in by.opcode else WHOLE, binder.pc

    def exchange(group: Group, lanes: Lanes) -> None:
        warps = warps_of(lanes)
        shape = warps.active.shape
        given = [np.broadcast_to(read(group, warps.whole), (shape[0] * WARP,)).reshape(shape) for read in reads]
        values = pure.compute(warps.active, *given)
        values = values if isinstance(values, tuple) else (values,)
        if is_shuffle:
            values = (shuffled(group, warps, by, given, values[0], masks == WHOLE), *values[1:])
        for write, value in zip(writes, values, strict=True):
            write(group, lanes, np.broadcast_to(value, shape)[warps.active])

    if "sync" not in by.opcode:
        return exchange

    def together(group: Group, lanes: Lanes) -> Outcome:
        return when_together(group, lanes, pc, exchange, masks)

    return together


def _membermask(binder: Binder, sources: list[Operand]) -> Read | int:
    """Return a reader of the mask of threads that must execute the instruction together with each lane."""
    return WHOLE if "aligned" in binder.instruction.opcode else binder.membermask(sources[-1])
