"""Instructions whose results depend only on their operands; the package `_pure` computes these results."""

from __future__ import annotations

import numpy as np

from .._ptx import Immediate, Operand, Register
from .._pure import Pure, immediate, lookup
from .._sync.warp_sync import WHOLE, when_together
from .._warps.binder import BOOL, Binder, Read, dtype_of
from .._warps.code import Outcome, Step
from .._warps.faults import Fault
from .._warps.lanes import WARP, Lanes, warps_of
from .._warps.registers import VIEW
from ._shuffles import shuffled
from ._table import Group

__all__ = ["bind_pure"]


def bind_pure(binder: Binder) -> tuple[Step, bool]:
    """Return the step of an instruction in the table of `_pure`, and whether the step may make threads wait."""
    pure = lookup(binder.instruction)
    if pure is not None:
        return _bind(binder, pure), pure.warp
    if binder.instruction.opcode[0] == "mov":
        return _bind_look(binder), False
    raise binder.unsupported()


def _bind_look(binder: Binder) -> Step:
    """Return the step of a ``mov`` from a special register, or of a variable's address."""
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
    reads = [_read(binder, operand, dtype) for operand, dtype in zip(sources, pure.sources, strict=True)]
    writes = [binder.write(operand, dtype) for operand, dtype in zip(results, pure.results, strict=True)]
    compute = pure.compute
    if len(writes) != 1:

        def several(group: Group, lanes: Lanes) -> None:
            values = compute(*(read(group, lanes) for read in reads))
            values = [np.array(value) for value in (values if isinstance(values, tuple) else (values,))]
            for write, value in zip(writes, values, strict=True):
                write(group, lanes, value)

        return several
    place = _place(binder, results[0], pure.results[0])
    if place is not None and (step := _in_place(binder, pure, sources, reads, *place)) is not None:
        return step
    (write,) = writes
    return lambda group, lanes: write(group, lanes, compute(*[read(group, lanes) for read in reads]))


def _read(binder: Binder, operand: Operand, dtype: np.dtype) -> Read:
    """Return the value of an operand."""
    if not isinstance(operand, Immediate):
        return binder.read(operand, dtype)
    value = _number(operand, dtype)
    return lambda group, lanes: value


def _number(operand: Immediate, dtype: np.dtype) -> np.ndarray:
    """Return a number as an array, because NumPy takes half the time for an array as for a scalar."""
    value = np.array(immediate(operand, dtype))
    value.flags.writeable = False
    return value


def _in_place(
    binder: Binder, pure: Pure, sources: list[Operand], reads: list[Read], view: int, row: int
) -> Step | None:
    """Return the step of an instruction with one to three sources.

    The step writes its result into the row of a register.
    """
    compute, first = pure.compute, _place(binder, sources[0], pure.sources[0]) if sources else None
    if len(reads) == 1:
        (only,) = reads

        def one(group: Group, lanes: Lanes) -> None:
            group.views[view][row, lanes] = compute(only(group, lanes))

        return one
    if len(reads) == 2 and first is not None and isinstance(sources[1], Immediate):
        (of, at), value = first, _number(sources[1], pure.sources[1])

        def with_number(group: Group, lanes: Lanes) -> None:
            views = group.views
            views[view][row, lanes] = compute(views[of][at, lanes], value)

        return with_number
    if len(reads) == 2:
        a, b = reads

        def two(group: Group, lanes: Lanes) -> None:
            group.views[view][row, lanes] = compute(a(group, lanes), b(group, lanes))

        return two
    if len(reads) == 3:
        a, b, c = reads

        def three(group: Group, lanes: Lanes) -> None:
            group.views[view][row, lanes] = compute(a(group, lanes), b(group, lanes), c(group, lanes))

        return three
    return None


def _place(binder: Binder, operand: Operand, dtype: np.dtype) -> tuple[int, int] | None:
    """Return the view and the row of a register that has the size of a dtype; otherwise return None."""
    if not isinstance(operand, Register):
        return None
    size, row = binder.row(operand, dtype)
    return (VIEW[dtype], row) if size == dtype.itemsize or dtype == BOOL else None


def _bind_carry(binder: Binder, pure: Pure, results: list[Operand], sources: list[Operand]) -> Step:
    """Return the step of an instruction that also reads or writes the condition code register."""
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
    """Return the step, for whole warps, of an instruction whose lanes read the registers of other lanes."""
    reads = [binder.read(operand, dtype) for operand, dtype in zip(sources, pure.sources, strict=True)]
    writes = [binder.write(operand, dtype) for operand, dtype in zip(results, pure.results, strict=True)]

    by, is_shuffle = binder.instruction, binder.instruction.opcode[0] == "shfl"
    masks, pc = _membermask(binder, sources) if "sync" in by.opcode else WHOLE, binder.pc

    def exchange(group: Group, lanes: Lanes) -> None:
        warps = warps_of(lanes)
        shape = warps.active.shape
        given = [np.broadcast_to(read(group, warps.whole), (shape[0] * WARP,)).reshape(shape) for read in reads]
        if pure.fault is not None and (text := pure.fault(warps.active, *given)):
            raise Fault("fault", text, lanes)
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
    """Return a function that reads the mask of the lanes that must execute the instruction together."""
    return WHOLE if "aligned" in binder.instruction.opcode else binder.membermask(sources[-1])
