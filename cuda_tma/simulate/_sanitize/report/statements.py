"""The names of statements in findings, with the place in the source and the name of the instruction."""

from __future__ import annotations

from ..._ptx import Instruction, Place

__all__ = ["Explained", "name_of", "place_of"]

# An Explained pair consists of a statement in a finding and the label of the statement.
Explained = tuple[str, Instruction | None]

_NAMES = (
    (("cp", "reduce"), "the TMA reduction"),
    (("cp", "async", "bulk", "tensor"), "the TMA copy"),
    (("cp", "async", "bulk"), "the bulk copy"),
    (("cp", "async"), "the asynchronous copy"),
    (("wgmma",), "wgmma"),
)


def place_of(places: tuple[Place, ...], line: int) -> str:
    """Return the file and the line in the source of the kernel, or the line of the PTX without line information."""
    if not places:
        return f"PTX line {line}"
    return f"{places[-1].file.rpartition('/')[2]}:{places[-1].line}"


def name_of(instruction: Instruction) -> str:
    """Return the name of an instruction, such as ``"the TMA copy"``; for most instructions, the name is the opcode."""
    for prefix, name in _NAMES:
        if instruction.opcode[: len(prefix)] == prefix:
            return name
    return ".".join(instruction.opcode[:2])
