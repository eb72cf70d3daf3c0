"""What atomics, and other strong accesses, carry from who releases a location to who acquires it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .._lanes import Lanes, as_array
from ..ptx import Instruction
from .clocks import FENCED, ORDERED, Clocks

__all__ = ["Locations"]


@dataclass(slots=True)
class _Location:
    """Clocks that were released here.

    Attributes
    ----------
    clocks : dict
        Of each cluster, by place and beginning: what its threads knew.
    known, at : numpy.ndarray, [2, slot]
        What those who released here knew of other clusters; and until when their own has been released.
    """

    known: np.ndarray
    at: np.ndarray
    clocks: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)


class Locations:
    """Those that somebody has released, by space and address."""

    def __init__(self, clocks: Clocks):
        self._clocks = clocks
        self._found: dict[tuple[str, int], _Location] = {}

    def sync(self, space: str, lanes: Lanes, addresses: np.ndarray, instruction: Instruction) -> None:
        """Strong accesses of an instruction: first they acquire, then they release."""
        parts = {*instruction.opcode}
        opcode = instruction.opcode[0]
        acquires, releases = bool(parts & {"acquire", "acq_rel"}), bool(parts & {"release", "acq_rel"})
        if not (self._found or releases or self._clocks.has_published):
            return
        here = as_array(lanes)
        for address in np.unique(addresses).tolist():
            some = here[addresses == address]
            if opcode != "st":
                self._acquire((space, address), some, acquires)
            if opcode not in ("ld", "ldu"):
                self._release((space, address), some, releases)

    def _acquire(self, key: tuple[str, int], lanes: np.ndarray, strong: bool) -> None:
        found = self._found.get(key)
        if found is None:
            return
        clocks = self._clocks
        slot = clocks.slot_of(int(lanes[0]))
        clock = clocks.nothing()
        mine = found.clocks.get((slot, int(clocks.started[slot])))
        if mine is not None:
            np.maximum(clock, clocks.fitting(mine), out=clock)
        others = found.at.copy()
        others[:, slot] = 0
        times = clock[:, clocks.threads : clocks.threads + others.shape[1]]
        np.maximum(times, np.maximum(found.known, others), out=times)
        (clocks.acquire if strong else clocks.notice)(lanes, clock)

    def _release(self, key: tuple[str, int], lanes: np.ndarray, strong: bool) -> None:
        clocks = self._clocks
        clock = clocks.released(lanes) if strong else clocks.published(lanes)
        if not clock.any():
            return
        slot = clocks.slot_of(int(lanes[0]))
        known = clock[:, clocks.threads : clocks.threads + clocks.slots]
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = _Location(np.zeros_like(known), np.zeros_like(known))
        np.maximum(found.known, known, out=found.known)
        found.at[ORDERED, slot], found.at[FENCED, slot] = clocks.now, known[FENCED, slot]
        cluster = (slot, int(clocks.started[slot]))
        before = found.clocks.get(cluster)
        found.clocks[cluster] = clock.copy() if before is None else np.maximum(clocks.fitting(before), clock)
