"""Faults, which end a kernel early: an instruction raises one, and the launch makes a finding of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .._ptx import Instruction
from .lanes import Lanes

__all__ = ["Fault", "Kept", "NotInitialised"]


class Fault(Exception):
    """An error that ends the context on hardware, or leaves the kernel without a meaning.

    Parameters
    ----------
    kind : str
        One of :data:`cuda_tma.simulate.KINDS`.
    message : str
        What happened, in a sentence with numbers, the rule, and what to do.
    lanes : slice or array, optional
        The threads that it happened to; all that execute the instruction if None.
    instruction : Instruction, optional
        Whose doing it is, if that is not the one that executes now.
    related : iterable of (str, Instruction)
        Others that explain it, and what each is.
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
    """A fault at which hardware goes on, and how often it happened."""

    fault: Fault
    count: int = 1


class NotInitialised(Fault):
    """An mbarrier is used before its initialization."""
