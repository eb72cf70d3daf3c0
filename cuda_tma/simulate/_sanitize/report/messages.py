"""The messages of findings: the event with its numbers, both places, the rule and the remedy."""

from __future__ import annotations

from ..._ptx import Instruction
from ..model.operations import IssueRecord
from ..model.shadow import Conflict
from .global_messages import GlobalMessages
from .mbarrier_messages import MbarrierMessages
from .remedies import (
    FENCE_BEFORE_LOAD,
    FENCE_BEFORE_STORE,
    ONE_WRITER,
    RULES,
    WIDER_SCOPE,
    remedy_of,
)
from .violation import Violation

__all__ = ["Messages"]


class Messages(GlobalMessages, MbarrierMessages):
    """Turns violations into findings."""

    def report(self, violation: Violation) -> None:
        """Report a violation, or count it with an equal one."""
        if not self._collector.known(violation.KIND, violation.severity, *violation.cause):
            self._collector.add((violation.KIND, *violation.cause), violation.finding(self._parts))

    # ---- accesses ----

    def race(self, found: Conflict, lane: int, mark: IssueRecord | None, kind: str, now: Instruction) -> None:
        """Report two unordered accesses."""
        before = self._collector.instruction(int(found.sites[0]))
        if "mbarrier" in (before.opcode[0], now.opcode[0]):
            self._barrier_race(before, now, lane, found)
            return
        if self._collector.known("race", "error", id(before), id(now)):
            return
        done = "writing" if found.before == "write" else "reading"
        text = (
            f"{self._who(lane, mark)} {kind}s {self._bytes(found)} while {self._who_before(lane, found, before)} may "
            f"still be {done} them: nothing orders the two"
        )
        who, _ = self._before(lane, found)
        is_own = mark is not None and who == lane
        remedy = remedy_of(
            found.before,
            now,
            who,
            is_own=is_own,
            is_in_bulk_group=mark is not None and mark.group is not None and mark.group[0] == "bulk",
            is_elsewhere=self._is_elsewhere(who, lane),
        )
        beside = (*self._after(lane, mark), *self._groups(lane, found))
        self._add("race", "error", text, now, before, lane, RULES["order"], remedy, beside)

    def same_value(self, found: Conflict, lane: int, now: Instruction, strict: bool) -> None:
        """Report two unordered writes of the same value."""
        before = self._collector.instruction(int(found.sites[0]))
        severity = "error" if strict else "advice"
        if self._collector.known("race", severity, id(before), id(now)):
            return
        text = (
            f"{self._thread(lane)} writes {self._bytes(found)}, and {self._who_before(lane, found, before)} writes the "
            "same value there: nothing orders the two"
        )
        self._add("race", severity, text, now, before, lane, RULES["order"], ONE_WRITER)

    def narrow(
        self, found: Conflict, lane: int, mark: IssueRecord | None, kind: str, now: Instruction, disputed: bool
    ) -> None:
        """Report accesses of two CTAs that only operations of scope .cta order."""
        before = self._collector.instruction(int(found.sites[0]))
        severity = "advice" if disputed else "error"
        if self._collector.known("race", severity, id(before), id(now)):
            return
        done = "wrote" if found.before == "write" else "read"
        text = (
            f"{self._who(lane, mark)} {kind}s {self._bytes(found)}, which {self._who_before(lane, found, before)} "
            f"{done}: only an mbarrier arrival or wait of scope .cta orders the two, and they are in different CTAs"
        )
        self._add("race", severity, text, now, before, lane, RULES["scope"], WIDER_SCOPE, self._after(lane, mark))

    def missing_fence(
        self, found: Conflict, lane: int, mark: IssueRecord | None, kind: str, now: Instruction, disputed: bool
    ) -> None:
        """Report ordered accesses through two proxies without a proxy fence."""
        before = self._collector.instruction(int(found.sites[0]))
        severity = "advice" if disputed else "error"
        if self._collector.known("missing-proxy-fence", severity, id(before), id(now)):
            return
        wrote = found.before == "write"
        text = (
            f"{self._who(lane, mark)} {kind}s {self._bytes(found)} through the async proxy, which "
            f"{self._who_before(lane, found, before)} {'wrote' if wrote else 'read'} through the generic proxy, "
            "with no fence.proxy.async between the two"
        )
        remedy = FENCE_BEFORE_STORE if wrote else FENCE_BEFORE_LOAD
        after = self._after(lane, mark)
        self._add("missing-proxy-fence", severity, text, now, before, lane, RULES["proxy"], remedy, after)
