"""The instructions ``ld`` and ``st``, and instructions that give hints to caches."""

from __future__ import annotations

import numpy as np

from .._memory.access import load, observe, store
from .._memory.memory import Piece
from .._ptx import Address, Immediate, Operand, Symbol
from .._warps.binder import U64, Address64, Binder, Read, Write, dtype_of
from .._warps.code import Step
from .._warps.faults import Fault
from .._warps.lanes import Lanes, as_array, count
from ._table import Group, instruction
from .addresses import space_of

SECTION = "Data Movement and Conversion Instructions: {}"

_VECTORS = ("v2", "v4", "v8")
_OF_OTHERS = frozenset({"volatile", "relaxed", "acquire", "mmio"})


@instruction("ld", "ldu", section=SECTION.format("ld"))
def ld(binder: Binder) -> Step:
    parts = binder.instruction.opcode
    results, source = binder.flat(binder.instruction.operands[:1]), binder.instruction.operands[1]
    dtype, space = dtype_of(parts[-1]), space_of(parts)
    writes = [binder.write(result, dtype) for result in results]
    _check_elements(binder, len(writes))
    if space == "param" and isinstance(source, Address) and isinstance(source.base, Symbol):
        return _ld_param(binder, source.base, source.offset, dtype, writes)
    address, elements = binder.address(source), len(writes)
    if not _OF_OTHERS.isdisjoint(parts):
        return _ld_of_others(binder, address, dtype, writes)
    if elements == 1:
        (write,) = writes

        def one(group: Group, lanes: Lanes) -> None:
            write(group, lanes, load(group, lanes, space, address(group, lanes), dtype, 1, binder.instruction)[0])

        return one

    def step(group: Group, lanes: Lanes) -> None:
        values = load(group, lanes, space, address(group, lanes), dtype, elements, binder.instruction)
        for write, value in zip(writes, values, strict=True):
            write(group, lanes, value)

    return step


def _check_elements(binder: Binder, given: int) -> None:
    """Refuse a vector operand whose number of registers differs from that of the opcode."""
    (elements,) = {int(part[1:]) for part in binder.instruction.opcode if part in _VECTORS} or {1}
    if given != elements:
        raise binder.unsupported(f"of {elements} elements with {given} registers")


def _ld_of_others(binder: Binder, address: Address64, dtype: np.dtype, writes: list[Write]) -> Step:
    """Return the step of a load from memory that other threads may change.

    A thread that repeats the load lets the other threads run.
    """
    space = space_of(binder.instruction.opcode)

    def step(group: Group, lanes: Lanes) -> None:
        values = load(group, lanes, space, address(group, lanes), dtype, len(writes), binder.instruction)
        group.parts.scheduler.polled()
        for write, value in zip(writes, values, strict=True):
            write(group, lanes, value)

    return step


def _ld_param(binder: Binder, source: Symbol, behind: int, dtype: np.dtype, writes: list[Write]) -> Step:
    """Return the step of a load of a parameter.

    A parameter of a kernel is equal for all threads. Parameters and results of a function are stored with its
    registers.
    """
    name, offset, size = source.name, source.offset + behind, dtype.itemsize
    if name in binder.code.parameters:
        start = binder.code.parameters[name] + offset
        _check_inside(binder, start, len(writes) * size, binder.code.parameter_bytes)

        def passed(group: Group, lanes: Lanes) -> None:
            area = group.context.registers.parameters
            for i, write in enumerate(writes):
                first = start + i * size
                write(group, lanes, np.ascontiguousarray(area[lanes, first : first + size]).view(dtype)[:, 0])

        return passed
    params = binder.code.function.params
    start = next(v.offset for v in params if v.name == name) + offset
    _check_inside(binder, start, len(writes) * size, params[-1].offset + params[-1].size_bytes)

    def uniform(group: Group, lanes: Lanes) -> None:
        given = group.parts.parameters.bytes
        for i, write in enumerate(writes):
            first = start + i * size
            write(group, lanes, given[first : first + size].view(dtype)[0])

    return uniform


def _check_inside(binder: Binder, start: int, size_bytes: int, total_bytes: int) -> None:
    if not 0 <= start <= total_bytes - size_bytes:
        raise binder.unsupported(
            f"of bytes {start} to {start + size_bytes}, outside the {total_bytes} bytes of parameters"
        )


@instruction("st", section=SECTION.format("st"))
def st(binder: Binder) -> Step:
    parts = binder.instruction.opcode
    target, *values = binder.instruction.operands
    dtype, space = dtype_of(parts[-1]), space_of(parts)
    reads = [binder.read(value, dtype) for value in binder.flat(tuple(values[:1]))]
    _check_elements(binder, len(reads))
    if space == "param" and isinstance(target, Address) and isinstance(target.base, Symbol):
        return _st_param(binder, target.base, target.offset, dtype, reads)
    address = binder.address(target)

    def step(group: Group, lanes: Lanes) -> None:
        given = [np.asarray(read(group, lanes), dtype) for read in reads]
        store(group, lanes, space, address(group, lanes), given, binder.instruction)

    return step


def _st_param(binder: Binder, target: Symbol, behind: int, dtype: np.dtype, reads: list[Read]) -> Step:
    start = binder.code.parameters[target.name] + target.offset + behind
    size = dtype.itemsize
    _check_inside(binder, start, len(reads) * size, binder.code.parameter_bytes)

    def step(group: Group, lanes: Lanes) -> None:
        area = group.context.registers.parameters
        for i, read in enumerate(reads):
            first = start + i * size
            values = np.array(np.broadcast_to(read(group, lanes), (count(lanes),)), dtype)
            area[lanes, first : first + size] = values.view(np.uint8).reshape(-1, size)

    return step


_BULK_UNIT = 8  # The address and the size of an st.bulk instruction are multiples of 8 bytes.


@instruction("st.bulk", section=SECTION.format("st.bulk"))
def st_bulk(binder: Binder) -> Step:
    """Return the step that executes ``st.bulk{.weak}{.shared::cta} [address], size, 0;``, which writes zeros."""
    by, (target, size, value) = binder.instruction, binder.instruction.operands
    if not isinstance(value, Immediate) or value.value != 0:
        raise binder.unsupported("of a value other than 0")
    address, sizes, space = binder.address(target), binder.read(size, U64), space_of(by.opcode)

    def step(group: Group, lanes: Lanes) -> None:
        memory, here = group.parts.memory, as_array(lanes)
        given = np.broadcast_to(sizes(group, lanes), (len(here),)).tolist()
        starts = np.broadcast_to(address(group, lanes), (len(here),))
        for at, size_bytes in enumerate(given):
            lane = here[at : at + 1]
            if size_bytes % _BULK_UNIT:
                text = f"the size of st.bulk, {size_bytes} bytes, is not a multiple of {_BULK_UNIT}"
                raise Fault("misaligned", f'{text} (PTX ISA, "st.bulk")', lane, by)
            first = memory.in_shared(space, lane, starts[at : at + 1], size_bytes, _BULK_UNIT)
            positions = first + _BULK_UNIT * np.arange(size_bytes // _BULK_UNIT)
            if group.parts.events.observer is not None and size_bytes:
                piece = Piece(None, memory.shared, positions, "shared")
                observe(group, "write", np.repeat(lane, len(positions)), [piece], _BULK_UNIT, by)
            memory.shared.typed(U64)[positions // _BULK_UNIT] = 0

    return step


@instruction("prefetch", "prefetchu", "discard", "applypriority", section=SECTION.format("prefetch"))
def hint(binder: Binder) -> Step:
    """Return the step of a hint, which has no effect because the simulator has no caches."""
    return lambda group, lanes: None


@instruction("createpolicy", section=SECTION.format("createpolicy"))
def createpolicy(binder: Binder) -> Step:
    """Return the step that creates a cache policy, whose value is arbitrary because the simulator has no caches."""
    write = binder.write(_first(binder.instruction.operands), U64)
    return lambda group, lanes: write(group, lanes, U64.type(0))


def _first(operands: tuple[Operand, ...]) -> Operand:
    return operands[0]
