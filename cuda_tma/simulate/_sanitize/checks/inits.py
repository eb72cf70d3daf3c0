"""The check that asynchronous operations follow the initialization of the mbarriers that they signal.

A fence must make the initialization of each mbarrier visible to the async proxy.
"""

from __future__ import annotations

import numpy as np

from ..model.clocks import FENCED, ORDERED, Clocks
from ..model.history import History
from ..model.operations import IssueRecord
from ..report.collector import FindingCollector
from ..report.mbarrier_violations import MbarrierNotFenced, MbarrierNotReady

__all__ = ["InitChecker"]


class InitChecker:
    """The ``mbarrier.init`` of each mbarrier, and whether a ``fence.mbarrier_init`` follows it."""

    def __init__(self, clocks: Clocks, collector: FindingCollector, history: History, strict: bool):
        self._clocks, self._collector, self._history = clocks, collector, history
        self._strict = strict
        # The dictionary maps an mbarrier to the lane, the epoch and the site of its initialization.
        self._made: dict[int, tuple[int, int, int]] = {}
        self._fenced: set[int] = set()

    def forget(self, ctas: range, pitch: int) -> None:
        """Remove the records of CTAs that have ended, because new CTAs use their memory."""
        for position in [position for position in self._made if position // pitch in ctas]:
            del self._made[position]

    def made(self, lanes: np.ndarray, positions: np.ndarray, site: int) -> None:
        """Record mbarriers that ``mbarrier.init`` initializes."""
        epochs = self._clocks.own(lanes)
        for position, lane, epoch in zip(positions.tolist(), lanes.tolist(), epochs.tolist(), strict=True):
            self._made[position] = (lane, epoch, site)
            self._fenced.discard(position)

    def fence(self, lanes: np.ndarray) -> None:
        """Record a ``fence.mbarrier_init``, which covers the mbarriers that the executing lanes have initialized."""
        among = {*lanes.tolist()}
        self._fenced |= {position for position, (lane, _, _) in self._made.items() if lane in among}

    def check(self, position: int, mark: IssueRecord) -> None:
        """Report an operation on an mbarrier without an order after the initialization, or without a fence."""
        if position not in self._made:
            return
        lane, epoch, site = self._made[position]
        # A clock has one column for each thread of the cluster.
        clock, column = mark.clock, lane % self._clocks.threads
        if clock[ORDERED, column] < epoch:
            after, now, other = (
                (*mark.after, self._history.fence_of_inits),
                mark.instruction,
                self._collector.instruction(site),
            )
            self._collector.report(
                MbarrierNotReady(now=now, lane=mark.lane, other=other, related=after, position=position)
            )
        elif clock[FENCED, column] < epoch and position not in self._fenced:
            after, now, other, disputed = (
                mark.after,
                mark.instruction,
                self._collector.instruction(site),
                not self._strict,
            )
            self._collector.report(
                MbarrierNotFenced(
                    now=now, lane=mark.lane, other=other, related=after, position=position, is_disputed=disputed
                )
            )
