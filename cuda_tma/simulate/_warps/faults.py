"""Faults: exceptions that an instruction raises to end a kernel, and that the launch converts to findings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .._ptx import Instruction
from .lanes import Lanes

__all__ = ["Fault", "Kept", "NotInitialised"]


class Fault(Exception):
    """An error that ends the context on hardware, or makes the further behavior of the kernel undefined.

    Parameters
    ----------
    kind : str
        One of :data:`cuda_tma.simulate.KINDS`.
    message : str
        A description of the event with its numbers, the rule, and the remedy.
    lanes : slice or array, optional
        The faulting threads; None for all threads that execute the instruction.
    instruction : Instruction, optional
        The instruction that caused the fault if it is not the instruction that executes now.
    related : iterable of (str, Instruction)
        Instructions that explain the fault, each with its relation to the fault.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        lanes: Lanes | np.ndarray | None = None,
        instruction: Instruction | None = None,
        related: Iterable[tuple[str, Instruction]] = (),
    ):
        super().__init__(message)
        self.kind, self.message = kind, message
        self.lanes, self.instruction = lanes, instruction
        self.related = tuple(related)


@dataclass(slots=True)
class Kept:
    """A fault after which hardware continues, and the number of its occurrences."""

    fault: Fault
    count: int = 1


class NotInitialised(Fault):
    """The use of an mbarrier before its initialization."""
