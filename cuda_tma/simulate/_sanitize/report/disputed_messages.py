"""Findings about an order that hardware keeps, and that the PTX ISA does not promise."""

from __future__ import annotations

from ..._ptx import Instruction
from ..model.operations import IssueRecord
from ..model.shadow import Conflict
from .message_parts import MessageParts
from .remedies import RULES, WARP_BARRIER, WARPGROUP_BARRIER
from .statements import name_of, place_of

__all__ = ["DisputedMessages"]


class DisputedMessages(MessageParts):
    """Turns what the sanitizer has found into advice; into errors, if it is strict."""

    def together(
        self,
        found: Conflict,
        lane: int,
        mark: IssueRecord | None,
        kind: str,
        now: Instruction,
        by: Instruction,
        strict: bool,
    ) -> None:
        """Report two accesses that an instruction of a whole warp orders, which is no barrier for memory."""
        before = self._collector.instruction(int(found.sites[0]))
        severity = "error" if strict else "advice"
        if self._collector.known("race", severity, id(before), id(now)):
            return
        done = "wrote" if found.before == "write" else "read"
        text = (
            f"{self._who(lane, mark)} {kind}s {self._bytes(found)}, which {self._who_before(lane, found, before)} "
            f"{done}: only {name_of(by)} at {place_of(by.places, by.line)}, which its warp executes together, orders "
            "the two; hardware does so, but it is no barrier for memory"
        )
        beside = ("its warp executes together", by), *self._after(lane, mark)
        self._add("race", severity, text, now, before, lane, RULES["order"], WARP_BARRIER, beside)

    def of_warpgroup(self, found: Conflict, mark: IssueRecord, now: Instruction, strict: bool) -> None:
        """Report a product that reads what not all threads of its warpgroup know to be written."""
        before = self._collector.instruction(int(found.sites[0]))
        severity = "error" if strict else "advice"
        if self._collector.known("race", severity, id(before), id(now)):
            return
        text = (
            f"{self._who(mark.lane, mark)} reads {self._bytes(found)}, which "
            f"{self._who_before(mark.lane, found, before)} wrote: not all threads of the warpgroup have waited for "
            "that, and only wgmma itself, at which the four warps come together, orders the two. An H200 does so (50 "
            "launches with delays of up to 100 us), but wgmma is no barrier for memory"
        )
        self._add("race", severity, text, now, before, mark.lane, RULES["order"], WARPGROUP_BARRIER, mark.after)
