"""Findings on global memory in words."""

from __future__ import annotations

from ..._ptx import Instruction
from ..model.global_shadow import PriorAccess
from ..model.operations import IssueRecord
from ..model.units import is_strong
from .message_parts import MessageParts
from .remedies import (
    BOTH_STRONG,
    COHERENT_LOAD,
    FENCE_OF_GLOBAL,
    GLOBAL_ORDER,
    ONE_SIZE,
    ONE_WRITER,
    RULES,
    WIDER_ATOMICS,
)
from .statements import name_of, place_of

__all__ = ["GlobalMessages"]


class GlobalMessages(MessageParts):
    """Turns races in global memory into findings."""

    def global_race(
        self, past: PriorAccess, lane: int, mark: IssueRecord | None, kind: str, now: Instruction, strict: bool
    ) -> None:
        """Report two accesses to global memory that nothing orders, or no proxy fence separates."""
        before = self._collector.instruction(past.site)
        of = "missing-proxy-fence" if past.is_ordered else "race"
        disputed = past.is_ordered and past.kind == "read"
        severity = "advice" if disputed and not strict else "error"
        if self._collector.known(of, severity, id(before), id(now)):
            return
        text = self._two_accesses(past, lane, mark, kind, before, now)
        if past.is_ordered:
            text, rule = f"{text} through another proxy, with no fence.proxy.async between the two", RULES["proxy"]
            remedy = FENCE_OF_GLOBAL
        else:
            mixed = _is_strong(before) != _is_strong(now) and "ld" not in (now if _is_strong(now) else before).opcode
            text, rule = f"{text}, and nothing orders the two", RULES["strong" if mixed else "order"]
            remedy = BOTH_STRONG if mixed else GLOBAL_ORDER
        beside = (*self._after(lane, mark), *self._operations.related(self._key(past)))
        self._add(of, severity, text, now, before, lane, rule, remedy, beside)
        if of == "race" and mark is None and past.column < self._clocks.threads:
            self._note_racing_read(kind, now, past.kind, before)

    def _two_accesses(
        self, past: PriorAccess, lane: int, mark: IssueRecord | None, kind: str, before: Instruction, now: Instruction
    ) -> str:
        """``thread 0 writes global memory at 0x10 by atom.add.u32, which a thread of another block at a.cu:5 read``."""
        place, done = place_of(before.places, before.line), "wrote" if past.kind == "write" else "read"
        verb, whose = "read" if kind == "read" else "write", self._past_actor(past, before)
        by, by_before = (f" by {'.'.join(each.opcode)}" * _is_strong(each) for each in (now, before))
        if past.column >= self._clocks.threads:
            by_before = ""
        who = self._who(lane, mark)
        by = "" if mark is not None else by
        return f"{who} {verb}s global memory at 0x{past.address:x}{by}, which {whose} at {place} {done}{by_before}"

    def not_morally_strong(self, past: PriorAccess, lane: int, lacks: str, kind: str, now: Instruction) -> None:
        """Report two strong accesses, one out of the other's scope or of other bytes."""
        before = self._collector.instruction(past.site)
        if self._collector.known("race", "error", id(before), id(now)):
            return
        text = self._two_accesses(past, lane, None, kind, before, now)
        if lacks == "scope":
            text, remedy = f"{text}: the scope of one does not include the other's thread", WIDER_ATOMICS
        else:
            text, remedy = f"{text}: the two access the same memory in different sizes", ONE_SIZE
        rule = RULES["morally strong"]
        self._add("race", "error", f"{text}, and nothing orders them", now, before, lane, rule, remedy)

    def non_coherent(self, past: PriorAccess, lane: int, now: Instruction) -> None:
        """Report a load through the non-coherent cache of what the kernel has written."""
        before = self._collector.instruction(past.site)
        if self._collector.known("race", "error", id(before), id(now)):
            return
        text = self._two_accesses(past, lane, None, "read", before, now)
        text = f"{text} in this launch: ld.global.nc may return the value before that"
        self._add("race", "error", text, now, before, lane, RULES["nc"], COHERENT_LOAD, self._after(lane, None))

    def _note_racing_read(self, kind: str, now: Instruction, kind_before: str, before: Instruction) -> None:
        key = ("race", id(before), id(now))
        if kind == "read" != kind_before:
            self._collector.add_racing_read(now, before, key)
        elif kind_before == "read" != kind:
            self._collector.add_racing_read(before, now, key)

    def global_same_value(
        self, past: PriorAccess, lane: int, now: Instruction, strict: bool, mark: IssueRecord | None = None
    ) -> None:
        """Report two unordered writes of the same value."""
        before = self._collector.instruction(past.site)
        severity = "error" if strict else "advice"
        if self._collector.known("race", severity, id(before), id(now)):
            return
        text = (
            f"{self._who(lane, mark)} writes global memory at 0x{past.address:x}, and "
            f"{self._past_actor(past, before)} at {place_of(before.places, before.line)} writes the same value there: "
            "nothing orders the two"
        )
        self._add("race", severity, text, now, before, lane, RULES["order"], ONE_WRITER)

    def _key(self, past: PriorAccess) -> object:
        """What an operation of the past completes on, if it is known still."""
        known = past.lives and past.column >= self._clocks.threads + self._clocks.slots
        return self._clocks.key(past.slot, past.column) if known else None

    def _past_actor(self, past: PriorAccess, before: Instruction) -> str:
        if past.column >= self._clocks.threads:
            return name_of(before)
        if past.is_here:
            return self._thread(past.slot * self._clocks.threads + past.column)
        return "a thread of another block"


def _is_strong(instruction: Instruction) -> bool:
    """Return whether an access is strong, as are the reductions of TMA, element by element."""
    return is_strong(instruction) or instruction.opcode[:2] == ("cp", "reduce")
