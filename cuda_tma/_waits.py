"""The function that groups the waits of single threads for the report of a hang."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from .hang import BarrierWait, MbarrierWait, Waiter, _Extents

Extents = _Extents


def waiters_of(waits: Iterable[tuple[str, MbarrierWait | BarrierWait, Extents, set[int]]]) -> tuple[Waiter, ...]:
    """Merge the threads of a block that have the same wait.

    Then merge the blocks in which the same threads have that wait.

    Parameters
    ----------
    waits : iterable of (str, MbarrierWait or BarrierWait, (int, int, int), set of int)
        The place, the barrier, the block and the threads of each wait.
    """
    threads: dict[tuple, set[int]] = defaultdict(set)
    for place, awaits, block, some in waits:
        threads[place, awaits, block] |= some
    blocks: dict[tuple, list[Extents]] = defaultdict(list)
    for (place, awaits, block), all_of in threads.items():
        blocks[place, awaits, tuple(sorted(all_of))].append(block)
    found = [Waiter(tuple(sorted(of, key=_order)), who, *wait) for (*wait, who), of in blocks.items()]
    return tuple(sorted(found, key=lambda waiter: (_order(waiter.blocks[0]), waiter.threads)))


def _order(block: Extents) -> Extents:
    x, y, z = block
    return z, y, x
