"""The table of instructions that access more than registers: for each, a function and a section of the PTX ISA."""

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
    """One instruction of the table.

    Attributes
    ----------
    section : str
        The section in the PTX ISA.
    bind : callable
        A function from an instruction's :class:`Binder` to the step that executes it.
    moves : bool
        Whether the instruction may change the next instruction of its threads, or make them wait.
    """

    section: str
    bind: Callable[[Binder], Step]
    moves: bool


TABLE: dict[str, Entry] = {}  # Each key of the table is an opcode, or the part of an opcode before one of its dots.


def instruction(*opcodes: str, section: str, moves: bool = False) -> Callable:
    """Return a decorator that adds a function to the table for some instructions."""

    def enter(bind: Callable[[Binder], Step]) -> Callable[[Binder], Step]:
        for opcode in opcodes:
            TABLE[opcode] = Entry(section, bind, moves)
        return bind

    return enter
