"""The common parts of asynchronous copies: the issuing thread, the destination, and the submission to the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..._errors import TensorMapError, TensorMapFault
from .._ptx import Instruction
from .._sync.mbarrier import BYTES
from .._warps.events import IssuedTogether, SignaledElsewhere
from .._warps.faults import Fault
from .._warps.group import Group
from .._warps.lanes import WARP, Lanes, as_array
from .._warps.observe import Access
from .._warps.spaces import OFFSET_MASK, RANK_SHIFT
from .engine import Operation
from .parts import Parts

__all__ = ["BULK", "Issue", "each_lane", "landing", "landings", "once_per_warp", "submit"]

BULK = "bulk"  # BULK is the key of the groups that cp.async.bulk.commit_group creates.


@dataclass(slots=True, eq=False)
class Issue:
    """An asynchronous operation that one thread issues.

    Attributes
    ----------
    parts : Parts
    lane : int
    instruction : Instruction
    proxy : str
        ``"async"``, or ``"generic"`` for ``cp.async``.
    mark : object
        The object by which the observer identifies the operation.
    sharers : tuple of int
        The other lanes that issue the same operation by the same instruction.
    """

    parts: Parts
    lane: int
    instruction: Instruction
    proxy: str = "async"
    mark: object = None
    sharers: tuple[int, ...] = ()

    @property
    def lanes(self) -> slice:
        """The lane of the issuing thread as a slice."""
        return slice(self.lane, self.lane + 1, 1)

    @property
    def name(self) -> str:
        """The name of the operation in a report, which is the source place of its instruction."""
        if not self.instruction.places:
            return f"PTX line {self.instruction.line}"
        place = self.instruction.places[-1]
        return f"{place.file.rpartition('/')[2]}:{place.line}"

    def position(self, space: str, address: int, size_bytes: int, alignment: int) -> int:
        """Return the position in `Memory.shared` of an address of the issuing thread.

        The state space of the address is ``"shared"`` or ``"shared::cluster"``.
        """
        return self.parts.memory.shared_position(space, self.lane, address, size_bytes, alignment)

    def observe(
        self,
        kind: str,
        space: str,
        positions: np.ndarray,
        size_bytes: int,
        signal: int | None = None,
        proxy: str | None = None,
        unchanged: Callable[[], np.ndarray] | None = None,
    ) -> None:
        """Report accesses of the operation to the observer, by default as accesses through the operation's proxy."""
        if self.parts.events.observer is not None:
            if self.mark is None:
                self.mark = self.parts.events.observer.issue(self.lane, self.instruction, None)
            mark, by = self.mark, self.instruction
            what = kind, proxy or self.proxy, mark, self.lanes, space, positions, size_bytes, by, signal
            self.parts.events.observer.access(Access(*what, unchanged=unchanged))

    def faults(self) -> _Faults:
        """Return a context manager that adds the issuing thread and the instruction to faults."""
        return _Faults(self)


class _Faults:
    """A context manager that adds a thread and an instruction to faults, in a third of the time of a generator."""

    __slots__ = ("_issue",)

    def __init__(self, issue: Issue):
        self._issue = issue

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        issue = self._issue
        if isinstance(error, Fault):
            error.lanes = issue.lanes if error.lanes is None else error.lanes
            error.instruction = issue.instruction
        elif isinstance(error, TensorMapFault | TensorMapError):
            raise Fault(_kind(error), str(error), issue.lanes, issue.instruction) from error


def _kind(error: TensorMapFault | TensorMapError) -> str:
    if isinstance(error, TensorMapError):
        return "map-mismatch"
    if "multiple of" in str(error):
        return "misaligned"
    return "out-of-bounds" if error.cuda_error == "CUDA_ERROR_ILLEGAL_ADDRESS" else "fault"


def submit(issue: Issue, *stages: Callable[[], None], kind: str | None = None) -> None:
    """Begin an operation; `kind` is the kind of the groups by which a thread waits for the operation, or None."""

    def guarded(stage: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            with issue.faults():
                stage()

        return run

    if issue.parts.events.observer is not None:
        issue.mark = issue.parts.events.observer.issue(issue.lane, issue.instruction, kind)
        if issue.sharers:
            lanes = np.array([issue.lane, *issue.sharers])
            issue.parts.events.tell(IssuedTogether(lanes, issue.instruction, kind))
    cta = int(issue.parts.geometry.cta_of_lane[issue.lane])
    issue.parts.engine.submit(Operation(map(guarded, stages), (cta,)), kind, (issue.lane, *issue.sharers))


def landings(
    issue: Issue, space: str, address: int, barrier: int, mask: int | None, size_bytes: int, alignment: int
) -> list[tuple[int, int]]:
    """Return pairs of positions for a copy: the destination and the mbarrier.

    A multicast has one pair for each CTA in its mask, and any other copy has one pair.
    """
    barriers = _destinations(issue, barrier, mask)
    if mask is not None and "cta_group::2" in issue.instruction.opcode:
        barriers = [_in_pair(each, barrier) for each in barriers]
    ends = zip(_destinations(issue, address, mask), barriers, strict=True)
    return [landing(issue, space, to, at, size_bytes, alignment) for to, at in ends]


def _in_pair(destination: int, barrier: int) -> int:
    """Return the mbarrier that a multicast of ``.cta_group::2`` signals.

    The mbarrier is in a CTA of the destination's pair. The rank of the mbarrier's CTA has the same parity as the rank
    of the CTA in the mbarrier operand (PTX ISA, "cp.async.bulk.tensor").
    """
    parity = 1 << RANK_SHIFT
    return destination & ~parity | barrier & parity


def landing(issue: Issue, space: str, address: int, barrier: int, size_bytes: int, alignment: int) -> tuple[int, int]:
    """Return two positions for a copy: its destination, and its signaled mbarrier.

    The signaled mbarrier is in the destination's CTA, at the offset of the mbarrier operand. This was measured on an
    H200 for cp.async.bulk with an mbarrier in another CTA. With .cta_group::2, the mbarrier may be in the peer CTA of
    the pair (PTX ISA, "cp.async.bulk.tensor").
    """
    place, named = issue.position(space, address, size_bytes, alignment), issue.position(space, barrier, BYTES, BYTES)
    pitch = issue.parts.memory.shared_pitch
    signaled = place // pitch * pitch + named % pitch
    if signaled == named or "cta_group::2" in issue.instruction.opcode:
        return place, named
    issue.parts.events.tell(SignaledElsewhere(issue.lanes, issue.instruction, named, signaled))
    return place, signaled


def _destinations(issue: Issue, address: int, mask: int | None) -> list[int]:
    """Return the destination addresses of a copy; a multicast has the same offset in each CTA of its mask."""
    if mask is None:
        return [address]
    ctas = issue.parts.geometry.cluster_ctas
    ranks = [rank for rank in range(16) if mask >> rank & 1]
    if not ranks or ranks[-1] >= ctas:
        what = "a CTA that it does not have" if ranks else "no CTA"
        raise Fault(
            "cluster", f"the multicast mask 0x{mask:x} selects {what}, but the cluster has {ctas} CTAs", issue.lanes
        )
    return [rank << RANK_SHIFT | address & OFFSET_MASK for rank in ranks]


def once_per_warp(lanes: Lanes, *operands: np.ndarray) -> dict[int, tuple[int, ...]]:
    """Return one lane for each warp and each set of operands of a store.

    An H200 runs one UTMASTG for the lanes of a warp that execute a store with the same operands (recorded). For a load
    or a reduction, an H200 runs one instruction for each lane (recorded).
    """
    here = as_array(lanes)
    if len(here) == 1:
        return {int(here[0]): ()}
    found: dict[tuple[int, ...], list[int]] = {}
    named = [np.broadcast_to(each, here.shape).tolist() for each in (here // WARP, *operands)]
    for lane, *key in zip(here.tolist(), *named, strict=True):
        found.setdefault(tuple(key), []).append(lane)
    return {first: tuple(others) for first, *others in found.values()}


def each_lane(
    group: Group[Parts], lanes: Lanes, instruction: Instruction, proxy: str = "async"
) -> Iterator[tuple[int, Issue]]:
    """Yield the index of each thread, and a separate operation for this thread."""
    numbers = range(lanes.start, lanes.stop, lanes.step) if isinstance(lanes, slice) else lanes.tolist()
    for index, lane in enumerate(numbers):
        yield index, Issue(group.parts, lane, instruction, proxy)
