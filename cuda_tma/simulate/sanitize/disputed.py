"""Findings about an order that hardware keeps, and that the PTX ISA does not promise."""

from __future__ import annotations

from ..ptx import Instruction
from .operations import Mark
from .phrases import Phrases
from .remedies import RULES, WARP_BARRIER
from .shadow import Conflict
from .statements import name_of, place_of

__all__ = ["Disputed"]


class Disputed(Phrases):
    """Turns what the sanitizer has found into advice; into errors, if it is strict."""

    def together(
        self, found: Conflict, lane: int, mark: Mark | None, kind: str, now: Instruction, by: Instruction, strict: bool
    ) -> None:
        """Report two accesses that an instruction of a whole warp orders, which is no barrier for memory."""
        before = self._ledger.instruction(int(found.sites[0]))
        severity = "error" if strict else "advice"
        if self._ledger.known("race", severity, id(before), id(now)):
            return
        done = "wrote" if found.before == "write" else "read"
        text = (
            f"{self._who(lane, mark)} {kind}s {self._bytes(found)}, which {self._who_before(lane, found, before)} "
            f"{done}: only {name_of(by)} at {place_of(by.places, by.line)}, which its warp executes together, orders "
            "the two; hardware does so, but it is no barrier for memory"
        )
        beside = ("its warp executes together", by), *self._after(lane, mark)
        self._add("race", severity, text, now, before, lane, RULES["order"], WARP_BARRIER, beside)
