"""Each mbarrier, phase by phase: its arrivals, and the step at which its phase completed."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._ptx import Instruction

__all__ = ["Phase", "Recorded"]


@dataclass(slots=True)
class Phase:
    """One phase; `changes` are steps, with the arrivals and bytes by which the missing ones decrease then."""

    begin: int
    end: int | None = None
    changes: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Recorded:
    """One mbarrier of one CTA, from its initialization on.

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
        """Record arrivals and bytes at a step; bytes are negative if they are only expected."""
        phase = self.phases[-1]
        phase.changes.append((max(at, phase.begin), arrivals, size_bytes))

    def complete(self) -> None:
        """End the phase with the last event that it needed, and begin the next."""
        phase = self.phases[-1]
        phase.end = max([phase.begin, *(at for at, _, _ in phase.changes)])
        self.phases.append(Phase(phase.end))

    @property
    def completed_at(self) -> int:
        """The end of the last complete phase; 0 before the first one."""
        return self.phases[-1].begin if len(self.phases) > 1 else 0

    def levels(self) -> list[tuple[int, int, int]]:
        """Return steps, and the missing arrivals and bytes of the phase from each step on."""
        found = []
        for phase in self.phases:
            pending, tx = self.count, 0
            found.append((phase.begin, pending, tx))
            for at, arrivals, size_bytes in sorted(phase.changes, key=lambda change: change[0]):
                pending, tx = pending - arrivals, tx - size_bytes
                found.append((at, pending, tx))
        return found
