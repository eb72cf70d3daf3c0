"""The threads that wait, and the events that they wait for: the content of a report of a deadlock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...hang import BarrierWait, MbarrierWait
from .._ptx import Instruction
from .code import Context

__all__ = ["CALLED", "Parked", "Standing", "Stuck", "Waiting"]

CALLED = "called"  # what the call of a function that is not inlined is to a finding in it


class Standing(NamedTuple):
    """Lanes that others wait for, and their place at that time."""

    context: Context
    pc: int
    lanes: np.ndarray


@dataclass(slots=True)
class Parked:
    """Lanes that wait at an instruction, and go on at another, or look again at the same.

    `absent` contains the places of other lanes that have to come to this instruction too.
    """

    context: Context
    at: int
    pc: int
    lanes: np.ndarray
    absent: Sequence[Standing] = ()

    @property
    def instruction(self) -> Instruction | None:
        """The one that waits; None for the return at the end of a function."""
        return self.context.code.instruction(self.at)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Some parked lanes, and the object of their wait.

    Attributes
    ----------
    parked : Parked
    awaits : MbarrierWait or BarrierWait
        The same for all CTAs that wait alike: blocks are not named in it.
    side : str
        Of an mbarrier in a ``Pipeline``: "full" or "empty".
    related : tuple of (str, Instruction)
        Statements that explain it, and what each is.
    """

    parked: Parked
    awaits: MbarrierWait | BarrierWait
    side: str = ""
    related: tuple[tuple[str, Instruction], ...] = ()


class Stuck(Exception):
    """Raised where no thread can go on.

    Parameters
    ----------
    waiting : list of Waiting
        Everyone who waits.
    """

    def __init__(self, waiting: list[Waiting]):
        super().__init__(f"{len(waiting)} groups of threads wait")
        self.waiting = waiting
