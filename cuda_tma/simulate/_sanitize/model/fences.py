"""The clocks of threads at their last fences, which a later relaxed operation releases.

After a barrier, a thread also releases the clocks that other threads had at their fences before the barrier. An example
is ``__threadfence(); __syncthreads(); if (threadIdx.x == 0) atomicAdd(...)`` (CUDA C++ Programming Guide, "Memory Fence
Functions").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

__all__ = ["Fences"]

_SCOPES = 3  # The three scopes are .cta, .cluster and .gpu.
_GPU = _SCOPES - 1


class Fences:
    """The last fences of all resident threads.

    Parameters
    ----------
    threads : int
        The number of threads of a cluster.
    slots : int
        The number of slots for resident clusters.
    fitting : callable
        A function that pads a clock to the present number of columns.
    """

    def __init__(self, threads: int, slots: int, fitting: Callable[[np.ndarray], np.ndarray]):
        self._threads, self._fitting = threads, fitting
        # The dictionary maps a lane to its clocks at its last fence of each scope.
        self._clocks: dict[int, list[np.ndarray | None]] = {}
        # The array [scope, lane] contains the epoch of a lane at its last fence of a scope.
        self._epochs = np.zeros((_SCOPES, threads * slots), np.int32)
        self._at = [0] * slots
        # The dictionary caches results of the method `met` for each slot and scope.
        self._met: dict[tuple[int, int], tuple[bytes, np.ndarray | None]] = {}

    def start(self, slot: int) -> None:
        """Remove the fences of the preceding cluster in a slot."""
        first = slot * self._threads
        self._epochs[:, first : first + self._threads] = 0
        for scope in range(_SCOPES):
            self._met.pop((slot, scope), None)
        for lane in self.executed(range(first, first + self._threads)):
            del self._clocks[lane]

    def fence(self, lane: int, scope: int, clock: np.ndarray, epoch: int, now: int) -> None:
        """Record a fence of a lane, with the clock of the lane."""
        before = self._clocks.get(lane) or [None] * _SCOPES
        self._clocks[lane] = [*[clock] * (scope + 1), *before[scope + 1 :]]
        self._epochs[: scope + 1, lane] = epoch
        if scope == _GPU:
            self._at[lane // self._threads] = now

    @property
    def any(self) -> bool:
        """Return whether at least one lane has executed a fence."""
        return bool(self._clocks)

    def until(self, slot: int) -> int:
        """Return the time of the last fence of scope .gpu in the cluster of a slot."""
        return self._at[slot]

    def executed(self, lanes: Iterable[int]) -> list[int]:
        """Return the lanes that have executed a fence."""
        return [lane for lane in lanes if lane in self._clocks] if self._clocks else []

    def given(self, lanes: list[int], scope: int) -> np.ndarray | None:
        """Return the union of the lanes' clocks at their last fences of a scope."""
        found = [clock for lane in self.executed(lanes) if (clock := self._clocks[lane][scope]) is not None]
        if not found:
            return None
        known = self._fitting(found[0]).copy()
        for clock in found[1:]:
            older = known[:, : clock.shape[1]]  # A clock that was copied earlier may have fewer columns.
            np.maximum(older, clock, out=older)
        return known

    def met(self, lane: int, known: np.ndarray, scope: int) -> np.ndarray | None:
        """Return the union of the clocks at the fences of a cluster that precede a lane's present statement."""
        slot = lane // self._threads
        first = slot * self._threads
        epochs = self._epochs[scope, first : first + self._threads]
        epochs = np.where(known >= epochs, epochs, 0)
        key = epochs.tobytes()  # A thread and its epoch identify one of its fences.
        if self._met.get((slot, scope), (None,))[0] != key:
            self._met[slot, scope] = key, self.given((first + np.flatnonzero(epochs)).tolist(), scope)
        return self._met[slot, scope][1]
