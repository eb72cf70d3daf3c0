"""Whether registers that ``tcgen05.ld`` writes are used before its warp signals others.

A load is over once one of its registers is used: hardware keeps true dependencies (PTX ISA, "tcgen05.wait"). The text
of the function decides, up to the next branch; there the answer is yes.
"""

from __future__ import annotations

from .._ptx import Instruction
from .._warps.hazards import read_registers, registers_in

__all__ = ["is_used_before_signal"]

_SIGNALS = frozenset({"arrive", "arrive_drop", "commit", "dealloc", "mma"})  # a barrier of all comes before those
_WAITS = frozenset({"wait::ld"})
_MOST = 4096  # instructions


def is_used_before_signal(instructions: list[Instruction] | tuple[Instruction, ...], pc: int) -> bool:
    """Return whether a load's registers are used, or waited for, before the next signal after it."""
    results = {*registers_in(instructions[pc].operands[0])}
    for by in instructions[pc + 1 : pc + _MOST]:
        if by.opcode[0] == "tcgen05" and by.opcode[1] in _WAITS:
            return True
        if results & {*_read(by)}:
            return True
        if by.opcode[1:2] and by.opcode[1] in _SIGNALS and by.opcode[0] in ("mbarrier", "tcgen05"):
            return False
        if by.opcode[0] in ("bra", "brx", "ret", "exit", "call"):
            return True
    return True


def _read(by: Instruction) -> list[int]:
    """Return the registers that an instruction reads; of a store to tensor memory, all."""
    if by.opcode[:2] == ("tcgen05", "ld"):
        return [each for operand in by.operands[1:] for each in registers_in(operand)]
    if by.opcode[0] == "tcgen05":
        return [each for operand in by.operands for each in registers_in(operand)]
    return [*read_registers(by)]
