"""Threads that stand at the same place of a kernel, called from the same places: they run as one."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np

from .code import Context
from .lanes import Lanes, as_array, count, selected

__all__ = ["Group"]

Parts = TypeVar("Parts", covariant=True)


class Group(Generic[Parts]):
    """Lanes that run together; what an instruction is given.

    Attributes
    ----------
    parts
        The parts of the machine; each layer declares those that it uses.
    context : Context
    pc : int
        Index of the instruction that is executed now.
    lanes : slice or numpy.ndarray
    views : list of numpy.ndarray
        The typed views of the function's registers, see :class:`RegisterFile`.
    """

    __slots__ = ("context", "lanes", "parts", "pc", "views")

    def __init__(self, parts: Parts, context: Context, pc: int, lanes: np.ndarray):
        self.parts, self.context, self.pc = parts, context, pc
        self.lanes: Lanes = selected(lanes)
        self.views = context.registers.views

    @property
    def size(self) -> int:
        """The number of threads."""
        return count(self.lanes)

    def array(self) -> np.ndarray:
        """Its lanes, ascending."""
        return as_array(self.lanes)
