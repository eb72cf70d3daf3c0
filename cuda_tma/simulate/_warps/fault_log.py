"""The log of faults after which hardware continues."""

from __future__ import annotations

from collections.abc import Iterator

from .._ptx import Instruction
from .faults import Fault, Kept
from .scheduler import Scheduler
from .waiting import CALLED

__all__ = ["FaultLog"]


class FaultLog:
    """The faults that do not end a launch, at most one of each kind for an instruction."""

    def __init__(self, scheduler: Scheduler):
        self._scheduler = scheduler
        self._kept: dict[tuple[str, Instruction | None], Kept] = {}

    def keep(self, fault: Fault) -> None:
        """Add a fault, which contains its lanes and its instruction; an error replaces advice."""
        known = self._kept.get((fault.kind, fault.instruction))
        if known is not None and (fault.is_disputed or not known.fault.is_disputed):
            known.count += fault.is_disputed == known.fault.is_disputed
            return
        calls = self._scheduler.where.context.calls if self._scheduler.where else ()
        fault.related = (*((CALLED, by) for by in calls), *fault.related)
        self._kept[fault.kind, fault.instruction] = Kept(fault)

    def __iter__(self) -> Iterator[Kept]:
        return iter(self._kept.values())
