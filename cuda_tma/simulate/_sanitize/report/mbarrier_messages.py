"""Findings about mbarriers, in words."""

from __future__ import annotations

from ..._ptx import Instruction
from ..model.shadow import Conflict
from .disputed_messages import DisputedMessages
from .remedies import RULES
from .statements import place_of

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

    def arrival_too_early(self, position: int, lane: int, now: Instruction, before: Instruction, phase: int) -> None:
        """Report an arrival that may be one too many for the phase before the one that it counts for."""
        if self._collector.known("barrier-use", "error", id(before), id(now)):
            return
        made = self._parts.mbarriers.known(position)
        count = f"of its {made.count} arrivals" if made is not None else "of its arrivals"
        text = (
            f"{self._thread(lane)} arrives at {self._mbarrier(position)} for its phase {phase}, and nothing orders "
            f"that after the end of phase {phase - 1}, {count} one is at {place_of(before.places, before.line)}: in "
            "another order this arrival counts for that phase, as one more than mbarrier.init states"
        )
        remedy = (
            "let the thread wait for a phase (mbarrier.try_wait) before it arrives for the next one; or state in "
            "mbarrier.init as many arrivals as come in a phase"
        )
        after = self._after(lane, None)
        self._add("barrier-use", "error", text, now, before, lane, RULES["arrivals"], remedy, after)
