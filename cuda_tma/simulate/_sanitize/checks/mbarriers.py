"""The uses of mbarriers by threads from initialization to invalidation, and the end of each phase."""

from __future__ import annotations

import numpy as np

from ..._copies.parts import Parts
from ..._warps.events import (
    Arrive,
    ArriveAfterCopies,
    BytesCame,
    CompleteBytes,
    ExpectBytes,
    Init,
    Invalidate,
    OfMbarrier,
    PhaseComplete,
    Poll,
    SignaledElsewhere,
    assert_never,
)
from ..._warps.lanes import as_array
from ..model.barriers import Barriers
from ..model.clocks import Clocks
from ..model.history import History
from ..report.collector import FindingCollector
from ..report.mbarrier_violations import OtherMbarrierSignaled
from .arrivals import Arrivals
from .exits import ExitChecker
from .inits import InitChecker
from .shared_races import SharedRaceChecker
from .uses import Uses

__all__ = ["MbarrierUses"]

_BYTES = 8
_READ, _WRITE = "read", "write"


class MbarrierUses:
    """The uses of mbarriers by threads, with the checks of arrivals, initializations and races.

    ``mbarrier.init`` and ``mbarrier.inval`` write the mbarrier, so each other use must be ordered before or after these
    instructions.
    """

    def __init__(
        self,
        parts: Parts,
        clocks: Clocks,
        collector: FindingCollector,
        barriers: Barriers,
        shared_races: SharedRaceChecker,
        inits: InitChecker,
        exits: ExitChecker,
        history: History,
        uses: Uses,
    ):
        self._uses = uses
        self._parts, self._collector, self._barriers = parts, collector, barriers
        self._shared_races, self._inits, self._exits, self._history = shared_races, inits, exits, history
        self._pitch = parts.memory.shared_pitch
        self.arrivals = Arrivals(parts.mbarriers, clocks, history, collector)

    def event(self, event: OfMbarrier) -> None:
        """Check the use of an mbarrier by the threads of an event."""
        match event:
            case PhaseComplete():
                self._complete(event.position)
            case BytesCame():
                pass
            case Init():
                self._write(event)
                self._inits.made(as_array(event.lanes), event.positions, self._collector.site(event.instruction))
                self.arrivals.made(event.positions)
            case Invalidate():
                self._write(event)
                lane = int(as_array(event.lanes)[0])
                self._exits.unexpected_bytes(event.positions.tolist(), lane, event.instruction)
                self.arrivals.made(event.positions)
            case Arrive():
                self._read(event)
                self.arrivals.arrive(event)
                self._barriers.mbarrier_arrive(event)
            case ExpectBytes() | CompleteBytes():
                self._read(event)
            case Poll():
                self._read(event)
                self._waited(event)
            case ArriveAfterCopies():
                self.arrivals.later(event.positions)
            case _:
                assert_never(event)

    def _read(self, event: Arrive | ExpectBytes | CompleteBytes | Poll) -> None:
        self._use(event, _READ)

    def _write(self, event: Init | Invalidate) -> None:
        self._use(event, _WRITE)

    def _use(self, event: Arrive | ExpectBytes | CompleteBytes | Poll | Init | Invalidate, kind: str) -> None:
        use = self._uses.of(event.instruction, kind)
        self._shared_races.by_threads(as_array(event.lanes), event.positions, _BYTES, use)

    def _complete(self, position: int) -> None:
        slot = position // self._pitch // self._parts.geometry.cluster_ctas
        self._barriers.mbarrier_complete(position, slot)
        self.arrivals.complete(position)

    def _waited(self, event: Poll) -> None:
        positions = event.positions
        self._exits.waits.update(dict.fromkeys(positions.tolist(), event.instruction))
        self._barriers.mbarrier_wait(event)
        done = event.done if np.shape(event.done) == positions.shape else np.broadcast_to(event.done, positions.shape)
        self._history.record_wait(as_array(event.lanes)[done], event.instruction, positions[done])

    def signaled_elsewhere(self, event: SignaledElsewhere) -> None:
        """Report a copy whose mbarrier is in another CTA than the destination of the copy."""
        lane, barrier = int(as_array(event.lanes)[0]), self._parts.mbarriers.known(event.named)
        other, related = barrier.made if barrier is not None else None, self._history.before(lane)
        named, signaled, now = event.named, event.signaled, event.instruction
        self._collector.report(
            OtherMbarrierSignaled(now=now, lane=lane, other=other, related=related, named=named, signaled=signaled)
        )
