"""The waiting threads and the events for which they wait, for the report of a deadlock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...hang import BarrierWait, MbarrierWait
from .._ptx import Instruction
from .code import Context

__all__ = ["CALLED", "Parked", "Standing", "Stuck", "Waiting"]

CALLED = "called"  # the relation to a finding of a call that leads to its function


class Standing(NamedTuple):
    """Lanes for which other lanes wait, and their place at that time."""

    context: Context
    pc: int
    lanes: np.ndarray


@dataclass(slots=True)
class Parked:
    """Lanes that wait at instruction `at` and continue at instruction `pc`, which may be the same.

    `absent` contains the places of other lanes that must also reach this instruction.
    """

    context: Context
    at: int
    pc: int
    lanes: np.ndarray
    absent: Sequence[Standing] = ()

    @property
    def instruction(self) -> Instruction | None:
        """The instruction at which the lanes wait; None for the return at the end of a function."""
        return self.context.code.instruction(self.at)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Some waiting lanes, and the object for which they wait.

    Attributes
    ----------
    parked : Parked
    awaits : MbarrierWait or BarrierWait
        The awaited event without the number of the CTA, so that it is equal for all CTAs in the same state.
    side : str
        The side of an mbarrier in a ``Pipeline``: "full" or "empty".
    related : tuple of (str, Instruction)
        Statements that explain the wait, each with its relation to the wait.
    """

    parked: Parked
    awaits: MbarrierWait | BarrierWait
    side: str = ""
    related: tuple[tuple[str, Instruction], ...] = ()


class Stuck(Exception):
    """The exception for a launch in which no thread can continue.

    Parameters
    ----------
    waiting : list of Waiting
        All waiting lanes.
    """

    def __init__(self, waiting: list[Waiting]):
        super().__init__(f"{len(waiting)} groups of threads wait")
        self.waiting = waiting
