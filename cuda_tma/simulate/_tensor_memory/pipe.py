"""The order of asynchronous ``tcgen05`` operations, each of which takes effect after the earlier operations of its CTA.

Products of one shape execute in order, and a product executes after earlier copies and shifts (PTX ISA, "Pipelined
tcgen05 Instructions"). The PTX ISA defines no order for other pairs of operations. The simulator executes all
operations in order, and an observer checks that a kernel does not rely on an undefined order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

__all__ = ["Pipes"]


class Pipes:
    """The pending operations of each CTA; those of a pair of CTAs belong to the first CTA."""

    def __init__(self) -> None:
        self._pending: dict[int, deque[tuple[int, Callable[[], None]]]] = {}
        # The dictionary maps a thread to its CTA and the number of its last operation.
        self._last: dict[int, tuple[int, int]] = {}
        self._issued = 0

    def issue(self, cta: int, lane: int, run: Callable[[], None]) -> int:
        """Append an operation of a thread to the pipe of a CTA, and return the number of the operation."""
        self._issued += 1
        self._pending.setdefault(cta, deque()).append((self._issued, run))
        self._last[lane] = cta, self._issued
        return self._issued

    def run_until(self, cta: int, number: int) -> None:
        """Let all operations of a CTA take effect, up to the operation with a given number."""
        pending = self._pending.get(cta)
        while pending and pending[0][0] <= number:
            pending.popleft()[1]()

    def pending_of(self, lane: int) -> int | None:
        """Return the CTA whose pipe contains a pending operation of a thread; None if all have taken effect."""
        cta, number = self._last.get(lane, (0, 0))
        pending = self._pending.get(cta)
        return cta if pending and pending[0][0] <= number else None

    def forget(self, ctas: range) -> None:
        """Remove the operations of CTAs that begin."""
        for cta in [cta for cta in self._pending if cta in ctas]:
            del self._pending[cta]
        for lane in [lane for lane, (cta, _) in self._last.items() if cta in ctas]:
            del self._last[lane]
