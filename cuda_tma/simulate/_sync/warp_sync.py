"""The threads of a warp that wait for each other at an instruction with a mask (``.sync``) or with ``.aligned``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from ...hang import BarrierWait
from .._warps.code import YIELD, Outcome
from .._warps.events import WarpBarrier, WarpTogether
from .._warps.faults import Fault
from .._warps.geometry import Geometry
from .._warps.group import Group
from .._warps.lanes import WARP, WARPGROUP, Lanes, as_array, selected
from .._warps.observe import Events
from .._warps.scheduler import Scheduler
from .._warps.waiting import Parked, Standing, Waiting
from .detours import Detours

__all__ = ["WHOLE", "WarpSync", "check_named", "when_together"]

WHOLE = 0xFFFFFFFF  # The mask 0xFFFFFFFF selects all threads of a warp.
Act = Callable[[Group[Any], Lanes], object]


class WarpSync:
    """The threads that wait at an instruction for the other threads in their mask."""

    def __init__(self, geometry: Geometry, alive: np.ndarray, scheduler: Scheduler, events: Events, detours: Detours):
        self._alive, self._scheduler, self._events, self._detours = alive, scheduler, events, detours
        # The list contains the threads that wait at an instruction for all threads of its mask.
        self._parked: list[Parked] = []
        self._met: list[Parked] = []  # The list contains the threads that wait at bar.warp.sync instructions.
        self._arrived = np.zeros(geometry.lanes, bool)
        self._masks = np.zeros(geometry.lanes, np.uint32)

    def gathered(
        self, group: Group[Any], lanes: Lanes, pc: int, masks: np.ndarray | int, width: int = WARP
    ) -> Lanes | None:
        """Return the lanes whose whole mask has arrived; park the other lanes at `pc` until more lanes arrive.

        Parameters
        ----------
        masks : numpy.ndarray or int
            For each lane, the lanes of its warp that must execute the instruction, except lanes that have ended.
        width : int
            The value 32 for a warp, or 128 for a whole warpgroup, for which the mask is -1.
        """
        if _is_whole(lanes, width):
            return lanes
        here = as_array(lanes)
        absent = self._alive.copy()
        absent[here] = False
        missing = absent.reshape(-1, width)[here // width]
        if width == WARP:
            missing = missing & _bits(masks)
        waits = np.isin(here // width, here[missing.any(axis=1)] // width)
        self._detours.synchronized(here[~waits])
        if not waits.any():
            return lanes
        standing = self._detours.standing(group, pc, _lanes_of(here[waits], missing[waits], width))
        self._parked.append(Parked(group.context, pc, pc, here[waits], standing))
        return selected(here[~waits]) if not waits.all() else None

    def meet(self, group: Group[Any], lanes: Lanes, pc: int, masks: np.ndarray | int) -> Outcome:
        """Execute ``bar.warp.sync``; divergent threads may wait for each other at different instructions."""
        check_named(lanes, masks)
        if _is_whole(lanes, WARP):
            self._events.tell(WarpBarrier(lanes))
            return None
        here = as_array(lanes)
        self._arrived[here], self._masks[here] = True, masks
        standing = self._detours.standing(group, pc, _lanes_of(here, self._missing(here), WARP))
        self._met.append(Parked(group.context, pc, pc + 1, here, standing))
        self._release()
        return YIELD

    def _release(self) -> None:
        """Release the threads for which all threads of their mask have arrived with the same mask."""
        parked, self._met = self._met, []
        done = [~self._missing(p.lanes).any(axis=1) for p in parked]
        if any(goes.any() for goes in done):
            free = np.concatenate([each.lanes[goes] for each, goes in zip(parked, done, strict=True)])
            self._events.tell(WarpBarrier(free, self._masks[free]))
            self._detours.synchronized(free)
        for each, goes in zip(parked, done, strict=True):
            if goes.any():
                self._arrived[each.lanes[goes]] = False
                self._scheduler.add(each.context, each.pc, each.lanes[goes])
            if not goes.all():
                rest = each.lanes[~goes]
                self._met.append(replace(each, lanes=rest, absent=_of_warps(each.absent, rest)))

    def _missing(self, lanes: np.ndarray) -> np.ndarray:
        """Return, for each waiting lane, the lanes of its warp that have not arrived."""
        warps, masks = lanes // WARP, self._masks[lanes]
        with_same_mask = self._masks.reshape(-1, WARP)[warps] == masks[:, None]
        here = self._arrived.reshape(-1, WARP)[warps] & with_same_mask
        return self._alive.reshape(-1, WARP)[warps] & ~here & _bits(masks)

    def take(self, group: Group[Any], lanes: Lanes, pc: int) -> Lanes:
        """Return lanes together with the lanes that wait at the same place, which then no longer wait."""
        same = [p for p in self._parked if p.context is group.context and p.pc == pc]
        if not same:
            return lanes
        self._parked = [p for p in self._parked if p not in same]
        return selected(np.sort(np.concatenate([as_array(lanes), *(p.lanes for p in same)])))

    def exited(self, lanes: np.ndarray) -> None:
        """Let the waiting threads of warps with ended threads try again.

        A thread does not wait for threads that have ended.
        """
        groups = np.unique(lanes // WARPGROUP)
        for parked in [*self._parked]:
            if np.isin(parked.lanes // WARPGROUP, groups).any():
                self._parked.remove(parked)
                self._detours.check(parked, lanes)
                self._scheduler.add(parked.context, parked.pc, parked.lanes)
        for parked in self._met:
            self._detours.check(parked, lanes)
        if self._met:
            self._release()

    def waiting(self) -> Iterator[Waiting]:
        """Yield the waiting threads for the report of a deadlock."""
        for parked in (*self._parked, *self._met):
            missing = "they have not reached this instruction"
            cause = "all threads of the mask must reach the instruction: check the branches before it, and the mask"
            yield Waiting(parked, BarrierWait("other threads of their warps", missing, cause))


class Meeting(Protocol):
    """The interface of a machine for threads of a warp that synchronize."""

    @property
    def geometry(self) -> Geometry: ...

    @property
    def scheduler(self) -> Scheduler: ...

    @property
    def events(self) -> Events: ...

    @property
    def warp_sync(self) -> WarpSync: ...


def when_together(
    group: Group[Meeting], lanes: Lanes, pc: int, act: Act, masks: Any = WHOLE, width: int = WARP
) -> Outcome:
    """Execute an instruction for whole warps, or for all threads of a mask together, after all threads have arrived.

    Parameters
    ----------
    act : callable
        The action that the threads execute together.
    masks : Read or int
    width : int
        The number of lanes that synchronize: 32 or :data:`WARPGROUP`.
    """
    if not isinstance(masks, int):
        check_named(lanes, masks(group, lanes))
    if width != WARP and group.parts.geometry.lanes_of_cta % width:
        raise _no_warpgroup(group.parts.geometry.threads, lanes)
    if _is_whole(lanes, width):
        act(group, lanes)
        _tell(group, lanes, pc, width)
        return None
    sync = group.parts.warp_sync
    here = sync.take(group, lanes, pc)
    found = masks if isinstance(masks, int) else masks(group, here)
    check_named(here, found)
    ready = sync.gathered(group, here, pc, found, width)
    if ready is None:
        return YIELD
    act(group, ready)
    _tell(group, ready, pc, width)
    if ready is lanes:
        return None
    group.parts.scheduler.add(group.context, pc + 1, as_array(ready))
    return YIELD


def _no_warpgroup(threads: int, lanes: Lanes) -> Fault:
    return Fault(
        "fault",
        f"a warpgroup, {WARPGROUP} threads, executes this, but the block has {threads} (PTX ISA, "
        f'"Asynchronous Warpgroup Level Matrix Instructions"): launch a multiple of {WARPGROUP} threads',
        lanes,
    )


def _tell(group: Group[Meeting], lanes: Lanes, pc: int, width: int) -> None:
    """Report an instruction of whole warps to the observer; the instructions of warpgroups have their own events."""
    if width == WARP and group.parts.events.observer is not None:
        group.parts.events.tell(WarpTogether(lanes, group.context.code.instruction(pc)))


def check_named(lanes: Lanes, masks: np.ndarray | int) -> None:
    """Check that each lane is in its own mask; otherwise the result of ``shfl.sync`` is undefined."""
    if isinstance(masks, (int, np.integer)) and masks == WHOLE:
        return
    here = as_array(lanes)
    given = np.broadcast_to(np.asarray(masks, np.uint32), here.shape)
    missing = given >> (here % WARP).astype(np.uint32) & 1 == 0
    if missing.any():
        outside = here[missing]
        raise Fault(
            "barrier-divergence",
            f"lane {int(outside[0]) % WARP} of its warp names the mask 0x{int(given[missing][0]):08x}, which does not "
            "contain that lane: the result is undefined (PTX ISA, membermask). Remedy: compute a mask of all lanes "
            "that reach it, with __ballot_sync() before the branch",
            outside,
        )
    if (given != given[0]).any():
        _check_agreement(here, given)


def _check_agreement(here: np.ndarray, given: np.ndarray) -> None:
    """Check that two lanes have the same mask if each lane is in the mask of the other lane."""
    is_here, masks = (np.zeros((int(here[-1]) // WARP + 1) * WARP, dtype) for dtype in (bool, np.uint32))
    is_here[here], masks[here] = True, given
    is_here, masks = is_here.reshape(-1, WARP)[here // WARP], masks.reshape(-1, WARP)[here // WARP]
    apart = is_here & _bits(given) & (masks != given[:, None])
    if apart.any():
        one, other = (int(each[0]) for each in apart.nonzero())
        raise Fault(
            "barrier-divergence",
            f"lane {int(here[one]) % WARP} of its warp names the mask 0x{int(given[one]):08x}, and lane {other}, which "
            f"that mask contains, names 0x{int(masks[one, other]):08x}: the result is undefined (PTX ISA, membermask: "
            "all lanes of a mask execute the instruction with the same mask). Remedy: pass the same mask in all these "
            "lanes",
            here[apart.any(axis=1)],
        )


def _lanes_of(here: np.ndarray, missing: np.ndarray, width: int) -> np.ndarray:
    """Return the numbers of missing lanes; `missing` is true for [waiting lane, missing lane of its group]."""
    return np.unique((here[:, None] // width * width + np.arange(width))[missing])


def _of_warps(absent: Sequence[Standing], waiting: np.ndarray) -> list[Standing]:
    """Return the places of absent lanes, without lanes outside the warps of the waiting lanes."""
    return [each._replace(lanes=each.lanes[np.isin(each.lanes // WARP, waiting // WARP)]) for each in absent]


def _is_whole(lanes: Lanes, width: int) -> bool:
    """Return whether lanes are whole, adjacent warps or warpgroups."""
    return isinstance(lanes, slice) and lanes.step == 1 and lanes.start % width == 0 and lanes.stop % width == 0


def _bits(masks: np.ndarray | int) -> np.ndarray:
    """Return, for each mask, whether it contains each lane of a warp."""
    return (np.asarray(masks, np.uint32).reshape(-1, 1) >> np.arange(WARP, dtype=np.uint32) & 1).astype(bool)
