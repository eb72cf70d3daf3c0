"""The instructions ``alloca``, ``stacksave`` and ``stackrestore``, for local memory whose size a thread computes.

Source: PTX ISA 9.0, "Stack Manipulation Instructions".
"""

from __future__ import annotations

import numpy as np

from ..._budget import ALIGNMENT_BYTES
from .._ptx import Immediate, Operand
from .._warps.binder import I64, Binder
from .._warps.code import DYNAMIC_BYTES, Step
from .._warps.faults import Fault
from .._warps.lanes import Lanes, as_array, count
from ._table import Group, instruction

SECTION = "Stack Manipulation Instructions: {}"
_ALIGNMENT = 16  # The address of each stack allocation is a multiple of 16 bytes.


@instruction("alloca", section=SECTION.format("alloca"))
def alloca(binder: Binder) -> Step:
    """Return the step that executes ``alloca.type pointer, size{, alignment};``.

    The memory is valid until the function returns or restores the stack.
    """
    result, size, *rest = binder.instruction.operands
    read, write = binder.read(size, I64), binder.write(result, I64)
    alignment = max(_ALIGNMENT, _alignment(binder, rest[0])) if rest else _ALIGNMENT

    def step(group: Group, lanes: Lanes) -> None:
        sizes = np.broadcast_to(read(group, lanes), (count(lanes),))
        tops, end = group.context.dynamic_tops(group.parts.geometry.lanes), group.context.dynamic_end
        starts = -(-tops[lanes] // alignment) * alignment
        outside = (sizes < 0) | (sizes > DYNAMIC_BYTES) | (starts + sizes > end)
        if outside.any():
            raise Fault(
                "fault",
                f"stack overflow: alloca requests {int(sizes.max())} bytes, more than the {DYNAMIC_BYTES} bytes that "
                "the simulator gives to a function",
                as_array(lanes)[outside],
            )
        tops[lanes] = starts + sizes
        write(group, lanes, starts)

    return step


def _alignment(binder: Binder, operand: Operand) -> int:
    value = operand.value if isinstance(operand, Immediate) and not operand.type else 0
    if not 0 < value <= ALIGNMENT_BYTES or value & (value - 1):
        raise binder.unsupported("with an alignment that is not a power of two")
    return value


@instruction("stacksave", section=SECTION.format("stacksave"))
def stacksave(binder: Binder) -> Step:
    write = binder.write(binder.instruction.operands[0], I64)
    return lambda group, lanes: write(group, lanes, group.context.dynamic_tops(group.parts.geometry.lanes)[lanes])


@instruction("stackrestore", section=SECTION.format("stackrestore"))
def stackrestore(binder: Binder) -> Step:
    read = binder.read(binder.instruction.operands[0], I64)

    def step(group: Group, lanes: Lanes) -> None:
        group.context.dynamic_tops(group.parts.geometry.lanes)[lanes] = read(group, lanes)

    return step
