"""Vector clocks: what every thread knows to have happened, and how far it lies behind a proxy fence.

A thread's clock has a column for each thread of its cluster, and one for each mbarrier and for each owner of groups of
asynchronous operations: an operation counts as done by what it completes on, in a phase or group. An access is an
*epoch*: the column of who did it, and that column's value then. It is ordered before a thread iff the thread's clock
holds at least that value: the common case of FastTrack, one comparison.

Each clock is two rows: ``ORDERED``, what precedes in base causality order, and ``FENCED``, what does so along a path
with a fence between the generic and the async proxy. Source: PTX ISA 9.0, "Memory Consistency Model: Causality Order".
"""

from __future__ import annotations

import numpy as np

from .._geometry import Geometry
from .._lanes import Lanes, as_array

__all__ = ["FENCED", "ORDERED", "Clocks"]

ORDERED, FENCED = 0, 1
_SPARE_COLUMNS = 64


class Clocks:
    """The clocks of all resident threads.

    Attributes
    ----------
    rows : numpy.ndarray of int32, [2, lane, column]
    threads : int
        Threads of a cluster: the columns before the others. The column of a lane is its place in its cluster.
    slots : int
        Places of clusters: the columns behind those. They hold times: all that the cluster there had done until then.
    now : int
        The time: how much has been observed.
    started : numpy.ndarray, [slot]
        When the cluster there began.
    """

    def __init__(self, geometry: Geometry):
        self.threads = geometry.cluster_ctas * geometry.lanes_of_cta
        self.slots = geometry.slots
        self.now, self.started = 1, np.zeros(self.slots, np.int64)
        self._first = self.threads + self.slots  # column of what is neither
        self.rows = np.zeros((2, geometry.lanes, self._first + _SPARE_COLUMNS), np.int32)
        self._columns: list[dict[object, int]] = [{} for _ in range(geometry.slots)]
        self._published: dict[int, np.ndarray] = {}  # by lane: what it knew at its last fence
        self._noticed: dict[int, np.ndarray] = {}  # by lane: what it knows from its next fence on

    def slot_of(self, lane: int) -> int:
        """The place of the lane's cluster among those that are resident."""
        return lane // self.threads

    def start(self, lanes: np.ndarray) -> None:
        """Threads of a new cluster begin, and know nothing."""
        slot = self.slot_of(int(lanes[0]))
        self._columns[slot].clear()
        self.started[slot] = self.now
        self.rows[:, slot * self.threads : (slot + 1) * self.threads] = 0
        for lane in lanes.tolist() if self._published or self._noticed else ():
            self._published.pop(lane, None)
            self._noticed.pop(lane, None)
        self.tick(lanes)

    def column(self, slot: int, key: object) -> int:
        """The column of what is no thread: an mbarrier, or the groups of who waits for them."""
        known = self._columns[slot]
        found = known.get(key)
        if found is None:
            found = known[key] = self._first + len(known)
            if found >= self.rows.shape[2]:
                self.rows = np.pad(self.rows, ((0, 0), (0, 0), (0, self.rows.shape[2] - self._first)))
        return found

    def key(self, slot: int, column: int) -> object:
        """Of what a column is."""
        return [*self._columns[slot]][column - self._first]

    # ---- what threads do ----

    def own(self, lanes: np.ndarray) -> np.ndarray:
        """The present value of each lane in its own column: the epoch of what it does now."""
        return self.rows[ORDERED, lanes, lanes % self.threads]

    def tick(self, lanes: Lanes) -> None:
        """What the lanes do from now on is not what they did."""
        here = as_array(lanes)
        self.rows[ORDERED, here, here % self.threads] += 1

    def memory_fence(self, lanes: Lanes) -> None:
        """What precedes it is given by later relaxed operations, and what earlier ones have found now counts."""
        for lane in as_array(lanes).tolist():
            if lane in self._noticed:
                self.acquire(slice(lane, lane + 1), self._noticed.pop(lane))
            self._published[lane] = self.rows[:, lane].copy()
        self.tick(lanes)

    def published(self, lanes: Lanes) -> np.ndarray:
        """What some lanes give by a relaxed operation: what they knew at their last fences."""
        found = [self.fitting(self._published[lane]) for lane in as_array(lanes).tolist() if lane in self._published]
        return np.maximum.reduce(found) if found else np.zeros((2, self.rows.shape[2]), np.int32)

    @property
    def has_published(self) -> bool:
        """Whether anybody has executed a fence."""
        return bool(self._published)

    def nothing(self) -> np.ndarray:
        """The clock of who knows nothing."""
        return np.zeros((2, self.rows.shape[2]), np.int32)

    def fence_global(self, lanes: Lanes) -> None:
        """A proxy fence of global memory: of the own cluster, all until now."""
        here = as_array(lanes)
        self.rows[FENCED, here, self.threads + here // self.threads] = self.now
        times = self.rows[:, here, self.threads : self._first]
        self.rows[FENCED, here, self.threads : self._first] = times.max(axis=0)

    def notice(self, lanes: Lanes, clock: np.ndarray) -> None:
        """What some lanes find by a relaxed operation, to be known from their next fence on."""
        for lane in as_array(lanes).tolist():
            before = self._noticed.get(lane)
            self._noticed[lane] = clock if before is None else np.maximum(self.fitting(before), self.fitting(clock))

    def fence(self, lanes: Lanes) -> None:
        """A proxy fence: all that precedes it is behind a fence."""
        self.rows[FENCED, lanes] = np.maximum(self.rows[FENCED, lanes], self.rows[ORDERED, lanes])
        self.tick(lanes)

    def released(self, lanes: Lanes) -> np.ndarray:
        """What some lanes give to whoever synchronises with them: [2, column]."""
        clock = self.rows[:, lanes].max(axis=1)
        self.tick(lanes)
        return clock

    def acquire(self, lanes: Lanes, clock: np.ndarray) -> None:
        """Lanes know what a clock knows."""
        clock = self.fitting(clock)[:, None]
        if isinstance(lanes, slice):
            np.maximum(self.rows[:, lanes], clock, out=self.rows[:, lanes])
        else:
            self.rows[:, lanes] = np.maximum(self.rows[:, lanes], clock)

    def fitting(self, clock: np.ndarray) -> np.ndarray:
        """A clock from before columns were added."""
        missing = self.rows.shape[2] - clock.shape[-1]
        return np.pad(clock, ((0, 0), (0, missing))) if missing else clock

    def meet(self, lanes: Lanes, width: int) -> None:
        """Each `width` lanes side by side, of which all or some are in `lanes`, know what each of them knows."""
        here = as_array(lanes)
        if len(here) % width == 0 and here[0] % width == 0 and here[-1] - here[0] == len(here) - 1:
            rows = self.rows[:, here[0] : here[-1] + 1].reshape(2, -1, width, self.rows.shape[2])
            rows[:] = rows.max(axis=2, keepdims=True)
        else:
            for number in np.unique(here // width):
                some = here[here // width == number]
                self.rows[:, some] = self.rows[:, some].max(axis=1, keepdims=True)
        self.tick(lanes)

    def complete(self, lanes: Lanes, column: int, value: int, fenced: bool = True) -> None:
        """Lanes know that asynchronous operations up to a value have completed; of the async proxy without a fence."""
        rows = self.rows[: 2 if fenced else 1]
        rows[:, lanes, column] = np.maximum(rows[:, lanes, column], value)
