"""The search for uses of the registers of a ``tcgen05.ld`` before its warp signals other threads.

A load is complete once an instruction has used one of its registers, because hardware keeps true dependencies (PTX ISA,
"tcgen05.wait"). The search follows the instructions of the function up to the next branch, and assumes a use of the
registers after the branch.
"""

from __future__ import annotations

from .._ptx import Instruction
from .._warps.hazards import read_registers, registers_in

__all__ = ["is_used_before_signal"]

# In a correct kernel, a barrier for all threads precedes each tcgen05 instruction whose name contains a word in
# _SIGNALS.
_SIGNALS = frozenset({"arrive", "arrive_drop", "commit", "dealloc", "mma"})
_WAITS = frozenset({"wait::ld"})
_MOST = 4096  # The search examines at most 4,096 instructions.


def is_used_before_signal(instructions: list[Instruction] | tuple[Instruction, ...], pc: int) -> bool:
    """Return whether an instruction uses the registers of a load, or waits for the load, before the next signal."""
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
    """Return the registers that an instruction reads; for a store to tensor memory, return all its registers."""
    if by.opcode[:2] == ("tcgen05", "ld"):
        return [each for operand in by.operands[1:] for each in registers_in(operand)]
    if by.opcode[0] == "tcgen05":
        return [each for operand in by.operands for each in registers_in(operand)]
    return [*read_registers(by)]
