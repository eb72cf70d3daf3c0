"""The facts of a violation by two accesses to global memory, from the shadow and the clocks."""

from __future__ import annotations

from typing import Any, TypeVar

from ..._ptx import Instruction
from ..model.areas import PriorAccess
from ..model.clocks import Clocks
from ..model.history import History
from ..model.operations import IssueRecord, Operations
from .collector import FindingCollector
from .global_violations import GlobalFenceMissing, GlobalPair, GlobalRace

__all__ = ["GlobalFacts"]

_Pair = TypeVar("_Pair", bound=GlobalPair)


class GlobalFacts:
    """The source of facts about violations by two accesses to global memory.

    Parameters
    ----------
    clocks : Clocks
    collector : FindingCollector
    history : History
    operations : Operations
    """

    def __init__(self, clocks: Clocks, collector: FindingCollector, history: History, operations: Operations):
        self._clocks, self._collector, self._history, self._operations = clocks, collector, history, operations

    def of(
        self,
        kind: type[_Pair],
        past: PriorAccess,
        lane: int,
        mark: IssueRecord | None,
        access: str,
        now: Instruction,
        **facts: Any,
    ) -> _Pair:
        """Return a violation of class `kind` by a prior access and the present access of a thread or its operation."""
        threads, is_operation = self._clocks.threads, past.column >= self._clocks.threads
        return kind(
            now=now,
            lane=lane,
            other=self._collector.instruction(past.site),
            access=access,
            is_operation=mark is not None,
            other_access=past.kind,
            other_is_operation=is_operation,
            other_lane=past.slot * threads + past.column if past.is_here and not is_operation else None,
            address=past.address,
            **facts,
        )

    def race(
        self, past: PriorAccess, lane: int, mark: IssueRecord | None, access: str, now: Instruction, strict: bool
    ) -> GlobalPair:
        """Return the violation of two accesses that nothing orders, or that no proxy fence separates."""
        related = (*self.after(lane, mark), *self._operations.related(self._key(past)))
        if not past.is_ordered:
            return self.of(GlobalRace, past, lane, mark, access, now, related=related)
        # The preceding access is a copy if its column follows the columns of the threads.
        is_copied = past.column >= self._clocks.threads
        disputed = (past.kind == "read" or is_copied) and not strict
        return self.of(GlobalFenceMissing, past, lane, mark, access, now, related=related, is_disputed=disputed)

    def after(self, lane: int, mark: IssueRecord | None) -> Any:
        """Return the last barrier or wait before the access of a thread, or before the issue of its operation."""
        return self._history.before(lane) if mark is None else mark.after

    def _key(self, past: PriorAccess) -> object:
        """Return the object on which an earlier operation completes; None if the operation's cluster has ended."""
        known = past.lives and past.column >= self._clocks.threads + self._clocks.slots
        return self._clocks.key(past.slot, past.column) if known else None
