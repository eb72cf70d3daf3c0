"""Who waits for what: what a report of a deadlock is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._group import Context
from .ptx import Instruction

__all__ = ["Parked", "Waiting"]


@dataclass(slots=True)
class Parked:
    """Lanes that wait at an instruction, and go on at another, or look again at the same."""

    context: Context
    at: int
    pc: int
    lanes: np.ndarray

    @property
    def instruction(self) -> Instruction | None:
        """The one that waits; None for the return at the end of a function."""
        instructions = self.context.code.function.instructions
        return instructions[self.at] if self.at < len(instructions) else None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Some parked lanes, and in words what is missing.

    Attributes
    ----------
    parked : Parked
    missing : str
        The same for all CTAs that wait alike: blocks are not named in it.
    remedy : str
        What to look at.
    kind : str
        Of the finding.
    """

    parked: Parked
    missing: str
    remedy: str = ""
    kind: str = "deadlock"
