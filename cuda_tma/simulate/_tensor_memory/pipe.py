"""The order of asynchronous ``tcgen05`` operations: each takes effect after those that its CTA has issued before.

PTX ISA, "Pipelined tcgen05 Instructions": products of one shape follow each other, and a product follows the copies
and shifts before it. Pairs that the PTX ISA leaves open are in order here too; an observer looks at those.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

__all__ = ["Pipes"]


class Pipes:
    """The operations that wait, by the CTA that issued them; of a pair of CTAs, by its first."""

    def __init__(self) -> None:
        self._pending: dict[int, deque[tuple[int, Callable[[], None]]]] = {}
        self._last: dict[int, tuple[int, int]] = {}  # by thread: its CTA, and the number of its last operation
        self._issued = 0

    def issue(self, cta: int, lane: int, run: Callable[[], None]) -> int:
        """Append an operation of a thread; return its number."""
        self._issued += 1
        self._pending.setdefault(cta, deque()).append((self._issued, run))
        self._last[lane] = cta, self._issued
        return self._issued

    def run_until(self, cta: int, number: int) -> None:
        """Let all operations of a CTA up to one of them take effect."""
        pending = self._pending.get(cta)
        while pending and pending[0][0] <= number:
            pending.popleft()[1]()

    def pending_of(self, lane: int) -> int | None:
        """Return the CTA in whose pipe an operation of a thread waits; None if each has taken effect."""
        cta, number = self._last.get(lane, (0, 0))
        pending = self._pending.get(cta)
        return cta if pending and pending[0][0] <= number else None

    def forget(self, ctas: range) -> None:
        """CTAs begin."""
        for cta in [cta for cta in self._pending if cta in ctas]:
            del self._pending[cta]
        for lane in [lane for lane, (cta, _) in self._last.items() if cta in ctas]:
            del self._last[lane]
