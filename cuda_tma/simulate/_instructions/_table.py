"""The table of instructions that access more than registers: one function each, with its section in the PTX ISA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .._copies.parts import Parts
from .._warps import group
from .._warps.binder import Binder
from .._warps.code import Step

__all__ = ["TABLE", "Entry", "Group", "instruction"]

Group = group.Group[Parts]


@dataclass(frozen=True, slots=True)
class Entry:
    """One instruction.

    Attributes
    ----------
    section : str
        The section in the PTX ISA.
    bind : callable
        Converts an instruction's :class:`Binder` to the step that executes it.
    moves : bool
        Whether it may change the next instruction of its threads, or make them wait.
    """

    section: str
    bind: Callable[[Binder], Step]
    moves: bool


TABLE: dict[str, Entry] = {}  # by opcode, or its beginning, up to a dot


def instruction(*opcodes: str, section: str, moves: bool = False) -> Callable:
    """Enter a binding function into the table."""

    def enter(bind: Callable[[Binder], Step]) -> Callable[[Binder], Step]:
        for opcode in opcodes:
            TABLE[opcode] = Entry(section, bind, moves)
        return bind

    return enter
