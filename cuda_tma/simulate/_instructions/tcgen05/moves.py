"""The instructions ``tcgen05.ld`` and ``tcgen05.st``, which move data between tensor memory and registers.

Loads and stores take effect at once. A compiler may use the registers of a load before the wait, because a true
dependency orders these uses (PTX ISA, "tcgen05.ld"). The instruction tcgen05.wait orders all other accesses, and an
observer checks that a kernel executes this wait.
"""

from __future__ import annotations

import numpy as np

from ..._ptx import Instruction, Register, Vector
from ..._sync.warp_sync import when_together
from ..._tensor_memory.memory import LANES, split
from ..._tensor_memory.shapes import Shape, shape_of
from ..._tensor_memory.uses import is_used_before_signal
from ..._warps.binder import U32, Address64, Binder
from ..._warps.code import Outcome, Step
from ..._warps.faults import Fault
from ..._warps.lanes import WARP, Lanes, as_array
from ..._warps.registers import VIEW
from ..._warps.tensor_events import LanesMoved, TensorFence, TensorWait
from .._table import Group, instruction
from ._reduce import Reduce, reducing
from .allocation import SECTION

_QUARTER = LANES // 4
_WORD = VIEW[U32]


@instruction("tcgen05.ld", section=SECTION.format("ld"), moves=True)
def load(binder: Binder) -> Step:
    """Return the step of ``tcgen05.ld{.red}.sync.aligned.shape.num{.pack::16b}.b32 registers, {reduced,} [address];``.

    An offset may follow the address.
    """
    results, *rest = binder.instruction.operands
    reduced = rest.pop(0) if "red" in binder.instruction.opcode else None
    rows = _registers(binder, results)
    after = None if reduced is None else reducing(binder, rows, _registers(binder, reduced))
    return _moving(binder, rows, binder.address(rest[0]), writes=False, after=after)


@instruction("tcgen05.st", section=SECTION.format("st"), moves=True)
def store(binder: Binder) -> Step:
    """Return the step of ``tcgen05.st.sync.aligned.shape.num{.unpack::16b}.b32 [address]{, offset}, registers;``."""
    where, *_, sources = binder.instruction.operands
    return _moving(binder, _registers(binder, sources), binder.address(where), writes=True)


def _registers(binder: Binder, operand: object) -> np.ndarray | slice:
    """Return the rows of an operand's registers in the array of all 32-bit registers."""
    listed = operand.elements if isinstance(operand, Vector) else (operand,)
    found = [binder.code.register_rows[each.index] for each in listed if isinstance(each, Register)]
    if len(found) != len(listed) or any(size != U32.itemsize for size, _ in found):
        raise binder.unsupported("an operand that is not a register of 32 bits")
    rows = [row for _, row in found]
    if rows == [*range(rows[0], rows[0] + len(rows))]:
        return slice(rows[0], rows[0] + len(rows))
    return np.array(rows, np.intp)


def _moving(
    binder: Binder, rows: np.ndarray | slice, address: Address64, writes: bool, after: Reduce | None = None
) -> Step:
    by, pc, shape = binder.instruction, binder.pc, shape_of(binder.instruction)
    given = len(rows) if isinstance(rows, np.ndarray) else rows.stop - rows.start
    if given != shape.registers:
        raise binder.unsupported(f"of {shape.registers} registers with {given}")
    is_used = writes or is_used_before_signal(binder.code.function.instructions, pc)

    def act(group: Group, lanes: Lanes) -> None:
        parts, views = group.parts, group.views[_WORD]
        here = as_array(lanes)
        _check_whole(here, by)
        addresses = address(group, lanes).reshape(-1, WARP)
        for warp, given in zip(here.reshape(-1, WARP), addresses, strict=True):
            first, cta = int(warp[0]), int(parts.geometry.cta_of_lane[warp[0]])
            lane, column = _cell(group, warp, given, shape, by)
            for at, size in shape.spans:
                parts.tensor_memory.check(cta, column + at, size, by, warp)
            cells = parts.tensor_memory.cells[cta]
            if parts.events.observer is not None:
                parts.events.tell(LanesMoved(warp, by, shape.touches(cta, column, lane, writes), is_used))
            if writes:
                shape.write(cells, column, lane, views[rows, first : first + WARP])
            else:
                views[rows, first : first + WARP] = shape.read(cells, column, lane)
                if after is not None:
                    after(views, slice(first, first + WARP))

    def step(group: Group, lanes: Lanes) -> Outcome:
        return when_together(group, lanes, pc, act)

    return step


def _check_whole(lanes: np.ndarray, by: Instruction) -> None:
    """Refuse a warp of fewer than 32 threads, such as the last warp of some blocks."""
    if len(lanes) % WARP:
        raise Fault(
            "tensor-memory",
            f"a warp of {len(lanes) % WARP} threads executes tcgen05.{by.opcode[1]} (PTX ISA: the instruction moves 32 "
            "lanes, one for each thread of the warp). Remedy: launch blocks of a multiple of 32 threads",
            lanes,
            by,
        )


def _cell(group: Group, warp: np.ndarray, addresses: np.ndarray, shape: Shape, by: Instruction) -> tuple[int, int]:
    """Return the lane and the column in tensor memory of a warp's address.

    An address of lane 0 means the first lane of the warp's quarter, because TileLang 0.1.15 passes the same address in
    each warp.
    """
    if (addresses != addresses[0]).any():
        text = f"the threads of a warp give different addresses to one tcgen05.{by.opcode[1]}"
        raise Fault("tensor-memory", f"{text} (PTX ISA: all threads of the warp give the same address)", warp, by)
    lane, column = split(int(addresses[0]))
    quarter = int(group.parts.geometry.thread_of_lane[warp[0]]) // WARP % 4 * _QUARTER
    lane += quarter if lane < _QUARTER else 0
    if not quarter <= lane or lane + shape.lane_count > quarter + _QUARTER or lane % shape.lane_count:
        raise Fault(
            "tensor-memory",
            f"tcgen05.{by.opcode[1]} accesses {shape.lane_count} lanes from lane {lane} on, in a warp that may access "
            f'only lanes {quarter} to {quarter + _QUARTER - 1} (PTX ISA, "Access restrictions": the '
            f"warp's number modulo 4 selects them). Remedy: add {quarter} << 16 to the address from tcgen05.alloc",
            warp,
            by,
        )
    return lane, column


@instruction("tcgen05.wait::ld", "tcgen05.wait::st", section=SECTION.format("wait"), moves=True)
def wait(binder: Binder) -> Step:
    """Return the step of ``tcgen05.wait::ld`` or ``tcgen05.wait::st``, which has an effect only on an observer."""
    pc, by = binder.pc, binder.instruction

    def act(group: Group, lanes: Lanes) -> None:
        group.parts.events.tell(TensorWait(lanes, by))

    return lambda group, lanes: when_together(group, lanes, pc, act)


@instruction("tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync", section=SECTION.format("fence"))
def fence(binder: Binder) -> Step:
    """Return the step of ``tcgen05.fence``, which has an effect only on an observer."""
    by = binder.instruction
    return lambda group, lanes: group.parts.events.tell(TensorFence(lanes, by))
