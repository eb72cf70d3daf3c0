"""What releases to other clusters cover.

Of another cluster a clock has a time alone: how far it had come when one of its threads released. What its other
threads had done by then is behind that release only if the one knew it, by a barrier: that is kept here, release by
release.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Releases"]

_MOST = 2048  # releases of a cluster: who spins for a lock may release at each look


@dataclass(slots=True)
class _Lifetime:
    """Of one cluster: when it began, until when each release reaches, and what of its threads all until then cover."""

    started: int
    until: list[int] = field(default_factory=list)
    covered: list[np.ndarray] = field(default_factory=list)


class Releases:
    """Of the clusters at all places, those that have ended among them."""

    def __init__(self, slots: int):
        self._lives: list[list[_Lifetime]] = [[] for _ in range(slots)]
        self.any = False

    def add(self, slot: int, started: int, until: int, epochs: np.ndarray) -> None:
        """A thread of a cluster releases what lies before a time; `epochs` of its cluster's threads it knows of."""
        lives = self._lives[slot]
        if not lives or lives[-1].started != started:
            lives.append(_Lifetime(started))
        life, self.any = lives[-1], True
        if life.until and life.until[-1] >= until:
            until = life.until.pop()
            epochs = np.maximum(life.covered.pop(), epochs)
        elif life.until:
            epochs = np.maximum(life.covered[-1], epochs)
        life.until.append(until)
        life.covered.append(epochs)
        if len(life.until) > _MOST:  # of those who know no more than the first of them, nothing is said any more
            del life.until[: _MOST // 2], life.covered[: _MOST // 2]

    def cover(self, slot: int, known: int, when: np.ndarray, columns: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        """Whether accesses by threads of who was at a place are behind a release: to one who knows it until then."""
        lives = self._lives[slot]
        covered = np.ones(len(when), bool)
        for life, after in zip(lives, [*lives[1:], None], strict=True):
            if after is not None and known >= after.started:
                continue  # a later cluster there has told of it
            last = bisect_right(life.until, known) - 1
            mine = (when >= life.started) & (after is None or when < after.started)
            if last >= 0 and mine.any():
                covered[mine] = life.covered[last][columns[mine]] >= epochs[mine]
        return covered
