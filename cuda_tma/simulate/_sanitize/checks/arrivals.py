"""The check that each arrival at an mbarrier counts for the same phase in every order of threads.

An arrival for a phase must follow the end of the preceding phase. An arrival follows this end if its thread has waited
for the preceding phase, or if the arrival follows all arrivals of that phase. Otherwise, in another order of threads,
the arrival counts for the preceding phase. The preceding phase then has more arrivals than ``mbarrier.init`` states.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..._ptx import Instruction
from ..._sync.mbarrier import Mbarriers
from ..._warps.events import Arrive
from ..._warps.lanes import as_array
from ..model.clocks import ORDERED, Clocks
from ..model.history import History
from ..report.collector import FindingCollector
from ..report.mbarrier_violations import ArrivalTooEarly

__all__ = ["Arrivals"]


class _Arrived(NamedTuple):
    """The arrivals of one instruction at one mbarrier, with the arriving lanes and their epochs."""

    lanes: np.ndarray
    epochs: np.ndarray
    by: Instruction


@dataclass(slots=True)
class _Barrier:
    """The arrivals at one mbarrier in two phases.

    Attributes
    ----------
    now, before : list of _Arrived
        The arrivals of the present phase, and the arrivals of the preceding phase.
    ended : int
        The time of the end of the preceding phase.
    is_judged : bool
        Whether the check applies to the mbarrier: no arrival waits for copies, and no arrival has been reported.
    """

    now: list[_Arrived] = field(default_factory=list)
    before: list[_Arrived] = field(default_factory=list)
    ended: int = 0
    is_judged: bool = True


class Arrivals:
    """The arrivals at every mbarrier in its present and its preceding phase."""

    def __init__(self, mbarriers: Mbarriers, clocks: Clocks, history: History, collector: FindingCollector):
        self._mbarriers, self._clocks, self._history, self._collector = mbarriers, clocks, history, collector
        self._barriers: dict[int, _Barrier] = {}

    def forget(self, ctas: range, pitch: int) -> None:
        """Remove the records of CTAs that have ended, because new CTAs use their memory."""
        for position in [position for position in self._barriers if position // pitch in ctas]:
            del self._barriers[position]

    def made(self, positions: np.ndarray) -> None:
        """Remove mbarriers that a thread initializes or invalidates."""
        for position in positions.tolist():
            self._barriers.pop(position, None)

    def later(self, positions: np.ndarray) -> None:
        """Exclude mbarriers at which copies arrive when they complete, because the phase at that time is unknown."""
        for position in np.unique(positions).tolist():
            self._barriers.setdefault(position, _Barrier()).is_judged = False

    def complete(self, position: int) -> None:
        """End the present phase of an mbarrier."""
        barrier = self._barriers.setdefault(position, _Barrier())
        barrier.before, barrier.now, barrier.ended = barrier.now, [], self._clocks.now

    def arrive(self, event: Arrive) -> None:
        """Check and record the arrivals of threads at mbarriers."""
        lanes, positions, by = as_array(event.lanes), event.positions, event.instruction
        for position in {*positions.tolist()}:
            barrier = self._barriers.setdefault(position, _Barrier())
            if barrier.is_judged:
                some = positions == position
                mine = lanes[some]
                values = np.array(event.values)[some] if not event.expects else None
                self._judge(position, barrier, mine, values, by)

    def _judge(
        self, position: int, barrier: _Barrier, lanes: np.ndarray, values: np.ndarray | None, by: Instruction
    ) -> None:
        made = self._mbarriers.known(position)
        if made is None:
            return
        counts = np.arange(1, len(lanes) + 1) if values is None else np.cumsum(values)
        fits = len(lanes) if counts[-1] <= made.pending else int(np.searchsorted(counts, made.pending, "right"))
        mine = _Arrived(lanes[:fits], self._clocks.own(lanes[:fits]), by)
        early = self._early(barrier, mine.lanes)
        if early is not None:
            self._report(position, barrier, int(early), by, barrier.before[-1].by, made.phase)
        elif 0 < fits < len(lanes) and made.tx == 0:
            self._report(position, barrier, int(lanes[fits]), by, by, made.phase + 1)
        barrier.now.append(mine)

    def _early(self, barrier: _Barrier, lanes: np.ndarray) -> int | None:
        """Return the first lane whose arrival may precede the end of the preceding phase; None without such a lane."""
        for lane in lanes[self._clocks.last_acquire[lanes] < barrier.ended].tolist():
            for arrived in barrier.before:
                if not self._follows(lane, arrived):
                    return lane
        return None

    def _follows(self, lane: int, arrived: _Arrived) -> bool:
        clocks = self._clocks
        if clocks.slot_of(lane) != clocks.slot_of(int(arrived.lanes[0])):
            return True
        columns = arrived.lanes % clocks.threads
        return bool((clocks.known(ORDERED).at(np.full(len(columns), lane), columns) >= arrived.epochs).all())

    def _report(
        self, position: int, barrier: _Barrier, lane: int, by: Instruction, before: Instruction, phase: int
    ) -> None:
        barrier.is_judged = False
        related = self._history.before(lane)
        self._collector.report(
            ArrivalTooEarly(now=by, lane=lane, other=before, related=related, position=position, phase=phase)
        )
