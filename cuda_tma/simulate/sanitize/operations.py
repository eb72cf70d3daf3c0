"""Asynchronous operations, each an actor of its own: what was known when one was issued, and how its end is learnt."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..ptx import Instruction

__all__ = ["Groups", "Mark"]


@dataclass(slots=True, eq=False)
class Mark:
    """The moment at which an operation was issued.

    Attributes
    ----------
    lane : int
        Who issued it.
    cluster : int
        Which cluster of the grid that was.
    instruction : Instruction
    clock : numpy.ndarray, [2, column]
        What precedes it.
    group : tuple, optional
        Who waits for it, and by which groups: ``("bulk", lane)``.
    epoch : int
        Which of them it is in, the first is 1.
    """

    lane: int
    cluster: int
    instruction: Instruction
    clock: np.ndarray
    group: tuple[str, int] | None = None
    epoch: int = 0


@dataclass(slots=True)
class Groups:
    """The groups of one owner and kind.

    Attributes
    ----------
    committed : int
        How many have been closed.
    last : Mark or None
        The last operation in any of them.
    done : int
        How many have been waited for, at least for having read.
    """

    committed: int = 0
    last: Mark | None = field(default=None)
    done: int = 0

    def issue(self, mark: Mark) -> None:
        """One more operation, in the group that is open."""
        mark.epoch = self.committed + 1
        self.last = mark

    def wait(self, most: int) -> int:
        """How many groups are complete when at most so many are not."""
        self.done = max(self.done, self.committed - most)
        return self.committed - most

    @property
    def open(self) -> Mark | None:
        """The last operation, if nobody has waited for it."""
        return self.last if self.last is not None and self.last.epoch > self.done else None
