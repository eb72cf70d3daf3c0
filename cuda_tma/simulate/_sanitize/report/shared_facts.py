"""The facts of a violation by two accesses to shared memory, from the shadow and the clocks."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from ..._copies.parts import Parts
from ..._ptx import Instruction
from ..model.clocks import Clocks
from ..model.history import History
from ..model.operations import IssueRecord, Operations
from ..model.shadow import Conflict
from .collector import FindingCollector
from .mbarrier_violations import MbarrierAsMemory, MbarrierInitInUse, MbarrierInvalInUse, MbarrierUnordered
from .shared_violations import OnlyWarpTogether, SharedPair, SharedRace
from .statements import Explained
from .tensor_violations import StageInFlight

__all__ = ["SharedFacts"]

_INIT, _INVAL = ("mbarrier", "init"), ("mbarrier", "inval")
_Pair = TypeVar("_Pair", bound=SharedPair)


class SharedFacts:
    """The source of facts about violations by two accesses to shared memory.

    Parameters
    ----------
    parts : Parts
    clocks : Clocks
    collector : FindingCollector
    history : History
    operations : Operations
    unit_bytes : int
        The size of a cell of the shadow.
    """

    def __init__(
        self,
        parts: Parts,
        clocks: Clocks,
        collector: FindingCollector,
        history: History,
        operations: Operations,
        unit_bytes: int,
    ):
        self._parts, self._clocks, self._collector = parts, clocks, collector
        self._history, self._operations, self._unit_bytes = history, operations, unit_bytes

    def of(
        self,
        kind: type[_Pair],
        found: Conflict,
        lane: int,
        mark: IssueRecord | None,
        access: str,
        now: Instruction,
        **facts: Any,
    ) -> _Pair:
        """Return a violation of class `kind` by the first access in `found` and the access of a thread or operation."""
        earlier, (first, size_bytes, threads) = self._earlier(found, lane), self._extent(found)
        return kind(
            now=now,
            lane=lane,
            other=self._collector.instruction(int(found.sites[0])),
            access=access,
            is_operation=mark is not None,
            other_access=found.before,
            other_lane=earlier if isinstance(earlier, int) else None,
            first=first,
            size_bytes=size_bytes,
            threads=threads if mark is None else 1,
            **facts,
        )

    def race(self, found: Conflict, lane: int, mark: IssueRecord | None, access: str, now: Instruction) -> SharedPair:
        """Return the violation of two unordered accesses to shared memory."""
        if "mbarrier" in (self._collector.instruction(int(found.sites[0])).opcode[0], now.opcode[0]):
            return self._of_mbarrier(found, lane, mark, access, now)
        earlier = self._earlier(found, lane)
        is_operand = isinstance(earlier, tuple) and earlier[0] == "tcgen05"
        return self.of(
            StageInFlight if is_operand else SharedRace,
            found,
            lane,
            mark,
            access,
            now,
            completes_on=earlier[0] if isinstance(earlier, tuple) else "",
            is_elsewhere=self._is_elsewhere(earlier, lane),
            is_in_bulk_group=mark is not None and mark.group is not None and mark.group[0] == "bulk",
            related=(*self.after(lane, mark), *self._operations.related(earlier)),
        )

    def together(
        self, found: Conflict, lane: int, mark: IssueRecord | None, access: str, now: Instruction, by: Instruction,
        is_disputed: bool,
    ) -> OnlyWarpTogether:  # fmt: skip
        """Return the violation of two accesses that are ordered only by the instruction `by` of a whole warp."""
        related = ("its warp executes together", by), *self.after(lane, mark)
        facts = {"by": by, "is_disputed": is_disputed, "related": related}
        return self.of(OnlyWarpTogether, found, lane, mark, access, now, **facts)

    def after(self, lane: int, mark: IssueRecord | None) -> tuple[Explained, ...]:
        """Return the last barrier or wait before the access of a thread, or before the issue of its operation."""
        return self._history.before(lane) if mark is None else mark.after

    def was_sent(self, found: Conflict, lane: int) -> bool:
        """Return whether threads of another CTA have made the earlier access by ``st.async``."""
        earlier = self._earlier(found, lane)
        return isinstance(earlier, tuple) and earlier[0] == "sent"

    def _of_mbarrier(
        self, found: Conflict, lane: int, mark: IssueRecord | None, access: str, now: Instruction
    ) -> SharedPair:
        other = self._collector.instruction(int(found.sites[0]))
        facts: dict[str, Any] = {"related": (*self._history.before(lane), self._history.fence_of_inits)}
        kind: type[SharedPair]
        if other.opcode[:2] == _INIT:
            kind, facts["position"] = MbarrierUnordered, int(found.units[0]) * self._unit_bytes
        elif now.opcode[:2] == _INIT:
            kind = MbarrierInitInUse
        else:
            kind = MbarrierInvalInUse if now.opcode[:2] == _INVAL else MbarrierAsMemory
        return self.of(kind, found, lane, mark, access, now, **facts)

    def _earlier(self, found: Conflict, lane: int) -> Any:
        """Return the lane of the earlier access; for an operation, return the object on which it completes."""
        column, slot = int(found.columns[0]), self._clocks.slot_of(lane)
        if column < self._clocks.threads:
            return slot * self._clocks.threads + column
        return self._clocks.key(slot, column)

    def _is_elsewhere(self, earlier: Any, lane: int) -> bool:
        """Return whether the earlier thread, or the earlier operation's mbarrier, is outside the CTA of a lane."""
        ctas = self._parts.geometry.cta_of_lane
        if isinstance(earlier, int):
            return bool(ctas[earlier] != ctas[lane])
        if earlier[0] not in ("mbarrier", "sent"):
            return False
        return bool(earlier[1] // self._parts.memory.shared_pitch != ctas[lane])

    def _extent(self, found: Conflict) -> tuple[int, int, int]:
        """Return the first byte of a conflict, the number of bytes, and the number of threads that access them later.

        If the bytes belong to several CTAs, the result describes only the part in the first CTA.
        """
        size, pitch = self._unit_bytes, self._parts.memory.shared_pitch
        ctas = found.units * size // pitch
        here = found.units[ctas == ctas[0]]
        first = int(here.min()) * size
        return first, (int(here.max()) + 1) * size - first, len(np.unique(found.which[ctas == ctas[0]]))
