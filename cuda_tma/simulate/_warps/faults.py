"""The exceptions by which an instruction ends a kernel; the launch converts each exception to a finding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .._ptx import Instruction
from .lanes import Lanes

__all__ = ["Fault", "Kept", "NotInitialised"]


class Fault(Exception):
    """An exception for an error that ends the context on hardware, or makes the behavior of the kernel undefined.

    Parameters
    ----------
    kind : str
        One of :data:`cuda_tma.simulate.KINDS`.
    message : str
        A description of the event with its numbers, the rule, and the remedy.
    lanes : slice or array, optional
        The threads that cause the fault; None for all threads that execute the instruction.
    instruction : Instruction, optional
        The instruction that caused the fault; None for the instruction that executes now.
    related : iterable of (str, Instruction)
        Instructions that explain the fault, each with a label.
    is_disputed : bool
        Whether hardware continues with the intended effect, although a rule forbids it; the fault is then advice.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        lanes: Lanes | np.ndarray | None = None,
        instruction: Instruction | None = None,
        related: Iterable[tuple[str, Instruction]] = (),
        is_disputed: bool = False,
    ):
        super().__init__(message)
        self.kind, self.message = kind, message
        self.lanes, self.instruction = lanes, instruction
        self.related, self.is_disputed = tuple(related), is_disputed


@dataclass(slots=True)
class Kept:
    """A fault after which hardware continues, and the number of its occurrences."""

    fault: Fault
    count: int = 1


class NotInitialised(Fault):
    """A fault for the use of an mbarrier before its initialization."""
