"""Accesses to arrays in global memory, beside what is remembered of them."""

from __future__ import annotations

import numpy as np

from .._lanes import as_array
from .._observe import Access
from .clocks import Clocks
from .global_shadow import GlobalShadow
from .ledger import Ledger
from .operations import Mark
from .words import Words

__all__ = ["InArrays"]


class InArrays:
    """Weak accesses: atomics, and what is said to be volatile, race with nothing here."""

    def __init__(self, shadow: GlobalShadow, clocks: Clocks, ledger: Ledger, words: Words, strict: bool):
        self._shadow, self._clocks, self._ledger = shadow, clocks, ledger
        self._words, self._strict = words, strict

    def by_threads(self, access: Access) -> None:
        """Through the generic proxy."""
        area = self._shadow.area(int(access.positions[0]))
        if area is None:
            return
        units = self._shadow.units(area, access.positions, access.size_bytes)
        who, here = np.repeat(as_array(access.lanes), units.shape[1]), units.ravel()
        site, slots = self._ledger.site(access.instruction), who // self._clocks.threads
        past = self._shadow.past(area, here, self._clocks.rows, who, slots, access.kind, fenced=False)
        if past is not None:
            lane = int(who[past.which])
            self._words.global_race(past, lane, None, access.kind, access.instruction, self._strict)
        epochs = self._clocks.own(who)
        self._shadow.remember(area, here, who % self._clocks.threads, epochs, site, access.kind, slots)

    def by_operation(self, access: Access, mark: Mark, column: int, epoch: int) -> None:
        """Of TMA, and of bulk copies; `column` and `epoch` say when one is complete."""
        area = self._shadow.area(int(access.positions[0]))
        if area is None:
            return
        slot, clock = self._clocks.slot_of(mark.lane), self._clocks.fitting(mark.clock)[:, None]
        units = self._shadow.units(area, access.positions, access.size_bytes).ravel()
        past = self._shadow.past(area, units, clock, 0, slot, access.kind, access.proxy == "async")
        if past is not None:
            self._words.global_race(past, mark.lane, mark, access.kind, access.instruction, self._strict)
        site = self._ledger.site(access.instruction)
        self._shadow.remember(area, units, column, epoch, site, access.kind, slot)
