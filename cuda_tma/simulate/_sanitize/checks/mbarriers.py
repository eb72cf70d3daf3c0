"""mbarriers as the sanitizer sees them: made, used and invalidated by threads, and the end of each phase."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from ..._copies.parts import Parts
from ..._ptx import Instruction
from ..._warps.lanes import as_array
from ..._warps.observe import Event
from ..model.barriers import Barriers
from ..model.clocks import Clocks
from ..model.trail import Trail
from ..report.ledger import Ledger
from ..report.words import Words
from .arrivals import Arrivals
from .exits import Exits
from .inits import Inits
from .shared import InShared

__all__ = ["MbarrierUses"]

_BYTES = 8
_RELEASING = ("mbarrier.arrive", "mbarrier.arrive_drop")
_READ, _WRITE = "read", "write"


class MbarrierUses:
    """Passes each use of an mbarrier to all that judge it.

    ``mbarrier.init`` and ``mbarrier.inval`` are writes of its bytes: every other use is ordered before or after them.
    """

    def __init__(
        self,
        parts: Parts,
        clocks: Clocks,
        ledger: Ledger,
        barriers: Barriers,
        in_shared: InShared,
        inits: Inits,
        exits: Exits,
        trail: Trail,
        words: Words,
    ):
        self._parts, self._ledger, self._barriers = parts, ledger, barriers
        self._in_shared, self._inits, self._exits, self._trail, self._words = in_shared, inits, exits, trail, words
        self._pitch = parts.memory.shared_pitch
        self.arrivals = Arrivals(parts, clocks, words)

    def init(self, event: Event) -> None:
        """``mbarrier.init``."""
        positions, lanes = event.details["positions"], as_array(event.lanes)
        by = cast(Instruction, event.instruction)
        self._in_shared.by_threads(lanes, positions, _BYTES, _WRITE, by)
        self._inits.made(lanes, positions, self._ledger.site(by))
        self.arrivals.made(positions)

    def complete(self, event: Event) -> None:
        """A phase ends."""
        position = event.details["position"]
        slot = position // self._pitch // self._parts.geometry.cluster_ctas
        self._barriers.mbarrier_complete(position, slot)
        self.arrivals.complete(position)

    def use(self, parts: list[str]) -> Callable[[Event], None]:
        """Return the function that judges a use by one instruction."""
        if parts[1] == "inval":
            return self._inval
        is_arrival = ".".join(parts[:2]) in _RELEASING

        def use(event: Event) -> None:
            by = cast(Instruction, event.instruction)
            self._in_shared.by_threads(as_array(event.lanes), event.details["positions"], _BYTES, _READ, by)
            if is_arrival:
                self.arrivals.arrive(event, by)
                self._barriers.mbarrier_arrive(event, parts)
            elif "done" in event.details:
                self._waited(event, parts, by)

        return use

    def with_later(self, act: Callable[[Event], None]) -> Callable[[Event], None]:
        """Return the function that also notes arrivals that come when copies are complete."""

        def both(event: Event) -> None:
            self.arrivals.later(event.details["positions"])
            act(event)

        return both

    def _waited(self, event: Event, parts: list[str], by: Instruction) -> None:
        positions = event.details["positions"]
        self._exits.waits.update(dict.fromkeys(positions.tolist(), by))
        self._barriers.mbarrier_wait(event, parts)
        done = np.broadcast_to(event.details["done"], positions.shape)
        self._trail.hear(as_array(event.lanes)[done], by, positions[done])

    def _inval(self, event: Event) -> None:
        positions, lanes = event.details["positions"], as_array(event.lanes)
        by = cast(Instruction, event.instruction)
        self._in_shared.by_threads(lanes, positions, _BYTES, _WRITE, by)
        self._words.bytes_unexpected(positions.tolist(), int(lanes[0]), by)
        self.arrivals.made(positions)
