"""The clocks that strong accesses, such as atomics, transfer from a release to an acquire of the same location.

The scope of the release and the scope of the acquire must each include both threads (PTX ISA 9.0, "Morally Strong
Operations"). With scope ``.cta``, both threads must be in one CTA; with scope ``.cluster``, both threads must be in one
cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from ..._ptx import Instruction
from ..._warps.lanes import Lanes, as_array
from .clocks import CLUSTER, CTA, FENCED, GPU, ORDERED, Clocks, scope_of

__all__ = ["Locations"]


@dataclass(slots=True)
class _Location:
    """The clocks that threads have released at one location.

    Attributes
    ----------
    of_ctas, of_clusters : dict
        The start of the cluster, and the union of the released clocks, for each CTA or for the slot of each cluster.
        `of_clusters` contains only releases of scope ``.cluster`` or wider.
    known, at : numpy.ndarray, [row, slot]
        The times of other clusters that releases of scope ``.gpu`` contain, and the time of each cluster's last release
        of this scope.
    """

    known: np.ndarray
    at: np.ndarray
    of_ctas: dict[int, tuple[int, np.ndarray]] = field(default_factory=dict)
    of_clusters: dict[int, tuple[int, np.ndarray]] = field(default_factory=dict)


class Locations:
    """All locations at which threads have released their clocks, by state space and address."""

    def __init__(self, clocks: Clocks, lanes_of_cta: int):
        self._clocks, self._lanes_of_cta = clocks, lanes_of_cta
        self._found: dict[tuple[str, int], _Location] = {}

    def sync(self, space: str, lanes: Lanes, addresses: np.ndarray, instruction: Instruction) -> None:
        """Apply the strong accesses of an instruction in sequence; each atomic acquires, and then releases."""
        opcode, (acquires, releases) = instruction.opcode[0], _semantics(instruction.opcode)
        if opcode not in ("st", "red"):
            self._clocks.last_acquire[lanes] = self._clocks.now
        fences = self._clocks.fences
        if not (self._found or releases or fences.any):
            return
        here = as_array(lanes)
        if not (self._found or releases or fences.executed(here.tolist())):
            return
        scope = scope_of(instruction.opcode, GPU)
        for address in sorted({*addresses.tolist()}):
            key, some = (space, address), here[addresses == address]
            if opcode in ("ld", "ldu"):
                self._acquire(key, some, scope, acquires)
                continue
            rest = [*some.tolist()] if releases else fences.executed(some.tolist())
            if opcode == "st" or not rest:
                for lane in rest:
                    self._release(key, lane, scope, releases)
                if opcode != "st":
                    self._acquire(key, some, scope, acquires)
                continue
            self._in_turn(key, some, {*rest}, scope, acquires, releases)

    def gave(self, slot: int, column: int, epoch: int) -> bool:
        """Return whether the cluster in a slot has released an epoch at scope ``.cluster`` or wider."""
        started = int(self._clocks.started[slot])
        given = (_since(started, found.of_clusters.get(slot)) for found in self._found.values())
        return any(clock is not None and clock[ORDERED, column] >= epoch for clock in given)

    def _in_turn(
        self, key: tuple[str, int], lanes: np.ndarray, giving: set[int], scope: int, acquires: bool, releases: bool
    ) -> None:
        """Let each atomic acquire the releases of earlier atomics, including those of the same instruction."""
        for lane in lanes.tolist():
            self._acquire(key, np.array([lane]), scope, acquires)
            if lane in giving:
                self._release(key, lane, scope, releases)

    def _acquire(self, key: tuple[str, int], lanes: np.ndarray, scope: int, strong: bool) -> None:
        found = self._found.get(key)
        if found is None:
            return
        ctas = lanes // self._lanes_of_cta
        for cta in np.unique(ctas).tolist():
            some = lanes[ctas == cta]
            slot = self._clocks.slot_of(int(some[0]))
            for level, clock in enumerate(self._acquired(found, cta, slot)[: scope + 1]):
                if clock is not None:
                    if strong:
                        self._clocks.acquire(some, clock)
                    else:
                        self._clocks.notice(some, clock, level)

    def _acquired(self, found: _Location, cta: int, slot: int) -> list[np.ndarray | None]:
        """Return the clocks that a CTA acquires at a location, from itself, its cluster and other clusters."""
        clocks, started = self._clocks, int(self._clocks.started[slot])
        near, of_cluster = _since(started, found.of_ctas.get(cta)), _since(started, found.of_clusters.get(slot))
        others = np.maximum(found.known, found.at)
        if found.at[ORDERED, slot] >= started:  # For CTAs of its own cluster, a CTA has exact clocks.
            others[:, slot] = found.known[:, slot]
        far = clocks.nothing()
        far[:, clocks.threads : clocks.threads + clocks.slots] = others
        return [near, of_cluster, far]

    def _release(self, key: tuple[str, int], lane: int, scope: int, strong: bool) -> None:
        clocks, lanes = self._clocks, slice(lane, lane + 1)
        slot = clocks.slot_of(lane)
        started = int(clocks.started[slot])
        if strong:
            gives = [clocks.released(lanes)] * (GPU + 1)
        else:
            gives = [clocks.published_with_others(lane, given) for given in range(GPU + 1)]
        if not gives[CTA].any():
            return
        found = self._found.get(key)
        if found is None:
            nothing = np.zeros((len(clocks.rows), clocks.slots), np.int32)
            found = self._found[key] = _Location(nothing, nothing.copy())
        self._keep(found.of_ctas, lane // self._lanes_of_cta, started, gives[CTA])
        if scope >= CLUSTER:
            self._keep(found.of_clusters, slot, started, gives[CLUSTER])
        if scope < GPU or not gives[GPU].any():
            return
        known = gives[GPU][:, clocks.threads : clocks.threads + clocks.slots]
        np.maximum(found.known, known, out=found.known)
        # A time before the start of the current cluster belongs to the preceding cluster in the same slot.
        if found.at[ORDERED, slot] < started:
            np.maximum(found.known[:, slot], found.at[:, slot], out=found.known[:, slot])
        until = clocks.now if strong else clocks.fences.until(slot)
        found.at[:, slot] = np.maximum(found.at[:, slot], until)
        clocks.releases.add(slot, started, until, gives[GPU][ORDERED, : clocks.threads].copy())
        found.at[FENCED, slot] = known[FENCED, slot]

    def _keep(self, of: dict[int, tuple[int, np.ndarray]], place: int, started: int, clock: np.ndarray) -> None:
        before = _since(started, of.get(place))
        of[place] = started, clock.copy() if before is None else np.maximum(self._clocks.fitting(before), clock)


@lru_cache(maxsize=1024)
def _semantics(opcode: tuple[str, ...]) -> tuple[bool, bool]:
    """Return two booleans: whether an instruction acquires, and whether it releases."""
    return not {"acquire", "acq_rel"}.isdisjoint(opcode), not {"release", "acq_rel"}.isdisjoint(opcode)


def _since(started: int, kept: tuple[int, np.ndarray] | None) -> np.ndarray | None:
    """Return a kept clock if the cluster that released it still runs; otherwise None."""
    return kept[1] if kept is not None and kept[0] == started else None
