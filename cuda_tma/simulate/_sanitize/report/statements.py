"""What findings call a statement: its place in the source, and its name."""

from __future__ import annotations

from ..._ptx import Instruction, Place

__all__ = ["name_of", "place_of"]

_NAMES = (
    (("cp", "reduce"), "the TMA reduction"),
    (("cp", "async", "bulk", "tensor"), "the TMA copy"),
    (("cp", "async", "bulk"), "the bulk copy"),
    (("cp", "async"), "the asynchronous copy"),
    (("wgmma",), "wgmma"),
)


def place_of(places: tuple[Place, ...], line: int) -> str:
    """File and line, in the kernel; of PTX without them its own line."""
    if not places:
        return f"PTX line {line}"
    return f"{places[-1].file.rpartition('/')[2]}:{places[-1].line}"


def name_of(instruction: Instruction) -> str:
    """``"the TMA copy"``; of most instructions their opcode."""
    for prefix, name in _NAMES:
        if instruction.opcode[: len(prefix)] == prefix:
            return name
    return ".".join(instruction.opcode[:2])
