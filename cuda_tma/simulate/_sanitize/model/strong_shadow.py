"""The shadow of strong accesses to global memory, which are atomics, reductions, volatile and relaxed accesses.

A strong access and a weak access to the same bytes race unless they are ordered. Two strong accesses race unless they
are ordered or *morally strong*: the scope of each includes the other thread, and both access the same bytes. A strong
read or an atomic operation observes the last strong write of its bytes, so that write precedes the statements after the
read. Source: PTX ISA 9.0, "Memory Consistency Model": "Conflict and Data-races", "Morally Strong Operations",
"Causality Order".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from .areas import WRITES, Area, AreaCells, PriorAccess, Row, StrongRows
from .clocks import CLUSTER, CTA, GPU, ORDERED, Clocks, Known
from .global_shadow import SLOT_BITS, SLOT_MASK, GlobalShadow
from .shadow import COLUMN_BITS, stamps_of

__all__ = ["ANY_BYTES", "StrongShadow", "shapes_of"]

# A table of 4,093 entries contains the times of observations, and the address of a location selects its entry.
_OBSERVED = 4093
_SCOPE_BITS, _OFFSET_BITS = 2, 8
# The shape of a TMA reduction contains only its scope, because the reduction updates each element separately at scope
# .gpu.
ANY_BYTES = GPU


def shapes_of(scope: int, each: int, count: int) -> np.ndarray:
    """Return the shape of each accessed unit of memory.

    A shape contains the scope, the number of units in an access, and the place of the unit in the access.
    """
    offsets = np.tile(np.arange(each, dtype=np.int32), count)
    return each << _SCOPE_BITS + _OFFSET_BITS | offsets << _SCOPE_BITS | scope


class StrongShadow:
    """The strong accesses to all arrays.

    Parameters
    ----------
    shadow : GlobalShadow
    clocks : Clocks
    lanes_of_cta : int
    """

    def __init__(self, shadow: GlobalShadow, clocks: Clocks, lanes_of_cta: int):
        self._shadow, self._clocks, self._lanes_of_cta = shadow, clocks, lanes_of_cta
        # The array contains the time at which each cluster last observed a location.
        self._seen = np.zeros((clocks.slots, _OBSERVED), np.int64)

    def before_weak(
        self,
        these: AreaCells,
        known: list[Known],
        kind: str,
        fenced: bool = False,
    ) -> PriorAccess | None:
        """Return the first strong access that does not precede the present weak accesses, or lacks a required fence.

        Parameters
        ----------
        known : list of Known
            All rows of the clocks of the weak accesses.
        """
        if these.area.strong is None:
            return None
        for place in range(WRITES, -1, -1) if kind != "read" else (WRITES,):
            row = these.area.strong.row(place)
            excuse = partial(self._is_observed, these, row, known) if place == WRITES else None
            past = self._late(these, row, known, fenced, excuse)
            if past is not None:
                return past
        return None

    def before_strong(self, these: AreaCells, known: list[Known]) -> PriorAccess | None:
        """Return the first weak access that the present strong accesses neither follow nor have observed."""
        for row in these.area.rows("write"):
            past = self._late(these, row, known, False, self._is_noticed(these, row))
            if past is not None:
                return past
        return None

    def apart(
        self, these: AreaCells, known: list[Known], shapes: np.ndarray, kind: str
    ) -> tuple[PriorAccess, str] | None:
        """Return a strong write that is neither ordered nor morally strong with the present strong accesses.

        The second value is the condition that fails: ``"scope"`` or ``"size"``.
        """
        if these.area.strong is None:
            return None
        row = these.area.strong.row(WRITES)
        stamps = row.stamps[these.units]
        if not stamps.any():
            return None
        theirs = these.area.strong.shapes[these.units]
        reaches, same_bytes = self._in_scope(these, row, shapes, theirs), _fits(shapes, theirs, kind)
        which = np.flatnonzero((stamps != 0) & ~(reaches & same_bytes))
        if not len(which):
            return None
        some = these.only(which)
        past = self._late(some, row, known, False, self._is_noticed(some, row))
        if past is None:
            return None
        at = int(which[past.which])
        return past._replace(which=at), "size" if reaches[at] else "scope"

    def apart_at_once(self, these: AreaCells, scope: int) -> PriorAccess | None:
        """Return the last strong write of a step if the scope of another strong write in the step excludes it."""
        if scope == GPU or these.area.strong is None:
            return None
        row, width = these.area.strong.row(WRITES), self._clocks.threads if scope == CLUSTER else self._lanes_of_cta
        slots, columns = (
            row.moments[these.units] & SLOT_MASK,
            row.stamps[these.units] & (1 << COLUMN_BITS) - 1,
        )
        last = slots * self._clocks.threads + columns
        out = np.flatnonzero(these.who // width != last // width)
        if not len(out):
            return None
        at = int(out[0])
        return self._shadow.described(these.area, row, int(these.units[at]), at, int(these.slots[at]), False)

    def remember(
        self, these: AreaCells, columns: np.ndarray | int, epochs: np.ndarray | int, site: int, kind: str,
        shapes: np.ndarray | int,
    ) -> None:  # fmt: skip
        """Record strong accesses in the shadow cells of an array."""
        area, units, slots, now = these.area, these.units, these.slots, self._clocks.now
        if area.strong is None:
            area.strong = StrongRows(area.cells.values.shape[1])
        rows, places = area.strong, slots & 1 if kind == "read" else WRITES
        if kind != "write":
            at = self._locations(area, units)
            late = np.ones(len(units), bool)
            if kind == "read":  # Only the first observation of a write is recorded.
                seen = self._seen[slots, at]
                late = (seen < rows.cells.moments[WRITES, units] >> SLOT_BITS) | (seen < self._clocks.started[slots])
            self._seen[slots[late], at[late]] = now
        rows.cells.values[places, units] = stamps_of(columns, epochs)
        rows.cells.moments[places, units] = now << SLOT_BITS | slots
        rows.cells.notes[places, units] = site << 1
        if kind != "read":
            rows.shapes[units] = shapes

    def _late(
        self,
        these: AreaCells,
        row: Row,
        known: list[Known],
        fenced: bool,
        excuse: Callable[[np.ndarray], np.ndarray] | None,
    ) -> PriorAccess | None:
        area, units, who, slots = these
        return self._shadow.late(area, row, units, known, who, slots, fenced, excuse)

    def _locations(self, area: Area, units: np.ndarray) -> np.ndarray:
        return (units + area.start) % _OBSERVED

    def _is_observed(self, these: AreaCells, row: Row, known: list[Known], which: np.ndarray) -> np.ndarray:
        """Return, for each strong write, whether the present cluster, or a cluster with a preceding release, observed
        the write.

        The threads of the present cluster are not distinguished, so the check may miss a race.
        """
        units, who, slots = these.units[which], these.who[which], these.slots[which]
        at, of_gpu = self._locations(these.area, units), known[self._clocks.visible]
        times, by = row.moments[units] >> SLOT_BITS, row.moments[units] & SLOT_MASK
        found = np.zeros(len(which), bool)
        for slot in range(self._clocks.slots):
            seen = self._seen[slot, at]
            told = of_gpu.at(who, self._clocks.threads + slot) >= seen
            told |= (slots == slot) & (seen >= self._clocks.started[slot])
            found |= ((seen > times) | (seen == times) & (by == slot)) & told
        return found

    def _is_noticed(self, these: AreaCells, row: Row) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function that decides which accesses a relaxed read without a later fence has observed.

        A strong access after a relaxed read is not performed before the read. The example in the CUDA C++ Programming
        Guide, "Memory Fence Functions", accordingly has a fence only after its writes.
        """

        def excuse(which: np.ndarray) -> np.ndarray:
            found, lanes = np.zeros(len(which), bool), these.who[which]
            for lane in np.unique(lanes).tolist():
                for clock in self._clocks.noticed(slice(lane, lane + 1)):
                    if clock is not None:
                        some = which[lanes == lane]
                        told, units = Known.of(self._clocks.fitting(clock)[ORDERED]), these.units[some]
                        found[lanes == lane] |= self._shadow.precedes(
                            told, 0, row.stamps[units], row.moments[units], these.slots[some]
                        )
            return found

        return excuse

    def _in_scope(self, these: AreaCells, row: Row, shapes: np.ndarray, theirs: np.ndarray) -> np.ndarray:
        """Return, for each access, whether its scope and that of the preceding strong write include both threads."""
        moments, columns = row.moments[these.units], row.stamps[these.units] & (1 << COLUMN_BITS) - 1
        here = (moments & SLOT_MASK == these.slots) & (moments >> SLOT_BITS >= self._clocks.started[these.slots])
        same_cta = columns // self._lanes_of_cta == these.who % self._clocks.threads // self._lanes_of_cta
        # The column of an asynchronous operation does not belong to a CTA.
        same_cta = here & (same_cta | (columns >= self._clocks.threads))
        needed = np.where(same_cta, CTA, np.where(here, CLUSTER, GPU))
        mask = (1 << _SCOPE_BITS) - 1
        return (shapes & mask >= needed) & (theirs & mask >= needed)


def _fits(shapes: np.ndarray, theirs: np.ndarray, kind: str) -> np.ndarray:
    """Return, for each access, whether it accesses the bytes of the preceding write; a read may access a part."""
    sizes, their_sizes = shapes >> _SCOPE_BITS + _OFFSET_BITS, theirs >> _SCOPE_BITS + _OFFSET_BITS
    mask = (1 << _OFFSET_BITS) - 1
    offsets, their_offsets = shapes >> _SCOPE_BITS & mask, theirs >> _SCOPE_BITS & mask
    fits = (offsets == their_offsets) & (sizes == their_sizes)
    if kind == "read":
        fits |= (offsets <= their_offsets) & (sizes - offsets <= their_sizes - their_offsets)
    return fits | (sizes == 0) | (their_sizes == 0)
