"""The violations of the rules for wgmma and for its registers."""

from __future__ import annotations

from dataclasses import dataclass

from ..._copies.parts import Parts
from ..._ptx import Instruction
from .remedies import RULES
from .statements import name_of, place_of
from .violation import Violation

__all__ = ["ExitBeforeProduct", "ProductNotFenced", "RegistersInUse"]

_FENCE = (
    "execute wgmma_fence(registers) (wgmma.fence.sync.aligned) between the write and the product, in all threads of "
    "the warpgroup"
)
_MISSING = "no wgmma.wait_group covers its group"
_EVENTS = {
    "unfenced": "issues wgmma.mma_async, whose registers {writer} at {place} has written since its last wgmma.fence",
    "repaired": "reads registers that wgmma at {place} writes, before wgmma.commit_group: ptxas inserts a wait there "
    "(C7517), which the PTX ISA does not promise",
    "reads": "reads registers that wgmma at {place} still writes: " + _MISSING,
    "writes": "writes registers that wgmma at {place} still writes: " + _MISSING,
    "overwrites A": "overwrites A in registers that wgmma at {place} still reads: " + _MISSING,
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ExitBeforeProduct(Violation):
    """A warpgroup that ends before its ``wgmma`` is complete."""

    KIND, RULE = "wgmma-order", "wgmma"
    REMEDY = "execute wgmma.commit_group and wgmma.wait_group 0 before the sums are used"

    def sentence(self, parts: Parts) -> str:
        return f"the warpgroup of {self.thread(parts)} ends without a wait for {name_of(self.now)}"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ProductNotFenced(Violation):
    """The first ``wgmma`` of a warpgroup without a preceding ``wgmma.fence``."""

    KIND, RULE = "wgmma-order", "registers"
    REMEDY = (
        "execute wgmma_fence() (wgmma.fence.sync.aligned) in all threads of the warpgroup, before the first "
        "wgmma.mma_async and after each change of its registers"
    )

    def sentence(self, parts: Parts) -> str:
        return f"the warpgroup of {self.thread(parts)} issues wgmma.mma_async without a preceding wgmma.fence"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RegistersInUse(Violation):
    """An access to registers of a pending ``wgmma``, or a ``wgmma`` without a fence after writes of its registers."""

    KIND, RULE = "wgmma-order", "flight"
    REMEDY = (
        "before its registers are accessed, execute wgmma_wait<N>(registers) (wgmma.wait_group) with an N that covers "
        "the group of the product"
    )
    other: Instruction
    verb: str

    @property
    def rule(self) -> str:
        return RULES["registers" if self.verb == "unfenced" else self.RULE]

    @property
    def remedy(self) -> str:
        return _FENCE if self.verb == "unfenced" else self.REMEDY

    def sentence(self, parts: Parts) -> str:
        place, writer = place_of(self.other.places, self.other.line), ".".join(self.other.opcode)
        return f"the warpgroup of {self.thread(parts)} {_EVENTS[self.verb].format(place=place, writer=writer)}"
