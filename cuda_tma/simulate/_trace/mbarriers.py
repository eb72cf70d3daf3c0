"""Each mbarrier, phase by phase: what arrived, and at which step its phase was complete."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._ptx import Instruction

__all__ = ["Phase", "Recorded"]


@dataclass(slots=True)
class Phase:
    """One phase; `changes` are when, and by how many arrivals and bytes less it lacks then."""

    begin: int
    end: int | None = None
    changes: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Recorded:
    """One mbarrier of one CTA, from its init on.

    Attributes
    ----------
    position : int
        Its byte in `Memory.shared`.
    block : tuple of int
    count : int
        Arrivals that a phase expects.
    made : Instruction
    phases : list of Phase
        The last one is not complete.
    """

    position: int
    block: tuple[int, int, int]
    count: int
    made: Instruction
    phases: list[Phase]

    def change(self, at: int, arrivals: int, size_bytes: int) -> None:
        """At a step, arrivals came, and bytes: below zero where they are but expected."""
        phase = self.phases[-1]
        phase.changes.append((max(at, phase.begin), arrivals, size_bytes))

    def complete(self) -> None:
        """The phase ends with the last of what it waited for, and the next begins."""
        phase = self.phases[-1]
        phase.end = max([phase.begin, *(at for at, _, _ in phase.changes)])
        self.phases.append(Phase(phase.end))

    @property
    def completed_at(self) -> int:
        """When the last complete phase ended; 0 if none has."""
        return self.phases[-1].begin if len(self.phases) > 1 else 0

    def levels(self) -> list[tuple[int, int, int]]:
        """When, and from then on how many arrivals and bytes the phase lacks."""
        found = []
        for phase in self.phases:
            pending, tx = self.count, 0
            found.append((phase.begin, pending, tx))
            for at, arrivals, size_bytes in sorted(phase.changes, key=lambda change: change[0]):
                pending, tx = pending - arrivals, tx - size_bytes
                found.append((at, pending, tx))
        return found
