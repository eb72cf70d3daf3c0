"""The table of instructions that touch more than registers: each is one function, with its section in the PTX ISA."""

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
        Of the PTX ISA.
    bind : callable
        From an instruction's :class:`Binder` to what executes it.
    moves : bool
        Whether it may change where its threads go on, or make them wait.
    """

    section: str
    bind: Callable[[Binder], Step]
    moves: bool


TABLE: dict[str, Entry] = {}  # by opcode, or what it begins with, up to a dot


def instruction(*opcodes: str, section: str, moves: bool = False) -> Callable:
    """Enter a binding function into the table."""

    def enter(bind: Callable[[Binder], Step]) -> Callable[[Binder], Step]:
        for opcode in opcodes:
            TABLE[opcode] = Entry(section, bind, moves)
        return bind

    return enter
