"""The operations of tensor memory over time; the operations of a CTA complete in the order of their issue."""

from __future__ import annotations

from dataclasses import dataclass

from .._ptx import Instruction
from .._warps.tensor_events import OperationCommitted, OperationIssued

__all__ = ["TensorOperation", "TensorPipes"]


@dataclass(frozen=True, slots=True, eq=False)
class TensorOperation:
    """One ``tcgen05.mma``, ``tcgen05.cp`` or ``tcgen05.shift`` that a thread issued."""

    instruction: Instruction
    begin: int
    columns: int

    @property
    def name(self) -> str:
        """The name of the operation with its number of columns, such as ``"mma n128"``."""
        return f"{self.instruction.opcode[1]} n{self.columns}"

    @property
    def end(self) -> int:
        """The step at the end of the operation, which is assumed to take N / 2 steps for N columns."""
        return self.begin + max(1, self.columns // 2)


class TensorPipes:
    """The operations of tensor memory of each CTA."""

    def __init__(self) -> None:
        self._free: dict[int, int] = {}
        self._ends: dict[OperationCommitted, int] = {}

    def issue(self, cta: int, event: OperationIssued, now: int) -> TensorOperation:
        """Return an operation that begins after the preceding operations of its CTA."""
        columns = max((touch.columns for touch in event.touches if touch.writes), default=1)
        found = TensorOperation(event.instruction, max(now, self._free.get(cta, 0)), columns)
        self._free[cta] = found.end
        return found

    def commit(self, cta: int, event: OperationCommitted, now: int) -> None:
        """Record the end of the operations that a commit includes."""
        self._ends[event] = max(now, self._free.get(cta, 0))

    def end_of(self, event: OperationCommitted) -> int:
        """Return the step at which a commit arrives at its mbarriers."""
        return self._ends[event]
