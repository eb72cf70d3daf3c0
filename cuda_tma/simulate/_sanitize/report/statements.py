"""The names of statements in findings: the place in the source, and the name of the instruction."""

from __future__ import annotations

from ..._ptx import Instruction, Place

__all__ = ["Explained", "name_of", "place_of"]

Explained = tuple[str, Instruction | None]  # how a statement relates to a finding, and the statement

_NAMES = (
    (("cp", "reduce"), "the TMA reduction"),
    (("cp", "async", "bulk", "tensor"), "the TMA copy"),
    (("cp", "async", "bulk"), "the bulk copy"),
    (("cp", "async"), "the asynchronous copy"),
    (("wgmma",), "wgmma"),
)


def place_of(places: tuple[Place, ...], line: int) -> str:
    """Return the file and line in the kernel's source; without line information, return the line of the PTX."""
    if not places:
        return f"PTX line {line}"
    return f"{places[-1].file.rpartition('/')[2]}:{places[-1].line}"


def name_of(instruction: Instruction) -> str:
    """Return the name of an instruction, such as ``"the TMA copy"``; most instructions have their opcode as name."""
    for prefix, name in _NAMES:
        if instruction.opcode[: len(prefix)] == prefix:
            return name
    return ".".join(instruction.opcode[:2])
