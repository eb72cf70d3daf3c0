"""The threads that wait, and the events for which they wait, for the report of a deadlock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...hang import BarrierWait, MbarrierWait
from .._ptx import Instruction
from .code import Context

__all__ = ["CALLED", "Parked", "Standing", "Stuck", "Waiting"]

CALLED = "called"  # The label "called" marks a call through which a thread reached the function of a finding.


class Standing(NamedTuple):
    """The context and the instruction of some lanes for which other lanes wait."""

    context: Context
    pc: int
    lanes: np.ndarray


@dataclass(slots=True)
class Parked:
    """Lanes that wait at instruction `at` and continue at instruction `pc`, which may be the same instruction.

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
    """Some lanes that wait, and the barrier or other object for which they wait.

    Attributes
    ----------
    parked : Parked
    awaits : MbarrierWait or BarrierWait
        The awaited event without the number of the CTA. The awaited event is therefore equal for all CTAs in the same
        state.
    side : str
        The side of an mbarrier in a ``Pipeline``: "full" or "empty".
    related : tuple of (str, Instruction)
        Statements that explain the wait, each with a label.
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
        The waits of all lanes.
    """

    def __init__(self, waiting: list[Waiting]):
        super().__init__(f"{len(waiting)} groups of threads wait")
        self.waiting = waiting
