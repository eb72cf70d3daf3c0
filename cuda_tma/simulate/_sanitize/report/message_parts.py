"""Parts of messages: actors, bytes, and related statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._copies.parts import Parts
from ..._findings import Finding
from ..._ptx import Instruction
from ..model.clocks import Clocks
from ..model.history import Explained, History
from ..model.operations import IssueRecord, Operations
from ..model.shadow import Conflict
from .collector import FindingCollector
from .statements import name_of, place_of

__all__ = ["MessageParts"]


class MessageParts:
    """Builds the parts of messages.

    Parameters
    ----------
    parts : Parts
    clocks : Clocks
    collector : FindingCollector
        Collects the findings.
    history : History
        The recent history of each thread.
    operations : Operations
        The asynchronous operations in flight.
    unit_bytes : int
        Of a unit of the shadow.
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

    def _after(self, lane: int, mark: IssueRecord | None) -> tuple[Explained, ...]:
        """The last barrier or wait before an access, or before an operation was issued."""
        return self._history.before(lane) if mark is None else mark.after

    def _add(
        self,
        kind: str,
        severity: str,
        text: str,
        now: Instruction,
        before: Instruction | None,
        lane: int,
        rule: str,
        remedy: str,
        related: Sequence[Explained] = (),
    ) -> None:
        blocks, threads = self._parts.geometry.blocks_and_threads(np.array([lane]))
        other, other_line = (before.places, before.line) if before is not None else ((), 0)
        message = f"{text}. {rule}. Remedy: {remedy}"
        said = {now.places, other}
        places = tuple(
            (what, by.places) for what, by in related if by is not None and by.places and by.places not in said
        )
        finding = Finding(
            kind, severity, message, now.places, blocks, threads, now.line, 1, other, other_line, rule, remedy, places
        )
        self._collector.add((kind, id(before), id(now)) if before is not None else (kind, id(now)), finding)

    def _before(self, lane: int, found: Conflict) -> tuple[Any, int]:
        """Return the lane of the earlier access, or the object on which its operation completes, and the epoch."""
        column, epoch = int(found.columns[0]), int(found.epochs[0])
        slot = self._clocks.slot_of(lane)
        if column < self._clocks.threads:
            return slot * self._clocks.threads + column, epoch
        return self._clocks.key(slot, column), epoch

    def _groups(self, lane: int, found: Conflict) -> tuple[Explained, ...]:
        """Return the related statements of an earlier operation that belongs to a group."""
        return self._operations.related(self._before(lane, found)[0])

    def was_sent(self, found: Conflict, lane: int) -> bool:
        """Whether the access before is of threads of another CTA that have sent it by st.async."""
        who, _ = self._before(lane, found)
        return isinstance(who, tuple) and who[0] == "sent"

    def _is_elsewhere(self, who: Any, lane: int) -> bool:
        """Whether an operation completes on an mbarrier of another CTA than a lane's."""
        if not isinstance(who, tuple) or who[0] not in ("mbarrier", "sent"):
            return False
        return who[1] // self._parts.memory.shared_pitch != int(self._parts.geometry.cta_of_lane[lane])

    def _who_before(self, lane: int, found: Conflict, before: Instruction) -> str:
        who, _ = self._before(lane, found)
        place = place_of(before.places, before.line)
        if isinstance(who, tuple):
            return f"{name_of(before)} at {place}"
        if who == lane:
            return f"the same thread at {place}"
        return f"{self._thread(who)} at {place}"

    def _who(self, lane: int, mark: IssueRecord | None) -> str:
        return self._thread(lane) if mark is None else f"{name_of(mark.instruction)} that {self._thread(lane)} issued"

    def _thread(self, lane: int) -> str:
        return self._parts.geometry.thread_name(lane)

    def _mbarrier(self, position: int) -> str:
        return self._parts.mbarriers.name(position)

    def _bytes(self, found: Conflict) -> str:
        """``bytes 128 to 255 of `tile` ``."""
        size = self._unit_bytes
        pitch = self._parts.memory.shared_pitch
        ctas = found.units * size // pitch
        here = found.units[ctas == ctas[0]]  # of what several CTAs do in one step, the first's part
        first, last = int(here.min()) * size, (int(here.max()) + 1) * size - 1
        start = first % pitch
        name = self._parts.program.shared_name(start)
        return f"{last - first + 1} bytes at {name}" if name.startswith("`") else f"{last - first + 1} bytes {name}"
