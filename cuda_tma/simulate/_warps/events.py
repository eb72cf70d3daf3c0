"""The events of a launch that an observer receives, in the order in which they take effect.

The set of types of events is closed, and an observer matches on these types. Each match ends with ``assert_never``, so
that mypy finds an event without a case.
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
    """Refuse an event without a case, as ``typing.assert_never`` of Python 3.11 and later versions does."""
    raise AssertionError(f"no case for the event {event!r}")


# ---- threads ----


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """The start of the threads of a cluster."""

    lanes: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Exit:
    """The end of some threads."""

    lanes: Lanes
    instruction: Instruction


@dataclass(frozen=True, slots=True, eq=False)
class GridWait:
    """The end of ``griddepcontrol.wait``, after the preceding grids have ended."""

    lanes: Lanes


@dataclass(frozen=True, slots=True, eq=False)
class WarpTogether:
    """The execution of an instruction that whole warps execute together."""

    lanes: Lanes
    instruction: Instruction | None


# ---- barriers of threads ----


class BarrierEvent:
    """An event at a barrier of a warp, a CTA or a cluster."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class WarpBarrier(BarrierEvent):
    """The completion of ``bar.warp.sync``; `masks` contains the mask of each lane, and is None for whole warps."""

    lanes: Lanes
    masks: np.ndarray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class WholeBarrier(BarrierEvent):
    """A barrier that all threads of some CTAs execute in one step."""

    lanes: Lanes
    instruction: Instruction | None


@dataclass(frozen=True, slots=True, eq=False)
class BarrierArrive(BarrierEvent):
    """The arrival of threads at a numbered barrier of their CTA."""

    lanes: Lanes
    barrier: tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class BarrierComplete(BarrierEvent):
    """The completion of a barrier; `waits` contains the groups of waiting lanes, each with its instruction."""

    lanes: np.ndarray
    barrier: tuple[int, int]
    waits: Sequence[tuple[np.ndarray, Instruction | None]]


@dataclass(frozen=True, slots=True, eq=False)
class ClusterArrive(BarrierEvent):
    """The execution of ``barrier.cluster.arrive``."""

    lanes: np.ndarray
    relaxed: bool


@dataclass(frozen=True, slots=True, eq=False)
class ClusterComplete(BarrierEvent):
    """The completion of the barrier of a cluster, at which all threads of the cluster have arrived."""

    slot: int


@dataclass(frozen=True, slots=True, eq=False)
class ClusterWait(BarrierEvent):
    """The end of ``barrier.cluster.wait`` for some lanes."""

    lanes: np.ndarray
    instruction: Instruction | None


# ---- mbarriers ----
#
# The position of an mbarrier is its offset in `Memory.shared`.


class MbarrierEvent:
    """An event at an mbarrier."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Init(MbarrierEvent):
    """The execution of ``mbarrier.init``."""

    lanes: Lanes
    instruction: Instruction
    positions: np.ndarray
    counts: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class Invalidate(MbarrierEvent):
    """The execution of ``mbarrier.inval``."""

    lanes: Lanes
    instruction: Instruction
    positions: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Arrive(MbarrierEvent):
    """The execution of ``mbarrier.arrive`` or ``mbarrier.arrive_drop``.

    `values` contains the number of arrivals of each lane, or for ``.expect_tx`` the number of expected bytes.
    """

    lanes: Lanes
    instruction: Instruction
    positions: np.ndarray
    values: Sequence[int]

    @property
    def expects(self) -> bool:
        """Return whether the arrival also expects bytes."""
        return "expect_tx" in self.instruction.opcode


@dataclass(frozen=True, slots=True, eq=False)
class ExpectBytes(MbarrierEvent):
    """The execution of ``mbarrier.expect_tx``."""

    lanes: Lanes
    instruction: Instruction
    positions: np.ndarray
    values: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class CompleteBytes(MbarrierEvent):
    """The execution of ``mbarrier.complete_tx``."""

    lanes: Lanes
    instruction: Instruction
    positions: np.ndarray
    values: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class Poll(MbarrierEvent):
    """The execution of ``mbarrier.try_wait`` or ``test_wait``; `done` is true for lanes whose phase is complete."""

    lanes: Lanes
    instruction: Instruction
    positions: np.ndarray
    done: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class ArriveAfterCopies(MbarrierEvent):
    """The execution of ``cp.async.mbarrier.arrive``."""

    lanes: Lanes
    instruction: Instruction
    positions: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class BytesCame(MbarrierEvent):
    """A change of an mbarrier's tx-count by a copy or by ``mbarrier.complete_tx``."""

    position: int
    size_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class PhaseComplete(MbarrierEvent):
    """The completion of a phase of an mbarrier."""

    position: int


# ---- fences ----


@dataclass(frozen=True, slots=True, eq=False)
class Fence:
    """A fence that some threads execute."""

    lanes: Lanes
    instruction: Instruction


@dataclass(frozen=True, slots=True, eq=False)
class MemoryFence(Fence):
    """A memory fence, such as ``fence.sc``, ``fence.acq_rel`` or ``membar``, with the name of its scope."""

    scope: str


@dataclass(frozen=True, slots=True, eq=False)
class AsyncProxyFence(Fence):
    """The execution of ``fence.proxy.async`` for some state spaces."""

    of_global: bool
    of_shared: bool


@dataclass(frozen=True, slots=True, eq=False)
class OtherProxyFence(Fence):
    """A proxy fence that no observer checks, such as ``fence.proxy.alias``."""


@dataclass(frozen=True, slots=True, eq=False)
class MapAcquire(Fence):
    """The execution of ``fence.proxy.tensormap::generic.acquire``."""

    scope: str
    addresses: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class MapRelease(Fence):
    """The execution of ``fence.proxy.tensormap::generic.release``."""

    scope: str


@dataclass(frozen=True, slots=True, eq=False)
class InitFence(Fence):
    """The execution of ``fence.mbarrier_init``."""


@dataclass(frozen=True, slots=True, eq=False)
class ProductFence(Fence):
    """The execution of ``wgmma.fence``."""


# ---- asynchronous operations ----


@dataclass(frozen=True, slots=True, eq=False)
class CommitGroup:
    """The commit of a group of ``"bulk"``, ``"cp.async"`` or ``"wgmma"`` operations."""

    lanes: Lanes
    instruction: Instruction
    kind: str


@dataclass(frozen=True, slots=True, eq=False)
class WaitGroup:
    """The execution of a wait until at most `most` groups are pending.

    Attributes
    ----------
    reads_only : bool
        Whether the wait includes only the reads of the operations.
    commits : bool
        Whether the instruction commits the open group before the wait.
    """

    lanes: Lanes
    instruction: Instruction
    kind: str
    most: int
    reads_only: bool = False
    commits: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class IssuedTogether:
    """The issue of one operation by several lanes of a warp; the first lane owns the operation."""

    lanes: np.ndarray
    instruction: Instruction
    kind: str | None


@dataclass(frozen=True, slots=True, eq=False)
class SignaledElsewhere:
    """A copy whose mbarrier operand is outside the CTA of the destination.

    The copy signals the mbarrier at the same offset in the CTA of the destination.
    """

    lanes: Lanes
    instruction: Instruction
    named: int
    signaled: int


@dataclass(frozen=True, slots=True, eq=False)
class BoxIssued:
    """The start of a tensor copy, with its box and the address of the tensor map."""

    lanes: slice
    box: object
    address: int


@dataclass(frozen=True, slots=True, eq=False)
class MapCopied:
    """The execution of ``tensormap.cp_fenceproxy``."""

    lanes: Lanes
    instruction: Instruction


# ---- undefined values ----


@dataclass(frozen=True, slots=True, eq=False)
class AbsentSource:
    """A read by ``shfl`` of the registers of lanes that do not execute the instruction."""

    lanes: Lanes
    instruction: Instruction
    sources: np.ndarray
    masks: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class UnwrittenRead:
    """A read of local memory that the lanes have not written; `base` is the first byte of the function's variables."""

    lanes: np.ndarray
    instruction: Instruction
    addresses: np.ndarray
    base: int
    size_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class RegistersTouched:
    """An access to registers that a ``wgmma`` in flight uses; `verb` is the kind of access."""

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
