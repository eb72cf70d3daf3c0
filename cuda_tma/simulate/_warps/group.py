"""The threads at the same instruction with the same calls, which run together."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np

from .code import Context
from .lanes import Lanes, as_array, count, selected

__all__ = ["Group"]

Parts = TypeVar("Parts", covariant=True)


class Group(Generic[Parts]):
    """The lanes that execute an instruction together; each step receives a group as its argument.

    Attributes
    ----------
    parts
        The parts of the machine; each package declares the parts that it uses.
    context : Context
    pc : int
        The index of the instruction that executes now.
    lanes : slice or numpy.ndarray
    views : list of numpy.ndarray
        The typed views of the function's registers, as in :class:`RegisterFile`.
    """

    __slots__ = ("context", "lanes", "parts", "pc", "views")

    def __init__(self, parts: Parts, context: Context, pc: int, lanes: np.ndarray):
        self.parts, self.context, self.pc = parts, context, pc
        self.lanes: Lanes = selected(lanes)
        self.views = context.registers.views

    @property
    def size(self) -> int:
        """The number of threads in the group."""
        return count(self.lanes)

    def array(self) -> np.ndarray:
        """The lanes of the group in ascending order."""
        return as_array(self.lanes)
