"""Findings about wgmma and the registers that it reads and writes."""

from __future__ import annotations

from collections.abc import Sequence

from ..._ptx import Instruction
from ..._warps.events import RegistersTouched
from ..model.history import Explained
from ..model.operations import IssueRecord
from .message_parts import MessageParts
from .remedies import RULES
from .statements import name_of, place_of

__all__ = ["ProductMessages"]

_FENCE = "wgmma_fence(registers) (wgmma.fence.sync.aligned) between the write and the product, by all of the warpgroup"
_WAIT = (
    "wgmma_wait<N>(registers) (wgmma.wait_group) that covers the group of the product, before its registers are touched"
)


class ProductMessages(MessageParts):
    """Turns what the sanitizer has found of products into findings."""

    def exit_before_product(self, mark: IssueRecord, first: int, related: Sequence[Explained] = ()) -> None:
        """Report a warpgroup that ends before a product."""
        if self._collector.known("wgmma-order", "error", id(mark.instruction)):
            return
        text = f"the warpgroup of {self._thread(first)} ends, and has not waited for {name_of(mark.instruction)}"
        remedy = "wgmma.commit_group and wgmma.wait_group 0 before the sums are used"
        self._add("wgmma-order", "error", text, mark.instruction, None, first, RULES["wgmma"], remedy, related)

    def product_without_fence(self, now: Instruction, first: int) -> None:
        """The first wgmma of a warpgroup wants its registers fenced."""
        if self._collector.known("wgmma-order", "error", id(now)):
            return
        text = f"the warpgroup of {self._thread(first)} issues wgmma.mma_async, and has not executed wgmma.fence before"
        remedy = "wgmma_fence() (wgmma.fence.sync.aligned) before the first, and after registers of it are changed"
        self._add("wgmma-order", "error", text, now, None, first, RULES["registers"], remedy)

    def registers_touched(self, event: RegistersTouched, strict: bool) -> None:
        """Report an instruction that touches registers of a product under way, or a product without its fence."""
        now, other, verb = event.instruction, event.other, event.verb
        severity = "advice" if verb == "repaired" and not strict else "error"
        if self._collector.known("wgmma-order", severity, id(other), id(now)):
            return
        first, place = int(event.lanes.start), place_of(other.places, other.line)
        writer, missing = ".".join(other.opcode), "no wgmma.wait_group covers its group"
        done = {
            "unfenced": f"issues wgmma.mma_async, whose registers {writer} at {place} has written since its last "
            "wgmma.fence",
            "repaired": f"reads registers that wgmma at {place} writes, before wgmma.commit_group: ptxas inserts a "
            "wait there (C7517), which the PTX ISA does not promise",
            "reads": f"reads registers that wgmma at {place} still writes: {missing}",
            "writes": f"writes registers that wgmma at {place} still writes: {missing}",
            "overwrites A": f"overwrites A in registers that wgmma at {place} still reads: {missing}",
        }[verb]
        rule, remedy = (RULES["registers"], _FENCE) if verb == "unfenced" else (RULES["flight"], _WAIT)
        text = f"the warpgroup of {self._thread(first)} {done}"
        self._add("wgmma-order", severity, text, now, other, first, rule, remedy)
