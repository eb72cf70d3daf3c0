"""The parameters of the model that depend on a kernel: the size of a unit, and the need for a third row of clocks."""

from __future__ import annotations

from ..._ptx import Instruction
from ..._warps.program import Program

__all__ = ["SENDS", "arrives_remotely", "is_strong", "unit_bytes_of"]

# The instructions st.async and red.async signal an mbarrier at scope .cluster.
SENDS = (("st", "async"), ("red", "async"))

_STRONG = {"relaxed", "acquire", "release", "acq_rel", "volatile", "mmio", "atom", "red"}
_LARGEST = 8  # An mbarrier has 8 bytes.
_ACCESSES = ("ld", "ldu", "st", "atom", "red")
_SPACES = {"shared", "global", "local", "param", "const"}
_BITS = {"f16x2": 32, "bf16x2": 32, "bf16": 16, "b128": 128}


def unit_bytes_of(program: Program, space: str = "shared") -> int:
    """Return the bytes of the smallest access in all functions of a kernel, but at most those of an mbarrier."""
    sizes = [
        size
        for code in program.codes.values()
        for instruction in code.function.instructions
        if (size := _size(instruction, space)) is not None
    ]
    return min([_LARGEST, *sizes])


def is_strong(instruction: Instruction) -> bool:
    """Return whether an access is strong; two strong accesses do not race if they are morally strong."""
    parts = instruction.opcode
    uses_barrier = parts[0] == "mbarrier" and parts[1] not in ("init", "inval")
    return uses_barrier or not _STRONG.isdisjoint(parts)


def arrives_remotely(program: Program) -> bool:
    """Return whether threads may arrive at an mbarrier of another CTA, or send values to another CTA."""
    return any(
        (instruction.opcode[0] == "mbarrier" and "shared::cluster" in instruction.opcode)
        or instruction.opcode[:2] in SENDS
        for code in program.codes.values()
        for instruction in code.function.instructions
    )


def _size(instruction: Instruction, space: str) -> int | None:
    parts = instruction.opcode
    if parts[:2] == ("cp", "async") and "bulk" not in parts:
        return 4
    accesses = parts[0] in _ACCESSES or (parts[0] == "wmma" and parts[1] in ("load", "store"))
    if not accesses or (_SPACES - {space}) & {part.split("::")[0] for part in parts}:
        return None
    return _BITS.get(parts[-1], int("".join(filter(str.isdigit, parts[-1].partition("x")[0])) or 8)) // 8
