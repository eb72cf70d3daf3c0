"""The clocks that a barrier transfers in each phase from arriving threads to waiting threads."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from ..._sync.warp_sync import WHOLE
from ..._warps.events import (
    Arrive,
    BarrierArrive,
    BarrierComplete,
    ClusterArrive,
    ClusterComplete,
    ClusterWait,
    OfBarrier,
    Poll,
    WarpBarrier,
    WholeBarrier,
    assert_never,
)
from ..._warps.lanes import WARP, Lanes, as_array, count
from .clocks import CTA, Clocks, scope_of

__all__ = ["Barriers", "Phases"]


@dataclass(slots=True)
class Phases:
    """The phases of a barrier at which threads arrive and wait in separate instructions.

    Attributes
    ----------
    pending, ready : numpy.ndarray or None, [row, column]
        The joined clocks of the arrivals in the present phase, and the joined clocks of the completed phases.
    far_pending, far_ready : numpy.ndarray or None
        The joined clocks of arrivals from other CTAs. Only waits of scope ``.cluster`` or wider acquire these clocks.
    completions : int
        The number of completed phases.
    """

    pending: np.ndarray | None = None
    ready: np.ndarray | None = None
    far_pending: np.ndarray | None = None
    far_ready: np.ndarray | None = None
    completions: int = 0

    def arrive(self, clocks: Clocks, clock: np.ndarray) -> None:
        """Join the clock of an arrival into the clock of the present phase."""
        self.pending = clock if self.pending is None else np.maximum(clocks.fitting(self.pending), clock)

    def arrive_from_afar(self, clocks: Clocks, clock: np.ndarray) -> None:
        """Join the clock of an arrival from another CTA, which has scope ``.cluster`` or wider."""
        before = self.far_pending
        self.far_pending = clock if before is None else np.maximum(clocks.fitting(before), clock)
        self.arrive(clocks, clocks.narrowed(clock))

    def complete(self, clocks: Clocks) -> None:
        """End the present phase, so that later waits acquire the clocks of its arrivals."""
        self.completions += 1
        self.ready, self.pending = _joined(clocks, self.ready, self.pending), None
        self.far_ready, self.far_pending = _joined(clocks, self.far_ready, self.far_pending), None

    def complete_operations(self, clocks: Clocks, column: int) -> None:
        """Record in a column of the clocks that the operations of the completed phases are complete."""
        self.ready = clocks.nothing() if self.ready is None else clocks.fitting(self.ready)
        self.ready[:, column] = self.completions

    def sent(self, clocks: Clocks, column: int) -> None:
        """Record that sends from other CTAs are complete.

        In row `visible`, only waits of scope ``.cluster`` or wider acquire the completion of sends.
        """
        self.ready = clocks.nothing() if self.ready is None else clocks.fitting(self.ready)
        self.far_ready = clocks.nothing() if self.far_ready is None else clocks.fitting(self.far_ready)
        self.ready[: clocks.visible, column] = self.far_ready[clocks.visible, column] = self.completions

    def released(self, clocks: Clocks, scope: int) -> np.ndarray | None:
        """Return the clock that a wait with this scope acquires; None if the phase released no clock."""
        if scope == CTA or self.far_ready is None or self.ready is None:
            return self.ready
        return np.maximum(clocks.fitting(self.ready), clocks.fitting(self.far_ready))


class Barriers:
    """The barriers of all resident clusters: ``bar``, ``barrier.cluster``, ``bar.warp.sync`` and mbarriers."""

    def __init__(self, clocks: Clocks, lanes_of_cta: int, pitch: int):
        self._clocks, self._lanes_of_cta, self._pitch = clocks, lanes_of_cta, pitch
        self._of_ctas: dict[tuple[int, int], np.ndarray] = {}
        self._arrived: defaultdict[tuple[int, int], list[np.ndarray]] = defaultdict(list)
        self._of_clusters: defaultdict[int, Phases] = defaultdict(Phases)
        self.mbarriers: defaultdict[int, Phases] = defaultdict(Phases)
        self._sent_to: set[int] = set()  # The set contains the mbarriers that asynchronous stores of other CTAs signal.

    def forget(self, slot: int, ctas: range) -> None:
        """Remove the barriers of the preceding cluster in a slot and of its CTAs."""
        self._of_clusters.pop(slot, None)
        for key in [key for key in self._of_ctas if key[0] in ctas]:
            del self._of_ctas[key]
            self._arrived.pop(key, None)
        for position in [position for position in self.mbarriers if position // self._pitch in ctas]:
            del self.mbarriers[position]
            self._sent_to.discard(position)

    def event(self, event: OfBarrier) -> None:
        """Apply an event at a barrier of threads to the clocks."""
        match event:
            case WarpBarrier():
                self._warp(event)
            case WholeBarrier():
                self._clocks.meet(event.lanes, self._lanes_of_cta)
            case BarrierArrive():
                self._arrive(event)
            case BarrierComplete():
                self._complete(event)
            case ClusterArrive():
                self._cluster_arrive(event)
            case ClusterComplete():
                self._of_clusters[event.slot].complete(self._clocks)
            case ClusterWait():
                self._cluster_wait(event)
            case _:
                assert_never(event)

    # ---- warps and CTAs ----

    def _warp(self, event: WarpBarrier) -> None:
        """Join the clocks of the threads in each mask of a ``bar.warp.sync``."""
        masks = event.masks
        if masks is None:
            self._clocks.meet(event.lanes, WARP)
            return
        here, masks = as_array(event.lanes), np.broadcast_to(masks, (count(event.lanes),))
        if (whole := masks == WHOLE).any():
            self._clocks.meet(event.lanes if whole.all() else here[whole], WARP)
        here, masks = here[~whole], masks[~whole]
        groups = here // WARP << WARP | masks.astype(np.int64)
        for group in np.unique(groups):
            self._clocks.meet(here[groups == group], WARP)

    def _arrive(self, event: BarrierArrive) -> None:
        """Join the clocks of arriving lanes into the clock of their CTA's barrier."""
        key, clock = event.barrier, self._clocks.released(event.lanes)
        known = self._of_ctas.get(key)
        self._of_ctas[key] = clock if known is None else np.maximum(self._clocks.fitting(known), clock)
        self._arrived[key].append(as_array(event.lanes))

    def _complete(self, event: BarrierComplete) -> None:
        """Let the waiting lanes acquire the clocks of all arrivals."""
        barrier = event.barrier
        clock, arrived = self._of_ctas.pop(barrier), self._arrived.pop(barrier)
        if len(lanes := as_array(event.lanes)):
            self._clocks.acquire(lanes, clock)
            self._clocks.notice_together(lanes, self._clocks.noticed(np.concatenate(arrived)))

    # ---- clusters ----

    def _cluster_arrive(self, event: ClusterArrive) -> None:
        """Release the clocks of lanes that arrive; a relaxed arrival releases only their clocks at earlier fences."""
        here = as_array(event.lanes)
        for slot in np.unique(here // self._clocks.threads).tolist():
            mine = here[here // self._clocks.threads == slot]
            give = self._clocks.published if event.relaxed else self._clocks.released
            self._of_clusters[slot].arrive(self._clocks, give(mine))

    def _cluster_wait(self, event: ClusterWait) -> None:
        here = as_array(event.lanes)
        for slot in np.unique(here // self._clocks.threads).tolist():
            ready = self._of_clusters[slot].ready
            if ready is not None:
                self._clocks.acquire(here[here // self._clocks.threads == slot], ready)

    # ---- mbarriers ----

    def mbarrier_arrive(self, event: Arrive) -> None:
        """Join the clocks of arriving threads into the clock of each mbarrier.

        An arrival of scope ``.cta`` from another CTA releases only a part of the clock.
        """
        opcode = event.instruction.opcode
        relaxed, scope = "relaxed" in opcode, scope_of(opcode, CTA)
        give = self._clocks.published if relaxed else self._clocks.released
        for position, lanes in _by_position(event.lanes, event.positions):
            phases, home = self.mbarriers[position], position // self._pitch
            here = as_array(lanes)
            near = here // self._lanes_of_cta == home
            for some, is_near in ((lanes if near.all() else here[near], True), (here[~near], False)):
                if not count(some):
                    continue
                clock = give(some)
                if is_near:
                    phases.arrive(self._clocks, clock)
                elif scope == CTA:
                    phases.arrive(self._clocks, self._clocks.narrowed(clock))
                else:
                    phases.arrive_from_afar(self._clocks, clock)

    def mbarrier_complete(self, position: int, slot: int) -> None:
        """End the present phase of an mbarrier."""
        phases = self.mbarriers[position]
        phases.complete(self._clocks)
        phases.complete_operations(self._clocks, self._clocks.column(slot, ("mbarrier", position)))
        if position in self._sent_to:
            phases.sent(self._clocks, self._clocks.column(slot, ("sent", position)))

    def column_of(self, mark_lane: int, slot: int, position: int, sends: bool) -> int:
        """Return the column that records the completion of an operation which signals an mbarrier.

        If `sends` is true, a thread of another CTA has sent values by ``st.async``, which have a separate column.
        """
        if not sends or mark_lane // self._lanes_of_cta == position // self._pitch:
            return self._clocks.column(slot, ("mbarrier", position))
        self._sent_to.add(position)
        return self._clocks.column(slot, ("sent", position))

    def mbarrier_wait(self, event: Poll) -> None:
        """Let polling lanes acquire the clocks of completed phases.

        After a relaxed poll, the next fence of the lane acquires the clocks.
        """
        opcode = event.instruction.opcode
        take = self._clocks.notice if "relaxed" in opcode else self._clocks.acquire
        scope = scope_of(opcode, CTA)
        done = np.broadcast_to(event.done, event.positions.shape)
        for position, lanes in _by_position(as_array(event.lanes)[done], event.positions[done]):
            released = self.mbarriers[position].released(self._clocks, scope)
            if released is not None:
                take(lanes, released)


def _joined(clocks: Clocks, before: np.ndarray | None, more: np.ndarray | None) -> np.ndarray | None:
    """Return the union of two clocks, each of which may be None."""
    if before is None or more is None:
        return more if before is None else before
    return np.maximum(clocks.fitting(before), clocks.fitting(more))


def _by_position(lanes: Lanes, positions: np.ndarray) -> list[tuple[int, Lanes]]:
    """Return each position and the lanes that access it."""
    if not len(positions):
        return []
    if len({*positions.tolist()}) == 1:
        return [(int(positions[0]), lanes)]
    here = as_array(lanes)
    return [(int(position), here[positions == position]) for position in np.unique(positions)]
