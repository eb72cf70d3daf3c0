"""The phases of each mbarrier: the arrivals, and the step at which the phase completed."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._ptx import Instruction

__all__ = ["Phase", "Recorded"]


@dataclass(slots=True)
class Phase:
    """One phase of an mbarrier; `changes` contains steps, each with the arrivals and bytes of this step."""

    begin: int
    end: int | None = None
    changes: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Recorded:
    """The record of one mbarrier since its initialization.

    Attributes
    ----------
    position : int
        The position of the mbarrier in `Memory.shared`.
    block : tuple of int
    count : int
        The number of arrivals that a phase expects.
    made : Instruction
    phases : list of Phase
        The phases of the mbarrier; the last phase is not complete.
    """

    position: int
    block: tuple[int, int, int]
    count: int
    made: Instruction
    phases: list[Phase]

    def change(self, at: int, arrivals: int, size_bytes: int) -> None:
        """Record arrivals and bytes at a step; an expectation of bytes is a negative number."""
        phase = self.phases[-1]
        phase.changes.append((max(at, phase.begin), arrivals, size_bytes))

    def complete(self) -> None:
        """End the present phase at the step of its last change, and begin the next phase."""
        phase = self.phases[-1]
        phase.end = max([phase.begin, *(at for at, _, _ in phase.changes)])
        self.phases.append(Phase(phase.end))

    @property
    def completed_at(self) -> int:
        """The step at the end of the last complete phase; 0 before the end of the first phase."""
        return self.phases[-1].begin if len(self.phases) > 1 else 0

    def levels(self) -> list[tuple[int, int, int]]:
        """Return each step at which a count changed, with the arrivals and bytes that the phase then still needs."""
        found = []
        for phase in self.phases:
            pending, tx = self.count, 0
            found.append((phase.begin, pending, tx))
            for at, arrivals, size_bytes in sorted(phase.changes, key=lambda change: change[0]):
                pending, tx = pending - arrivals, tx - size_bytes
                found.append((at, pending, tx))
        return found
