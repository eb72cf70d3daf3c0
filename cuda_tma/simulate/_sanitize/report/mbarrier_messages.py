"""Findings about mbarriers, in words."""

from __future__ import annotations

from ..._ptx import Instruction
from ..model.shadow import Conflict
from .disputed_messages import DisputedMessages
from .remedies import RULES

__all__ = ["MbarrierMessages"]

_INIT, _INVAL = ("mbarrier", "init"), ("mbarrier", "inval")


class MbarrierMessages(DisputedMessages):
    """Turns what the sanitizer has found of mbarriers into findings."""

    def _barrier_race(self, before: Instruction, now: Instruction, lane: int, found: Conflict) -> None:
        if self._collector.known("barrier-use", "error", id(before), id(now)):
            return
        where, rule = self._bytes(found), "init"
        if before.opcode[:2] == _INIT:
            name = self._mbarrier(int(found.units[0]) * self._unit_bytes)
            text = f"{self._who(lane, None)} uses the mbarrier {name}, and nothing orders that after its mbarrier.init"
            remedy = "put __syncthreads(), or in a cluster its barrier, between mbarrier.init and the first use"
        elif now.opcode[:2] == _INIT:
            text = f"mbarrier.init of {where}, which others may still use: nothing orders it after them"
            remedy = "initialise each mbarrier once, or meet at a barrier before it is initialised again"
        elif now.opcode[:2] == _INVAL:
            text = (
                f"{self._who(lane, None)} invalidates {where}, and nothing orders that after the use by "
                f"{self._who_before(lane, found, before)}"
            )
            remedy = "put __syncthreads() between the last use of the mbarrier by any thread and mbarrier.inval"
            rule = "inval"
        else:
            text = f"{self._who(lane, None)} uses {where} as memory, where an mbarrier is"
            remedy = "reach an mbarrier by mbarrier instructions alone, and mbarrier.inval it first"
        after = (*self._after(lane, None), self._history.fence_of_inits)
        self._add("barrier-use", "error", text, now, before, lane, RULES[rule], remedy, after)
