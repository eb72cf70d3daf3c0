"""The events of a launch that an observer sees: a closed set of frozen values, in the order in which they take effect.

An observer matches on the types. mypy finds an event without a case, as each match ends with ``assert_never``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from .._ptx import Instruction
from .lanes import Lanes
from .tensor_events import OfTensor


def assert_never(event: NoReturn) -> NoReturn:
    """Refuse an event without a case, as ``typing.assert_never`` of Python 3.11 and later does."""
    raise AssertionError(f"no case for the event {event!r}")


# ---- threads ----


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """The threads of a cluster begin."""

    lanes: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Exit:
    """Threads end."""

    lanes: Lanes
    instruction: Instruction


@dataclass(frozen=True, slots=True, eq=False)
class GridWait:
    """``griddepcontrol.wait``: the grids before have ended."""

    lanes: Lanes


@dataclass(frozen=True, slots=True, eq=False)
class WarpTogether:
    """Whole warps have executed an instruction together."""

    lanes: Lanes
    instruction: Instruction | None


# ---- barriers of threads ----


class BarrierEvent:
    """An event at a barrier of a warp, a CTA or a cluster."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class WarpBarrier(BarrierEvent):
    """``bar.warp.sync`` completes; `masks` names the threads of each lane, None for whole warps."""

    lanes: Lanes
    masks: np.ndarray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class WholeBarrier(BarrierEvent):
    """All threads of some CTAs execute a barrier at once."""

    lanes: Lanes
    instruction: Instruction | None


@dataclass(frozen=True, slots=True, eq=False)
class BarrierArrive(BarrierEvent):
    """Threads arrive at a barrier: the CTA, and the number of the barrier."""

    lanes: Lanes
    barrier: tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class BarrierComplete(BarrierEvent):
    """A barrier completes; `waits` are the lanes that wait, each group with its instruction."""

    lanes: np.ndarray
    barrier: tuple[int, int]
    waits: Sequence[tuple[np.ndarray, Instruction | None]]


@dataclass(frozen=True, slots=True, eq=False)
class ClusterArrive(BarrierEvent):
    """``barrier.cluster.arrive``."""

    lanes: np.ndarray
    relaxed: bool


@dataclass(frozen=True, slots=True, eq=False)
class ClusterComplete(BarrierEvent):
    """All threads of the cluster in a slot have arrived."""

    slot: int


@dataclass(frozen=True, slots=True, eq=False)
class ClusterWait(BarrierEvent):
    """``barrier.cluster.wait`` ends for some lanes."""

    lanes: np.ndarray
    instruction: Instruction | None


# ---- mbarriers; a position is a byte of `Memory.shared` ----


class MbarrierEvent:
    """An event at an mbarrier."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Init(MbarrierEvent):
    """``mbarrier.init``."""

    lanes: Lanes
    instruction: Instruction
    positions: np.ndarray
    counts: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class Invalidate(MbarrierEvent):
    """``mbarrier.inval``."""

    lanes: Lanes
    instruction: Instruction
    positions: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Arrive(MbarrierEvent):
    """``mbarrier.arrive``, ``mbarrier.arrive_drop``: `values` are arrivals, or bytes with ``.expect_tx``."""

    lanes: Lanes
    instruction: Instruction
    positions: np.ndarray
    values: Sequence[int]

    @property
    def expects(self) -> bool:
        """Whether it also expects bytes."""
        return "expect_tx" in self.instruction.opcode


@dataclass(frozen=True, slots=True, eq=False)
class ExpectBytes(MbarrierEvent):
    """``mbarrier.expect_tx``."""

    lanes: Lanes
    instruction: Instruction
    positions: np.ndarray
    values: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class CompleteBytes(MbarrierEvent):
    """``mbarrier.complete_tx``."""

    lanes: Lanes
    instruction: Instruction
    positions: np.ndarray
    values: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class Poll(MbarrierEvent):
    """``mbarrier.try_wait``, ``mbarrier.test_wait``: whether the phase of each lane is `done`."""

    lanes: Lanes
    instruction: Instruction
    positions: np.ndarray
    done: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class ArriveAfterCopies(MbarrierEvent):
    """``cp.async.mbarrier.arrive``."""

    lanes: Lanes
    instruction: Instruction
    positions: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class BytesCame(MbarrierEvent):
    """Bytes of a copy, or of ``mbarrier.complete_tx``, count at an mbarrier."""

    position: int
    size_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class PhaseComplete(MbarrierEvent):
    """The phase of an mbarrier completes."""

    position: int


# ---- fences ----


@dataclass(frozen=True, slots=True, eq=False)
class Fence:
    """A fence of threads."""

    lanes: Lanes
    instruction: Instruction


@dataclass(frozen=True, slots=True, eq=False)
class MemoryFence(Fence):
    """``fence.sc``, ``fence.acq_rel``, ``membar`` ..., with the name of a scope."""

    scope: str


@dataclass(frozen=True, slots=True, eq=False)
class AsyncProxyFence(Fence):
    """``fence.proxy.async``, of some state spaces."""

    of_global: bool
    of_shared: bool


@dataclass(frozen=True, slots=True, eq=False)
class OtherProxyFence(Fence):
    """A fence of a proxy that no observer follows, ``fence.proxy.alias`` for example."""


@dataclass(frozen=True, slots=True, eq=False)
class MapAcquire(Fence):
    """``fence.proxy.tensormap::generic.acquire``."""

    scope: str
    addresses: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class MapRelease(Fence):
    """``fence.proxy.tensormap::generic.release``."""

    scope: str


@dataclass(frozen=True, slots=True, eq=False)
class InitFence(Fence):
    """``fence.mbarrier_init``."""


@dataclass(frozen=True, slots=True, eq=False)
class ProductFence(Fence):
    """``wgmma.fence``."""


# ---- asynchronous operations ----


@dataclass(frozen=True, slots=True, eq=False)
class CommitGroup:
    """``commit_group`` of ``"bulk"``, ``"cp.async"`` or ``"wgmma"``."""

    lanes: Lanes
    instruction: Instruction
    kind: str


@dataclass(frozen=True, slots=True, eq=False)
class WaitGroup:
    """A wait until `most` groups are left.

    Attributes
    ----------
    reads_only : bool
        Whether it waits only until the operations have read.
    commits : bool
        Whether it closes the open group first.
    """

    lanes: Lanes
    instruction: Instruction
    kind: str
    most: int
    reads_only: bool = False
    commits: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class IssuedTogether:
    """Lanes of a warp have issued one operation, the first of them as its owner."""

    lanes: np.ndarray
    instruction: Instruction
    kind: str | None


@dataclass(frozen=True, slots=True, eq=False)
class SignaledElsewhere:
    """A copy names an mbarrier of another CTA than its destination; it signals the one in its own."""

    lanes: Lanes
    instruction: Instruction
    named: int
    signaled: int


@dataclass(frozen=True, slots=True, eq=False)
class BoxIssued:
    """A copy of a box of a tensor begins, by the tensor map at an address."""

    lanes: slice
    box: object
    address: int


@dataclass(frozen=True, slots=True, eq=False)
class MapCopied:
    """``tensormap.cp_fenceproxy``."""

    lanes: Lanes
    instruction: Instruction


# ---- values without a definition ----


@dataclass(frozen=True, slots=True, eq=False)
class AbsentSource:
    """Lanes take values of lanes that take no part in ``shfl``."""

    lanes: Lanes
    instruction: Instruction
    sources: np.ndarray
    masks: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class UnwrittenRead:
    """Lanes read local memory that they have not written; `base` is the first byte of the function's variables."""

    lanes: np.ndarray
    instruction: Instruction
    addresses: np.ndarray
    base: int
    size_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class RegistersTouched:
    """An instruction touches registers that another, a product under way, uses; `verb` is the kind of use."""

    lanes: slice
    instruction: Instruction
    verb: str
    other: Instruction


OfThreads = Start | Exit | GridWait
OfBarrier = WarpBarrier | WholeBarrier | BarrierArrive | BarrierComplete | ClusterArrive | ClusterComplete | ClusterWait
OfMbarrier = (
    Init | Invalidate | Arrive | ExpectBytes | CompleteBytes | Poll | ArriveAfterCopies | BytesCame | PhaseComplete
)
OfFence = MemoryFence | AsyncProxyFence | OtherProxyFence | MapAcquire | MapRelease | InitFence | ProductFence
OfGroup = CommitGroup | WaitGroup
OfCopy = IssuedTogether | SignaledElsewhere | BoxIssued | MapCopied
OfValue = AbsentSource | UnwrittenRead | RegistersTouched
Event = OfThreads | WarpTogether | OfBarrier | OfMbarrier | OfFence | OfGroup | OfCopy | OfValue | OfTensor
