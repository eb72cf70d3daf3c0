"""The violations of tensor memory: accesses that do not wait for the end of an earlier operation."""

from __future__ import annotations

from dataclasses import dataclass

from ..._copies.parts import Parts
from ..._ptx import Instruction
from .shared_violations import SharedRace
from .statements import name_of, place_of
from .violation import Violation

__all__ = ["StageInFlight", "TensorUnordered", "UnwrittenTensorMemory"]

_COMMIT = (
    "execute tcgen05.commit after the operation, and wait for the phase of its mbarrier (mbarrier.try_wait) before the "
    "access"
)
_WAIT_ST = "execute tcgen05.wait::st after the store, before the warp signals others"
_WAIT_LD = "execute tcgen05.wait::ld after the load, before the warp signals that the stage is free"
_ORDER = "signal after the earlier access, by a barrier or an mbarrier, and wait for that before this one"
_REMEDIES = {"operation": _COMMIT, "store": _WAIT_ST, "load": _WAIT_LD, "order": _ORDER}
_MISSING = {
    "operation": "no wait for an mbarrier of a tcgen05.commit that covers it comes between",
    "store": "no tcgen05.wait::st comes between",
    "load": "no tcgen05.wait::ld comes between, and none of its registers is used before the stage is released",
    "used load": "its registers are used before the stage is released, but no tcgen05.wait::ld comes between",
    "order": "nothing orders the two",
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TensorUnordered(Violation):
    """An access to tensor memory that does not wait for the end of an earlier access."""

    KIND, RULE = "tcgen05-order", "tcgen05"
    other: Instruction
    verb: str
    before: str
    missing: str
    column: int
    columns: int

    @property
    def remedy(self) -> str:
        return _REMEDIES.get(self.missing.rpartition(" ")[2], _ORDER)

    def sentence(self, parts: Parts) -> str:
        what = f"columns {self.column} to {self.column + self.columns - 1} of tensor memory"
        place = place_of(self.other.places, self.other.line)
        return (
            f"{name_of(self.now)} of {self.thread(parts)} {self.verb} {what}, which {name_of(self.other)} at {place} "
            f"may still {self.before}: {_MISSING[self.missing]}"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StageInFlight(SharedRace):
    """A write to bytes of shared memory that a pending ``tcgen05`` operation accesses."""

    KIND, RULE = "tcgen05-order", "tcgen05"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class UnwrittenTensorMemory(Violation):
    """A read of cells of tensor memory that were never written."""

    KIND, RULE, IS_ADVICE = "tensor-memory", "tensor memory", True
    REMEDY = "write them first, or multiply without the input of D (enable-input-d false) the first time"
    column: int
    columns: int

    def sentence(self, parts: Parts) -> str:
        what = f"columns {self.column} to {self.column + self.columns - 1} of tensor memory"
        return f"{name_of(self.now)} of {self.thread(parts)} reads {what}, to which nothing has been written"
