"""Vector clocks: what every thread knows to have happened, and how far it lies behind a proxy fence.

A thread's clock has a column for each thread of its cluster, and one for each mbarrier and for each owner of groups of
asynchronous operations: an operation counts as done by what it completes on, in a phase or group. An access is an
*epoch*: the column of who did it, and that column's value then. It is ordered before a thread iff the thread's clock
holds at least that value: the common case of FastTrack, one comparison.

Each clock has rows: ``ORDERED``, what precedes in base causality order, and ``FENCED``, what does so along a path with
a fence between the generic and the async proxy. Where CTAs of a cluster tell each other by mbarriers there is a third,
of what precedes along a path on which each release and acquire has a scope with both threads in it; ORDERED is then
what precedes whatever the scopes. Source: PTX ISA 9.0, "Memory Consistency Model: Causality Order", "Morally Strong
Operations".

What all threads of a warp know is written down once for the warp: a barrier of thousands changes dozens of clocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..._memory.lazy_zeros import lazy_zeros
from ..._warps.geometry import Geometry
from ..._warps.lanes import WARP, Lanes, as_array, stretches
from .fences import Fences
from .releases import Releases

__all__ = ["CLUSTER", "CTA", "FENCED", "GPU", "ORDERED", "Clocks", "Known", "scope_of"]

ORDERED, FENCED = 0, 1
CTA, CLUSTER, GPU = 0, 1, 2  # scopes; .sys is as .gpu, as there is one
_SCOPES = {"cta": CTA, "cluster": CLUSTER, "gpu": GPU, "sys": GPU, "gl": GPU, "volatile": GPU}
_SPARE_COLUMNS = 64
_ROOM = 8  # times the spare columns: memory that no clock has touched is not resident


def scope_of(opcode: Iterable[str], otherwise: int) -> int:
    """The scope that an instruction names; ``st.volatile`` is ``.sys`` (PTX ISA, "Volatile Operation")."""
    return next((_SCOPES[part] for part in opcode if part in _SCOPES), otherwise)


class Known(NamedTuple):
    """One row of the clocks of all lanes.

    Attributes
    ----------
    lanes, warps : numpy.ndarray of int32, [lane, column], [warp, column]
        What each lane knows, and what all lanes of each warp do: a lane knows both.
    """

    lanes: np.ndarray
    warps: np.ndarray

    @classmethod
    def of(cls, clock: np.ndarray) -> Known:
        """That of one actor, [column], as lane 0's."""
        return cls(clock[None], clock[None])

    def at(self, lanes: Any, columns: Any) -> np.ndarray:
        """What some lanes know of some columns."""
        return np.maximum(self.lanes[lanes, columns], self.warps[lanes // WARP, columns])


class Clocks:
    """The clocks of all resident threads.

    Parameters
    ----------
    geometry : Geometry
    scopes : bool
        Whether there is a row of what precedes by sufficient scopes.

    Attributes
    ----------
    rows : numpy.ndarray of int32, [2 or 3, lane, column]
        What each lane knows: its own column, and what it has learnt without the others of its warp since they met.
    warps : numpy.ndarray of int32, [2 or 3, warp, column]
        What all lanes of a warp know.
    visible : int
        The row of what precedes by sufficient scopes.
    threads : int
        Threads of a cluster: the columns before the others. The column of a lane is its place in its cluster.
    slots : int
        Places of clusters: the columns behind those. They hold times: all that the cluster there had done until then.
    each : numpy.ndarray
        The columns of threads.
    now : int
        The time: how much has been observed.
    started : numpy.ndarray, [slot]
        When the cluster there began.
    fences : Fences
        What threads knew at their last fences.
    releases : Releases
        What those to other clusters cover.
    heard : numpy.ndarray, [lane]
        When each lane last waited for others, or read what others write: it may depend on all before that time.
    """

    def __init__(self, geometry: Geometry, scopes: bool = False):
        self.threads = geometry.cluster_ctas * geometry.lanes_of_cta
        self.slots = geometry.slots
        self.now, self.started = 1, np.zeros(self.slots, np.int64)
        self.heard = np.zeros(geometry.lanes, np.int64)
        self.each = np.arange(self.threads)
        self._first = self.threads + self.slots  # column of what is neither
        self.visible = 2 if scopes else ORDERED
        room = lazy_zeros((2 + scopes, geometry.lanes, self._first + _ROOM * _SPARE_COLUMNS), np.int32)
        self._room, self.rows = room, room[:, :, : self._first + _SPARE_COLUMNS]
        self.warps = np.zeros((2 + scopes, geometry.lanes // WARP, self.rows.shape[2]), np.int32)
        self._apart = np.zeros(geometry.lanes, bool)  # who knows more than its warp, beside its own column
        self._touched = np.zeros(geometry.lanes, bool)  # who has been so since its cluster began
        self._columns: list[dict[object, int]] = [{} for _ in range(geometry.slots)]
        self.releases = Releases(self.slots)
        self.fences = Fences(self.threads, self.slots, self.fitting)
        self._noticed: dict[int, list[np.ndarray | None]] = {}  # by lane: what it knows from its next fence on
        self._together: dict[tuple[int, int], np.ndarray] = {}  # `known_to`, until any clock changes

    def slot_of(self, lane: int) -> int:
        """The place of the lane's cluster among those that are resident."""
        return lane // self.threads

    def start(self, lanes: np.ndarray) -> None:
        """Threads of a new cluster begin, and know nothing."""
        self._together.clear()
        slot = self.slot_of(int(lanes[0]))
        self._columns[slot].clear()
        self.started[slot] = self.heard[lanes] = self.now
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
        """The column of what is no thread: an mbarrier, or the groups of who waits for them."""
        known = self._columns[slot]
        found = known.get(key)
        if found is None:
            found = known[key] = self._first + len(known)
            if found >= self.rows.shape[2]:
                self._widen(2 * self.rows.shape[2] - self._first)
        return found

    def _widen(self, columns: int) -> None:
        more = ((0, 0), (0, 0), (0, columns - self.rows.shape[2]))
        if columns > self._room.shape[2]:
            self._room = np.pad(self.rows, more)
        self.rows, self.warps = self._room[:, :, :columns], np.pad(self.warps, more)

    def key(self, slot: int, column: int) -> object:
        """Of what a column is."""
        return [*self._columns[slot]][column - self._first]

    # ---- what is known ----

    def known(self, row: int) -> Known:
        """ORDERED, FENCED or `visible` of all lanes."""
        return Known(self.rows[row], self.warps[row])

    def all_known(self) -> list[Known]:
        """Each row."""
        return [*map(Known, self.rows, self.warps)]

    def known_to(self, lanes: slice) -> np.ndarray:
        """What lanes side by side know, one or the other: [row, column]. It stays as it is."""
        key = (lanes.start, lanes.stop)
        found = self._together.get(key)
        if found is None:
            found = self._together[key] = self._union(lanes)
        return found

    def known_to_warps(self, lanes: np.ndarray) -> np.ndarray | None:
        """Return the clocks of warps side by side, [row, warp, column], without the columns of their lanes; None if a
        lane knows more than its warp."""
        if self._apart[lanes].any():
            return None
        return self.warps[:, int(lanes[0]) // WARP : int(lanes[-1]) // WARP + 1].copy()

    def _union(self, lanes: Lanes) -> np.ndarray:
        """Return what lanes of one cluster know, one or the other."""
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
        """Return the same for lanes side by side, which takes a fraction of the time."""
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
        """Lanes know what a clock knows: whole warps as such."""
        self._together.clear()
        self.heard[lanes] = self.now
        whole, rest = _whole_warps(lanes)
        for some in stretches(whole) if len(whole) else ():
            np.maximum(self.warps[:, some], clock[:, None], out=self.warps[:, some])
        for some in stretches(rest) if len(rest) else ():
            np.maximum(self.rows[:, some], clock[:, None], out=self.rows[:, some])
            self._apart[some] = self._touched[some] = True

    # ---- what threads do ----

    def own(self, lanes: np.ndarray) -> np.ndarray:
        """The present value of each lane in its own column: the epoch of what it does now."""
        return self.rows[ORDERED, lanes, lanes % self.threads]

    def tick(self, lanes: Lanes) -> None:
        """What the lanes do from now on is not what they did."""
        self._together.clear()
        here = as_array(lanes)
        at = here if len(here) > 1 else int(here[0])  # one lane takes a quarter of the time so
        self.rows[::2, at, at % self.threads] += 1  # not FENCED

    def memory_fence(self, lanes: Lanes, scope: int = GPU) -> None:
        """What precedes it is given by later relaxed operations, and what earlier ones have found now counts."""
        for lane in as_array(lanes).tolist():
            for at, clock in enumerate(self._noticed.get(lane, ())[: scope + 1]):
                if clock is not None:
                    self.acquire(slice(lane, lane + 1), clock)
                    self._noticed[lane][at] = None
            known = self._union(slice(lane, lane + 1))
            self.fences.fence(lane, scope, known, int(known[ORDERED, lane % self.threads]), self.now)
        self.tick(lanes)

    def published(self, lanes: Lanes, scope: int = CLUSTER) -> np.ndarray:
        """What some lanes give to a scope by a relaxed operation: what they knew at their last fences of it."""
        known = self.fences.given(as_array(lanes).tolist(), scope)
        return self.nothing() if known is None else known

    def published_with_others(self, lane: int, scope: int) -> np.ndarray:
        """Return what a lane gives to a scope by a relaxed operation, with the fences of others that it knows of."""
        known = self.known_to(slice(lane, lane + 1))[ORDERED, : self.threads]
        given = self.fences.met(lane, known, scope)
        return self.nothing() if given is None else self.fitting(given)

    def nothing(self) -> np.ndarray:
        """The clock of who knows nothing."""
        return np.zeros((self.rows.shape[0], self.rows.shape[2]), np.int32)

    def told_too_narrowly(self, clock: np.ndarray) -> np.ndarray:
        """What a clock gives across CTAs where a scope ends at one: the ends of asynchronous operations."""
        if self.visible == ORDERED:
            return clock
        clock = clock.copy()
        clock[self.visible, : self.threads] = 0
        return clock

    def fence_global(self, lanes: Lanes) -> None:
        """A proxy fence of global memory, where times say what is behind one: of the own cluster, all until now."""
        self._together.clear()
        here = as_array(lanes)
        times = slice(self.threads, self._first)
        known = np.maximum(self.rows[:, here, times], self.warps[:, here // WARP, times]).max(axis=0)
        known[np.arange(len(here)), here // self.threads] = self.now
        self.rows[FENCED, here, times] = known
        self._apart[here] = self._touched[here] = True

    def notice(self, lanes: Lanes, clock: np.ndarray, scope: int = CLUSTER) -> None:
        """What some lanes find by a relaxed operation, to be known from their next fence of a scope on."""
        self.heard[lanes] = self.now
        for lane in as_array(lanes).tolist():
            noticed = self._noticed.setdefault(lane, [None] * (GPU + 1))
            before = noticed[scope]
            noticed[scope] = clock if before is None else np.maximum(self.fitting(before), self.fitting(clock))

    def noticed(self, lanes: Lanes) -> list[np.ndarray | None]:
        """What one of some lanes or the other has found by relaxed operations and not acquired yet, by scopes."""
        here = as_array(lanes).tolist() if self._noticed else []
        found = [each for lane in here if (each := self._noticed.get(lane))]
        by_scopes: list[np.ndarray | None] = []
        for scope in range(GPU + 1):
            clocks = {id(clock): clock for each in found if (clock := each[scope]) is not None}
            by_scopes.append(np.maximum.reduce([*map(self.fitting, clocks.values())]) if clocks else None)
        return by_scopes

    def notice_together(self, lanes: Lanes, noticed: list[np.ndarray | None]) -> None:
        """Who meets another at a barrier may acquire what that one has found, by a fence of its own.

        Of two fence.sc, as __threadfence() is, one precedes: here that of who released, since what was written behind
        it has been read (PTX ISA, "Fence-SC"). Barriers of a grid are written so, with the fences outside.
        """
        for scope, clock in enumerate(noticed):
            for lane in as_array(lanes).tolist() if clock is not None else ():
                self._noticed.setdefault(lane, [None] * (GPU + 1))[scope] = clock

    def fence_shared(self, lanes: Lanes) -> None:
        """A proxy fence of shared memory: all that precedes it there is behind a fence."""
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
        """What some lanes give to whoever synchronises with them: [row, column]."""
        clock = self._union(lanes)
        self.tick(lanes)
        return clock

    def acquire(self, lanes: Lanes, clock: np.ndarray) -> None:
        """Lanes know what a clock knows."""
        self._learn(as_array(lanes), self.fitting(clock))

    def fitting(self, clock: np.ndarray) -> np.ndarray:
        """A clock from before columns were added."""
        missing = self.rows.shape[2] - clock.shape[-1]
        return np.pad(clock, ((0, 0), (0, missing))) if missing else clock

    def meet(self, lanes: Lanes, width: int) -> None:
        """Each `width` lanes side by side, of which all or some are in `lanes`, know what each of them knows."""
        here = as_array(lanes)
        self.heard[lanes] = self.now
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
        """The lanes of each of some warps know what each of them knows."""
        here = _lanes_of(warps)
        apart = here[self._apart[here]]
        for warp in np.unique(apart // WARP):
            mine = self.rows[:, apart[apart // WARP == warp]].max(axis=1)
            np.maximum(self.warps[:, warp], mine, out=self.warps[:, warp])
        own = here % self.threads
        self.warps[:, here // WARP, own] = np.maximum(self.warps[:, here // WARP, own], self.rows[:, here, own])
        self._apart[here] = False

    def complete(self, lanes: Lanes, column: Any, value: Any, fenced: bool = True) -> None:
        """Asynchronous operations up to a value have completed: those of one column, or of a column for each lane."""
        self._together.clear()
        self.heard[lanes] = self.now
        of, here = slice(None, None, 1 if fenced else 2), as_array(lanes)
        whole, rest = _whole_warps(here) if np.ndim(column) == 0 else (here[:0], here)
        if len(whole):
            self.warps[of, whole, column] = np.maximum(self.warps[of, whole, column], value)
        self.rows[of, rest, column] = np.maximum(self.rows[of, rest, column], value)
        self._apart[rest] = self._touched[rest] = True


def _whole_warps(lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Warps all of whose lanes are there, and the lanes of others."""
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
