"""Vector clocks, which contain the accesses that happen before the next access of each thread.

A thread's clock has a column for each thread of its cluster, each resident cluster, each mbarrier, and each owner of
groups of asynchronous operations. An access has an epoch: the value of the column of its thread or operation at the
access. The epoch of an asynchronous operation is the number of the phase or group on which it completes. An access
happens before a thread's next statement if and only if the thread's clock contains at least the epoch in that column.
The check is therefore a single comparison, as in the common case of the FastTrack algorithm.

Each clock has two rows. ``ORDERED`` contains the accesses that precede by the base causality order. ``FENCED`` contains
the accesses that precede along a path with a fence between the generic and the async proxy. If CTAs of a cluster
synchronize by mbarriers, a third row contains the accesses that precede along a path of sufficient scopes: the scope of
each release and acquire on the path includes both threads. ``ORDERED`` then ignores scopes. Source: PTX ISA 9.0,
"Memory Consistency Model: Causality Order", "Morally Strong Operations".

A value that all threads of a warp share is stored once, so a barrier of 1,024 threads changes 32 clocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..._memory.lazy_zeros import lazy_zeros
from ..._warps.geometry import Geometry
from ..._warps.lanes import WARP, Lanes, as_array, stretches
from ._stamps import ClockRows
from .fences import Fences
from .releases import Releases

__all__ = ["CLUSTER", "CTA", "FENCED", "GPU", "ORDERED", "Clocks", "Known", "scope_of"]

ORDERED, FENCED = 0, 1
CTA, CLUSTER, GPU = 0, 1, 2  # The scopes .sys and .gpu have the same value, because the simulator has only one GPU.
_SCOPES = {"cta": CTA, "cluster": CLUSTER, "gpu": GPU, "sys": GPU, "gl": GPU, "volatile": GPU}
_SPARE_COLUMNS = 64
_ROOM = 8  # The array reserves 8 times the spare columns, whose unwritten pages take no memory.


def scope_of(opcode: Iterable[str], otherwise: int) -> int:
    """Return the scope in an opcode, or `otherwise`; ``.volatile`` means ``.sys`` (PTX ISA, "Volatile Operation")."""
    return next((_SCOPES[part] for part in opcode if part in _SCOPES), otherwise)


class Known(NamedTuple):
    """One row, such as ORDERED, of the clocks of all lanes.

    Attributes
    ----------
    lanes, warps : numpy.ndarray of int32, [lane, column], [warp, column]
        The values of each lane and of each warp. The clock of a lane is the maximum of its own values and its warp's.
    """

    lanes: np.ndarray
    warps: np.ndarray

    @classmethod
    def of(cls, clock: np.ndarray) -> Known:
        """Return the clock of one thread or operation, [column], as the row of lane 0."""
        return cls(clock[None], clock[None])

    def at(self, lanes: Any, columns: Any) -> np.ndarray:
        """Return the value of a column in the clock of a lane, for each pair of `lanes` and `columns`."""
        return np.maximum(self.lanes[lanes, columns], self.warps[lanes // WARP, columns])


class Clocks:
    """The clocks of all resident threads.

    Parameters
    ----------
    geometry : Geometry
    scopes : bool
        Whether the clocks have a third row for the accesses that precede by sufficient scopes.

    Attributes
    ----------
    rows : numpy.ndarray of int32, [2 or 3, lane, column]
        The values of each lane: its own column, and the values that the rest of its warp has not acquired.
    warps : numpy.ndarray of int32, [2 or 3, warp, column]
        The values that all lanes of a warp share.
    in_c : ClockRows, for the cells of the shadow
    visible : int
        The index of the row for order by sufficient scopes.
    threads : int
        The number of threads of a cluster. The first columns belong to these threads, in the order of the cluster.
    slots : int
        The number of slots for resident clusters. The column of a slot contains a time that earlier accesses precede.
    each : numpy.ndarray, of the columns of the threads of a cluster
    now : int
        The present time, which is the number of events.
    started : numpy.ndarray, [slot]
        The time at which the cluster in each slot began.
    fences : Fences
        The clocks of threads at their last fences.
    releases : Releases
        The accesses that happen before releases to other clusters.
    last_acquire : numpy.ndarray, [lane]
        The time of the last wait of each lane, or of its last read of shared data, which earlier events may affect.
    """

    def __init__(self, geometry: Geometry, scopes: bool = False):
        self.threads = geometry.cluster_ctas * geometry.lanes_of_cta
        self.slots, self.each = geometry.slots, np.arange(self.threads)
        self.now = 1
        self.started, self.last_acquire = np.zeros(self.slots, np.int64), np.zeros(geometry.lanes, np.int64)
        self._first = self.threads + self.slots  # The columns before `_first` belong to threads and clusters.
        self.visible = 2 if scopes else ORDERED
        room = lazy_zeros((2 + scopes, geometry.lanes, self._first + _ROOM * _SPARE_COLUMNS), np.int32)
        self._room, self.rows = room, room[:, :, : self._first + _SPARE_COLUMNS]
        self.warps = np.zeros((2 + scopes, geometry.lanes // WARP, self.rows.shape[2]), np.int32)
        self.in_c = ClockRows(self.rows, self.warps, self.started, self.visible, self.threads)
        self._apart = np.zeros(geometry.lanes, bool)  # The flag of a lane is true if its clock exceeds its warp's.
        self._touched = np.zeros(geometry.lanes, bool)  # The flag of a lane is true if it was ever true in `_apart`.
        self._columns: list[dict[object, int]] = [{} for _ in range(geometry.slots)]
        self.releases = Releases(self.slots)
        self.fences = Fences(self.threads, self.slots, self.fitting)
        self._noticed: dict[int, list[np.ndarray | None]] = {}  # The next fence of a lane acquires its noticed clocks.
        self._together: dict[tuple[int, int], np.ndarray] = {}  # The cache contains results of `known_to`.

    def slot_of(self, lane: int) -> int:
        """Return the slot of the lane's cluster."""
        return lane // self.threads

    def start(self, lanes: np.ndarray) -> None:
        """Reset the clocks of the threads of a new cluster."""
        self._together.clear()
        slot = self.slot_of(int(lanes[0]))
        self._columns[slot].clear()
        self.started[slot] = self.last_acquire[lanes] = self.now
        self.fences.start(slot)
        first, here = slot * self.threads, slice(slot * self.threads, (slot + 1) * self.threads)
        self.warps[:, here.start // WARP : here.stop // WARP] = 0
        if self.rows[:, first + self.each, self.each].any():
            self.rows[:, first + self.each, self.each] = 0
        if self._touched[here].any():
            self.rows[:, first + np.flatnonzero(self._touched[here])] = 0
            self._touched[here] = self._apart[here] = False
        for lane in lanes.tolist() if self._noticed else ():
            self._noticed.pop(lane, None)
        self.tick(lanes)

    def column(self, slot: int, key: object) -> int:
        """Return the column of a key, which is an mbarrier or an owner of asynchronous operations."""
        known = self._columns[slot]
        if (found := known.get(key)) is None:
            found = known[key] = self._first + len(known)
            if found >= self.rows.shape[2]:
                self._widen(2 * self.rows.shape[2] - self._first)
        return found

    def _widen(self, columns: int) -> None:
        more = ((0, 0), (0, 0), (0, columns - self.rows.shape[2]))
        if columns > self._room.shape[2]:
            self._room = np.pad(self.rows, more)
        self._together.clear()  # The kept unions have a value for each earlier column only.
        self.rows, self.warps = self._room[:, :, :columns], np.pad(self.warps, more)
        self.in_c = ClockRows(self.rows, self.warps, self.started, self.visible, self.threads)

    def key(self, slot: int, column: int) -> object:
        """Return the key to which a column belongs."""
        return [*self._columns[slot]][column - self._first]

    # ---- reading clocks ----

    def known(self, row: int) -> Known:
        """Return one row of the clocks of all lanes: ORDERED, FENCED or `visible`."""
        return Known(self.rows[row], self.warps[row])

    def all_known(self) -> list[Known]:
        """Return all rows of the clocks of all lanes."""
        return [*map(Known, self.rows, self.warps)]

    def known_to(self, lanes: slice) -> np.ndarray:
        """Return the union of the clocks of adjacent lanes, [row, column], as an array that does not change later."""
        key = (lanes.start, lanes.stop)
        found = self._together.get(key)
        if found is None:
            found = self._together[key] = self._union(lanes)
        return found

    def known_to_warps(self, lanes: np.ndarray) -> np.ndarray | None:
        """Return the values of adjacent warps, [row, warp, column]; None if a lane has acquired more than its warp."""
        if self._apart[lanes].any():
            return None
        return self.warps[:, int(lanes[0]) // WARP : int(lanes[-1]) // WARP + 1].copy()

    def _union(self, lanes: Lanes) -> np.ndarray:
        """Return the union of the clocks of some lanes in one cluster."""
        if isinstance(lanes, slice) and lanes.step in (1, None):
            return self._union_side_by_side(lanes)
        lanes = as_array(lanes)
        if (first := int(lanes[0])) + len(lanes) == (end := int(lanes[-1]) + 1):
            return self._union_side_by_side(slice(first, end))
        found = self.warps[:, np.unique(lanes // WARP)].max(axis=1)
        apart = lanes[self._apart[lanes]]
        if len(apart):
            np.maximum(found, self.rows[:, apart].max(axis=1), out=found)
        own = lanes % self.threads
        found[:, own] = np.maximum(found[:, own], self.rows[:, lanes, own])
        return found

    def _union_side_by_side(self, lanes: slice) -> np.ndarray:
        """Return the union of adjacent lanes' clocks, in a fraction of the time of `_union`."""
        size = lanes.stop - lanes.start
        if size == 1:
            return np.maximum(self.rows[:, lanes.start], self.warps[:, lanes.start // WARP])
        found = self.warps[:, lanes.start // WARP : -(-lanes.stop // WARP)].max(axis=1)
        if (apart := self._apart[lanes]).any():
            np.maximum(found, self.rows[:, lanes][:, apart].max(axis=1), out=found)
        first = lanes.start % self.threads
        own = slice(first, first + size)
        np.maximum(found[:, own], self.rows[:, lanes, own].diagonal(axis1=1, axis2=2), out=found[:, own])
        return found

    def _learn(self, lanes: np.ndarray, clock: np.ndarray) -> None:
        """Join a clock into the clocks of some lanes, in one step for each whole warp."""
        self._together.clear()
        self.last_acquire[lanes] = self.now
        whole, rest = _whole_warps(lanes)
        for some in stretches(whole) if len(whole) else ():
            np.maximum(self.warps[:, some], clock[:, None], out=self.warps[:, some])
        for some in stretches(rest) if len(rest) else ():
            np.maximum(self.rows[:, some], clock[:, None], out=self.rows[:, some])
            self._apart[some] = self._touched[some] = True

    # ---- changes by threads ----

    def own(self, lanes: np.ndarray) -> np.ndarray:
        """Return the value of each lane's own column, which is the epoch of its next accesses."""
        return self.rows[ORDERED, lanes, lanes % self.threads]

    def tick(self, lanes: Lanes) -> None:
        """Begin a new epoch in each lane, so that later accesses differ from earlier accesses."""
        self._together.clear()
        here = as_array(lanes)
        at = here if len(here) > 1 else int(here[0])  # Indexing by an integer takes a quarter of the time.
        self.rows[::2, at, at % self.threads] += 1  # The slice omits the row FENCED of the clocks.

    def memory_fence(self, lanes: Lanes, scope: int = GPU) -> None:
        """Apply a fence: acquire the earlier observations, and keep the clock that later relaxed operations release."""
        for lane in as_array(lanes).tolist():
            for at, clock in enumerate(self._noticed.get(lane, ())[: scope + 1]):
                if clock is not None:
                    self.acquire(slice(lane, lane + 1), clock)
                    self._noticed[lane][at] = None
            known = self._union(slice(lane, lane + 1))
            self.fences.fence(lane, scope, known, int(known[ORDERED, lane % self.threads]), self.now)
        self.tick(lanes)

    def published(self, lanes: Lanes, scope: int = CLUSTER) -> np.ndarray:
        """Return the clock that a relaxed operation of lanes releases, which is the clock of their last fences."""
        known = self.fences.given(as_array(lanes).tolist(), scope)
        return self.nothing() if known is None else known

    def published_with_others(self, lane: int, scope: int) -> np.ndarray:
        """Return the clock that a relaxed operation releases: the union of all fences of a scope that precede it."""
        known = self.known_to(slice(lane, lane + 1))[ORDERED, : self.threads]
        given = self.fences.met(lane, known, scope)
        return self.nothing() if given is None else self.fitting(given)

    def nothing(self) -> np.ndarray:
        """Return an empty clock."""
        return np.zeros((self.rows.shape[0], self.rows.shape[2]), np.int32)

    def narrowed(self, clock: np.ndarray) -> np.ndarray:
        """Return the part of a clock that scope ``.cta`` transfers to another CTA: no threads in row `visible`."""
        if self.visible == ORDERED:
            return clock
        clock = clock.copy()
        clock[self.visible, : self.threads] = 0
        return clock

    def fence_global(self, lanes: Lanes) -> None:
        """Apply a proxy fence of global memory: copy the times of all clusters to FENCED, and set its own to now."""
        self._together.clear()
        here = as_array(lanes)
        times = slice(self.threads, self._first)
        known = np.maximum(self.rows[:, here, times], self.warps[:, here // WARP, times]).max(axis=0)
        known[np.arange(len(here)), here // self.threads] = self.now
        self.rows[FENCED, here, times] = known
        self._apart[here] = self._touched[here] = True

    def notice(self, lanes: Lanes, clock: np.ndarray, scope: int = CLUSTER) -> None:
        """Keep a clock from a relaxed operation of lanes, which their next fence of at least `scope` acquires."""
        self.last_acquire[lanes] = self.now
        for lane in as_array(lanes).tolist():
            noticed = self._noticed.setdefault(lane, [None] * (GPU + 1))
            before = noticed[scope]
            noticed[scope] = clock if before is None else np.maximum(self.fitting(before), self.fitting(clock))

    def noticed(self, lanes: Lanes) -> list[np.ndarray | None]:
        """Return, for each scope, the union of the clocks that lanes have observed but not yet acquired by a fence."""
        here = as_array(lanes).tolist() if self._noticed else []
        found = [each for lane in here if (each := self._noticed.get(lane))]
        by_scopes: list[np.ndarray | None] = []
        for scope in range(GPU + 1):
            clocks = {id(clock): clock for each in found if (clock := each[scope]) is not None}
            by_scopes.append(np.maximum.reduce([*map(self.fitting, clocks.values())]) if clocks else None)
        return by_scopes

    def notice_together(self, lanes: Lanes, noticed: list[np.ndarray | None]) -> None:
        """At a barrier, pass the observations of each lane to the other lanes, which acquire them by a fence.

        Any two fence.sc, such as __threadfence(), are ordered. The fence of the releasing thread is the first, because
        another thread has observed a write after this fence (PTX ISA, "Fence-SC"). Some grid barriers contain no fence.
        """
        for scope, clock in enumerate(noticed):
            for lane in as_array(lanes).tolist() if clock is not None else ():
                self._noticed.setdefault(lane, [None] * (GPU + 1))[scope] = clock

    def fence_shared(self, lanes: Lanes) -> None:
        """Apply a proxy fence of shared memory: join row ORDERED into row FENCED, except the times of clusters."""
        here = as_array(lanes)
        whole, rest = _whole_warps(here)
        apart = self._apart.reshape(-1, WARP)[whole].any(axis=1)
        rest = np.concatenate([rest, _lanes_of(whole[apart])])
        whole = whole[~apart]
        for columns in (slice(self.threads), slice(self._first, None)):
            fenced = np.maximum(self.warps[FENCED, whole, columns], self.warps[ORDERED, whole, columns])
            self.warps[FENCED, whole, columns] = fenced
            for some in stretches(np.sort(rest)) if len(rest) else ():
                fenced, numbers = self.rows[FENCED, some, columns], np.arange(some.start, some.stop) // WARP
                np.maximum(fenced, self.rows[ORDERED, some, columns], out=fenced)
                np.maximum(fenced, self.warps[ORDERED, numbers, columns], out=fenced)
        self.rows[FENCED, here, here % self.threads] = self.own(here)
        self._apart[rest] = self._touched[rest] = True
        self.tick(lanes)

    def released(self, lanes: Lanes) -> np.ndarray:
        """Return the clock that lanes release, [row, column], and begin a new epoch in each lane."""
        clock = self._union(lanes)
        self.tick(lanes)
        return clock

    def acquire(self, lanes: Lanes, clock: np.ndarray) -> None:
        """Join a clock into the clocks of some lanes."""
        self._learn(as_array(lanes), self.fitting(clock))

    def fitting(self, clock: np.ndarray) -> np.ndarray:
        """Return a clock with a value for each present column, which is 0 for columns newer than the clock."""
        missing = self.rows.shape[2] - clock.shape[-1]
        return np.pad(clock, ((0, 0), (0, missing))) if missing else clock

    def meet(self, lanes: Lanes, width: int) -> None:
        """Join the clocks of the lanes that belong to the same group of `width` adjacent lanes."""
        here = as_array(lanes)
        self.last_acquire[lanes] = self.now
        for number in np.unique(here // width).tolist() if self._noticed else ():
            some = here[here // width == number]
            self.notice_together(some, self.noticed(some))
        whole, rest = _whole_warps(here) if width == WARP else (here[:0], here)
        if len(whole):
            self._meet_in_warps(whole)
        for number in np.unique(rest // width):
            some = rest[rest // width == number]
            self._learn(some, self._union(some))
            all_of = _lanes_of(_whole_warps(some)[0])
            self._apart[all_of] = False
        self.tick(lanes)

    def _meet_in_warps(self, warps: np.ndarray) -> None:
        """Join the clocks of all lanes of a warp, for each of several warps."""
        here = _lanes_of(warps)
        apart = here[self._apart[here]]
        for warp in np.unique(apart // WARP):
            mine = self.rows[:, apart[apart // WARP == warp]].max(axis=1)
            np.maximum(self.warps[:, warp], mine, out=self.warps[:, warp])
        own = here % self.threads
        self.warps[:, here // WARP, own] = np.maximum(self.warps[:, here // WARP, own], self.rows[:, here, own])
        self._apart[here] = False

    def complete(self, lanes: Lanes, column: Any, value: Any, fenced: bool = True) -> None:
        """Record that operations are complete up to a value, in one column for all lanes or in one for each lane."""
        self._together.clear()
        self.last_acquire[lanes] = self.now
        of, here = slice(None, None, 1 if fenced else 2), as_array(lanes)
        whole, rest = _whole_warps(here) if np.ndim(column) == 0 else (here[:0], here)
        if len(whole):
            self.warps[of, whole, column] = np.maximum(self.warps[of, whole, column], value)
        self.rows[of, rest, column] = np.maximum(self.rows[of, rest, column], value)
        self._apart[rest] = self._touched[rest] = True


def _whole_warps(lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the warps whose 32 lanes are all in `lanes`, and the lanes of other warps."""
    if len(lanes) < WARP:
        return lanes[:0], lanes
    first, size = int(lanes[0]), len(lanes)
    if first % WARP == size % WARP == 0 and lanes[-1] - first == size - 1:
        return np.arange(first // WARP, (first + size) // WARP), lanes[:0]
    numbers = lanes // WARP
    found, counts = np.unique(numbers, return_counts=True)
    whole = found[counts == WARP]
    return whole, lanes[:0] if len(whole) == len(found) else lanes[~np.isin(numbers, whole)]


def _lanes_of(warps: np.ndarray) -> np.ndarray:
    return (warps[:, None] * WARP + np.arange(WARP)).ravel()
