"""The violations of the rules of tensor memory: accesses that do not wait for the end of an earlier operation."""

from __future__ import annotations

from dataclasses import dataclass

from ..._copies.parts import Parts
from ..._ptx import Instruction
from ..._tensor_memory.memory import named_columns
from .shared_violations import SharedRace
from .statements import name_of, place_of
from .violation import Violation

__all__ = ["StageInFlight", "TensorUnordered", "UnwrittenTensorMemory"]

_COMMIT = (
    "execute tcgen05.commit after the operation; before the access, wait for the phase of its mbarrier "
    "(mbarrier.try_wait), then execute tcgen05.fence::after_thread_sync"
)
_WAIT_ST = (
    "execute tcgen05.wait::st after the store, before the warp accesses these columns again or signals other warps"
)
_WAIT_LD = "execute tcgen05.wait::ld after the load, before the warp signals that the stage is free"
_ORDER = "signal a barrier or an mbarrier after the earlier access, and wait for it before this access"
_LANES = "issue the operations in one thread of the warp, which elect.sync selects"
_REMEDIES = {"operation": _COMMIT, "store": _WAIT_ST, "load": _WAIT_LD, "order": _ORDER, "lanes": _LANES}
_MISSING = {
    "operation": "between the two there is no wait for an mbarrier of a tcgen05.commit that covers it",
    "store": "between the two there is no tcgen05.wait::st",
    "load": (
        "between the two there is no tcgen05.wait::ld, and no register of the load is used before the stage is released"
    ),
    "used load": (
        "its registers are used before the stage is released, but between the two there is no tcgen05.wait::ld"
    ),
    "order": "nothing orders the two",
    "order of lanes": "nothing orders the two, which two threads of one warp issue",
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
        what = f"{named_columns(self.column, self.columns)} of tensor memory"
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
    """A read of cells of tensor memory that no instruction has written."""

    KIND, RULE, IS_ADVICE = "tensor-memory", "tensor memory", True
    REMEDY = (
        "write these columns before the read; or set enable-input-d to false in the first tcgen05.mma, which then does "
        "not read D"
    )
    column: int
    columns: int

    def sentence(self, parts: Parts) -> str:
        what = f"{named_columns(self.column, self.columns)} of tensor memory"
        return f"{name_of(self.now)} of {self.thread(parts)} reads {what}, to which nothing has been written"
