"""The events of tensor memory for an observer, which are a closed set of types."""

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

GROUP_LANES = 16  # An instruction accesses tensor memory in groups of 16 adjacent lanes.


@dataclass(frozen=True, slots=True)
class Touch:
    """The cells of the tensor memory of one CTA that an instruction accesses.

    Attributes
    ----------
    cta : int
        The resident CTA.
    column, columns : int
        The first accessed column, and the number of accessed columns.
    groups : tuple of int
        The numbers of the accessed groups of 16 lanes in each column.
    reads, writes : bool
    needs_all : bool
        Whether the result depends on each of the cells, so that each of them must be written.
    """

    cta: int
    column: int
    columns: int
    groups: tuple[int, ...]
    reads: bool
    writes: bool
    needs_all: bool = False


class TensorEvent:
    """An event of tensor memory."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class PairMet(TensorEvent):
    """The execution of an instruction with ``.cta_group::2``, after the warps of both CTAs of the pair have arrived."""

    lanes: np.ndarray
    instruction: Instruction


@dataclass(frozen=True, slots=True, eq=False)
class ColumnsAllocated(TensorEvent):
    """The execution of ``tcgen05.alloc`` by a warp, which writes the address to a position in `Memory.shared`."""

    lanes: np.ndarray
    instruction: Instruction
    position: int


@dataclass(frozen=True, slots=True, eq=False)
class ColumnsFreed(TensorEvent):
    """The execution of ``tcgen05.dealloc`` by a warp."""

    lanes: np.ndarray
    instruction: Instruction
    freed: Touch


@dataclass(frozen=True, slots=True, eq=False)
class LanesMoved(TensorEvent):
    """The execution of ``tcgen05.ld`` or ``tcgen05.st`` by a warp.

    Attributes
    ----------
    touches : tuple of Touch
        The accessed cells, one value for each range of columns.
    is_used : bool
        Whether an instruction uses a register of the load before the warp signals other threads.
    """

    lanes: np.ndarray
    instruction: Instruction
    touches: tuple[Touch, ...]
    is_used: bool


@dataclass(frozen=True, slots=True, eq=False)
class TensorWait(TensorEvent):
    """The execution of ``tcgen05.wait::ld`` or ``tcgen05.wait::st``."""

    lanes: Lanes
    instruction: Instruction


@dataclass(frozen=True, slots=True, eq=False)
class TensorFence(TensorEvent):
    """The execution of ``tcgen05.fence::before_thread_sync`` or ``tcgen05.fence::after_thread_sync``."""

    lanes: Lanes
    instruction: Instruction


@dataclass(frozen=True, slots=True, eq=False)
class OperationIssued(TensorEvent):
    """The issue of a ``tcgen05.mma``, ``tcgen05.cp`` or ``tcgen05.shift`` by a thread."""

    lanes: slice
    instruction: Instruction
    touches: Sequence[Touch]


@dataclass(frozen=True, slots=True, eq=False)
class OperationCommitted(TensorEvent):
    """The execution of ``tcgen05.commit`` by a thread, for mbarriers at some positions."""

    lanes: slice
    instruction: Instruction
    positions: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class CommitArrived(TensorEvent):
    """The arrival of a commit at one of its mbarriers, after the completion of all operations before the commit."""

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
