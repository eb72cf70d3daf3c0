"""The accesses that the releases of a cluster cover for other clusters.

A clock contains only one time for each other cluster: the time of the last acquired release of this cluster. The
release covers an earlier access by another thread of the cluster only if the access happens before the release, for
example by a barrier. `Releases` therefore keeps the covered epochs of each release.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Releases"]

# The record of a cluster keeps at most 2,048 releases, because a polling thread may release at each poll.
_MOST = 2048


@dataclass(slots=True)
class _Lifetime:
    """The releases of one cluster: the time of each release, and the epochs that the releases up to this time cover."""

    started: int
    until: list[int] = field(default_factory=list)
    covered: list[np.ndarray] = field(default_factory=list)


class Releases:
    """The releases of the clusters of all slots, including clusters that have ended."""

    def __init__(self, slots: int):
        self._lives: list[list[_Lifetime]] = [[] for _ in range(slots)]
        self.any = False

    def add(self, slot: int, started: int, until: int, epochs: np.ndarray) -> None:
        """Add a release of a thread that covers its cluster up to time `until`.

        `epochs` contains the epoch of each thread of the cluster in the released clock.
        """
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
        # Old releases are removed, and the method `cover` treats earlier accesses as covered.
        if len(life.until) > _MOST:
            del life.until[: _MOST // 2], life.covered[: _MOST // 2]

    def cover(self, slot: int, known: int, when: np.ndarray, columns: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        """Return, for each access by threads of a slot's clusters, whether a release before a known time covers it."""
        lives = self._lives[slot]
        covered = np.ones(len(when), bool)
        for life, after in zip(lives, [*lives[1:], None], strict=True):
            if after is not None and known >= after.started:
                continue  # An observed release of a later cluster in the slot covers all accesses of this cluster.
            last = bisect_right(life.until, known) - 1
            mine = (when >= life.started) & (after is None or when < after.started)
            if last >= 0 and mine.any():
                covered[mine] = life.covered[last][columns[mine]] >= epochs[mine]
        return covered
