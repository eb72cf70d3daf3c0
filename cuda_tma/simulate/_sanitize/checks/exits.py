"""The checks at the end of threads and CTAs, which find pending operations, and mbarriers with unexpected bytes."""

from __future__ import annotations

import numpy as np

from ..._copies.parts import Parts
from ..._ptx import Instruction
from ..._warps.events import Exit
from ..._warps.lanes import as_array
from ..model.clocks import ORDERED, Clocks
from ..model.history import History
from ..model.operations import IssueRecord, Operations
from ..report.collector import FindingCollector
from ..report.mbarrier_violations import UnexpectedBytes
from ..report.product_violations import ExitBeforeProduct
from ..report.statements import Explained
from ..report.violations import (
    CopyWritesAfterExit,
    LoadWritesAfterExit,
    RemoteLoadAfterExit,
    RemoteUseAfterExit,
    SendReadsAfterExit,
    StoreReadsAfterExit,
)
from .remote import Remote

__all__ = ["ExitChecker"]


class ExitChecker:
    """The checks that run at the end of threads and CTAs.

    Parameters
    ----------
    parts : Parts
    clocks : Clocks
    operations : Operations
    remote : Remote
    history : History
    collector : FindingCollector

    Attributes
    ----------
    landing : dict
        The last load that signals each mbarrier: the column and the phase of its completion, and its record.
    waits : dict
        The instruction of the last wait for each mbarrier.
    """

    def __init__(
        self,
        parts: Parts,
        clocks: Clocks,
        operations: Operations,
        remote: Remote,
        history: History,
        collector: FindingCollector,
    ):
        self._parts, self._clocks, self._operations = parts, clocks, operations
        self._remote, self._history, self._collector = remote, history, collector
        self.landing: dict[int, tuple[int, int, IssueRecord]] = {}
        self.waits: dict[int, Instruction] = {}
        # The dictionary maps a CTA to the last instruction of the thread that ended last.
        self._ends: dict[int, Instruction | None] = {}

    def forget(self, ctas: range, pitch: int) -> None:
        """Remove the loads to CTAs that have ended, because new CTAs use their memory."""
        for position in [position for position in self.landing if position // pitch in ctas]:
            del self.landing[position]

    def exit(self, event: Exit) -> None:
        """Report the pending operations of threads that end, and the pending operations of each CTA that ends."""
        ends: Explained = ("ends", event.instruction)
        self._history.end(as_array(event.lanes))
        for lane, groups in self._operations.owned("bulk", event.lanes):
            if (mark := groups.open) is not None:
                related = (("last wait for its groups", groups.waits), ends)
                self._collector.report(StoreReadsAfterExit(now=mark.instruction, lane=lane, related=related))
        for first, groups in self._operations.owned("wgmma", event.lanes):
            if (mark := groups.open) is not None:
                related = (("last wait for its groups", groups.waits), ends)
                self._collector.report(ExitBeforeProduct(now=mark.instruction, lane=first, related=related))
        size = self._parts.geometry.lanes_of_cta
        for cta in np.unique(as_array(event.lanes) // size).tolist():
            if not self._parts.alive[cta * size : (cta + 1) * size].any():
                self._end_of_cta(cta, ends)

    def _end_of_cta(self, cta: int, ends: Explained) -> None:
        size, pitch = self._parts.geometry.lanes_of_cta, self._parts.memory.shared_pitch
        self._ends[cta] = ends[1]
        self.unexpected_bytes(self._parts.mbarriers.of(cta), cta * size, ends[1])
        if (late := self._remote.unknown_at_end(cta)) is not None:
            violation = RemoteLoadAfterExit if late.is_load_before_arrival else RemoteUseAfterExit
            self._collector.report(violation(now=late.instruction, lane=late.lane, cta=cta, related=(ends,)))
        self._pending_copies(cta, ends)
        for position, (column, phase, mark) in self.landing.items():
            if position // pitch != cta:
                continue
            if self._clocks.known(ORDERED).at(np.arange(cta * size, (cta + 1) * size), column).max() < phase:
                self.unfinished(mark, cta, position, sends=False)

    def _pending_copies(self, cta: int, ends: Explained) -> None:
        """Report the last ``cp.async`` of each thread if no thread of the CTA has waited for it."""
        size = self._parts.geometry.lanes_of_cta
        lanes = slice(cta * size, (cta + 1) * size)
        for lane, number, instruction in self._operations.unfinished("cp.async", lanes):
            column = self._clocks.column(self._clocks.slot_of(lane), ("cp.async", lane, "write"))
            known = self._clocks.known(ORDERED)
            if known.at(as_array(lanes), column).max() < number:
                self._collector.report(CopyWritesAfterExit(now=instruction, lane=lane, related=(ends,)))

    def unfinished(self, mark: IssueRecord, cta: int, position: int, *, sends: bool) -> None:
        """Report a copy with an mbarrier that may access the shared memory of a CTA after the end of this CTA."""
        violation = SendReadsAfterExit if sends else LoadWritesAfterExit
        related = ("last wait for its mbarrier", self.waits.get(position)), ("ends", self._ends.get(cta))
        now, lane = mark.instruction, mark.lane
        self._collector.report(violation(now=now, lane=lane, related=related, cta=cta, position=position))

    def unexpected_bytes(self, positions: list[int], lane: int, now: Instruction | None) -> None:
        """Report each mbarrier whose tx-count is negative when its use ends."""
        for position in positions:
            left = self._parts.mbarriers.unexpected(position)
            if left is not None and now is not None:
                self._collector.report(
                    UnexpectedBytes(
                        now=now, lane=lane, related=left.related, position=position, tx=left.tx, phase=left.phase
                    )
                )
