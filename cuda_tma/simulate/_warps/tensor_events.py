"""The events of tensor memory that an observer sees: a closed set of frozen values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._ptx import Instruction
from .lanes import Lanes

__all__ = [
    "GROUP_LANES",
    "ColumnsAllocated",
    "ColumnsFreed",
    "CommitArrived",
    "LanesMoved",
    "OfTensor",
    "OperationCommitted",
    "OperationIssued",
    "PairMet",
    "TensorEvent",
    "TensorFence",
    "TensorWait",
    "Touch",
]

GROUP_LANES = 16  # lanes side by side that instructions use together


@dataclass(frozen=True, slots=True)
class Touch:
    """Cells of the tensor memory of one CTA.

    Attributes
    ----------
    cta : int
        The resident CTA.
    column, columns : int
        The first, and their number.
    groups : tuple of int
        Of each column: which groups of 16 lanes.
    reads, writes : bool
    """

    cta: int
    column: int
    columns: int
    groups: tuple[int, ...]
    reads: bool
    writes: bool


class TensorEvent:
    """An event of tensor memory."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class PairMet(TensorEvent):
    """A warp of each CTA of a pair has executed an instruction of ``.cta_group::2`` that both wait for."""

    lanes: np.ndarray
    instruction: Instruction


@dataclass(frozen=True, slots=True, eq=False)
class ColumnsAllocated(TensorEvent):
    """``tcgen05.alloc`` of a warp writes the address to a byte of `Memory.shared`."""

    lanes: np.ndarray
    instruction: Instruction
    position: int


@dataclass(frozen=True, slots=True, eq=False)
class ColumnsFreed(TensorEvent):
    """``tcgen05.dealloc`` of a warp."""

    lanes: np.ndarray
    instruction: Instruction
    freed: Touch


@dataclass(frozen=True, slots=True, eq=False)
class LanesMoved(TensorEvent):
    """``tcgen05.ld``, ``tcgen05.st`` of a warp.

    Attributes
    ----------
    is_used : bool
        Of a load: whether an instruction uses one of its registers before the warp signals others.
    """

    lanes: np.ndarray
    instruction: Instruction
    touch: Touch
    is_used: bool


@dataclass(frozen=True, slots=True, eq=False)
class TensorWait(TensorEvent):
    """``tcgen05.wait::ld``, ``tcgen05.wait::st``."""

    lanes: Lanes
    instruction: Instruction


@dataclass(frozen=True, slots=True, eq=False)
class TensorFence(TensorEvent):
    """``tcgen05.fence::before_thread_sync``, ``tcgen05.fence::after_thread_sync``."""

    lanes: Lanes
    instruction: Instruction


@dataclass(frozen=True, slots=True, eq=False)
class OperationIssued(TensorEvent):
    """A thread issues ``tcgen05.mma``, ``tcgen05.cp`` or ``tcgen05.shift``."""

    lanes: slice
    instruction: Instruction
    touches: Sequence[Touch]


@dataclass(frozen=True, slots=True, eq=False)
class OperationCommitted(TensorEvent):
    """``tcgen05.commit`` of a thread, for mbarriers at some positions."""

    lanes: slice
    instruction: Instruction
    positions: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class CommitArrived(TensorEvent):
    """All that a commit covers is complete: it arrives at one of its mbarriers."""

    commit: OperationCommitted
    position: int


OfTensor = (
    PairMet
    | ColumnsAllocated
    | ColumnsFreed
    | LanesMoved
    | TensorWait
    | TensorFence
    | OperationIssued
    | OperationCommitted
    | CommitArrived
)
