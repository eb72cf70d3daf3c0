"""The accesses that releases to other clusters cover.

For another cluster, a clock contains only a time: that of the last release there that it has acquired. This release
covers an earlier access of another thread only if the access happens before it, for example by a barrier. `Releases`
keeps the covered epochs of each release.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Releases"]

_MOST = 2048  # releases of a cluster: a thread that spins on a lock may release at each poll


@dataclass(slots=True)
class _Lifetime:
    """One cluster: when it began, the time of each release, and the epochs that all releases until that time cover."""

    started: int
    until: list[int] = field(default_factory=list)
    covered: list[np.ndarray] = field(default_factory=list)


class Releases:
    """The releases of the clusters of all slots, including clusters that have ended."""

    def __init__(self, slots: int):
        self._lives: list[list[_Lifetime]] = [[] for _ in range(slots)]
        self.any = False

    def add(self, slot: int, started: int, until: int, epochs: np.ndarray) -> None:
        """Add a release that a thread made until a time; `epochs` are those of its cluster's threads in its clock."""
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
        if len(life.until) > _MOST:  # `cover` reports nothing for times before the oldest one
            del life.until[: _MOST // 2], life.covered[: _MOST // 2]

    def cover(self, slot: int, known: int, when: np.ndarray, columns: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        """Return whether the releases until a known time cover accesses by threads of a slot's clusters."""
        lives = self._lives[slot]
        covered = np.ones(len(when), bool)
        for life, after in zip(lives, [*lives[1:], None], strict=True):
            if after is not None and known >= after.started:
                continue  # covered by the later cluster of the slot
            last = bisect_right(life.until, known) - 1
            mine = (when >= life.started) & (after is None or when < after.started)
            if last >= 0 and mine.any():
                covered[mine] = life.covered[last][columns[mine]] >= epochs[mine]
        return covered
