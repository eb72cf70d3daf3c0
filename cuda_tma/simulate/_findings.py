"""Findings of a launch on the simulator, and a table of all kinds of findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .._files import shown_path
from .._given import printable
from ._places import by_way_of, statements
from ._ptx import Place

__all__ = ["KINDS", "Finding", "message_of"]

# Each row contains a kind of finding, its meaning, and a general remedy.
_TABLE = (
    (
        "race",
        "two unordered accesses to the same bytes, at least one of them a write",
        "order the two: by a barrier, by a wait for the phase of the copy's mbarrier, or by a wait for the store's "
        "group",
    ),
    (
        "missing-proxy-fence",
        "two accesses through different proxies (for example a store, then a TMA copy) without a proxy fence "
        "between them",
        "execute fence.proxy.async in the threads of the earlier access, before they signal",
    ),
    (
        "missing-tensor-map-fence",
        "a copy uses a tensor map that was changed, without fence.proxy.tensormap",
        "execute fence.proxy.tensormap::generic.acquire on the map in the thread that issues the copy",
    ),
    (
        "deadlock",
        "all remaining threads wait for events that cannot happen",
        "let the missing threads arrive, or pass the number of arriving threads to mbarrier.init or to the barrier; "
        "pass the parity of the awaited phase, which is 0 for the first, to the wait",
    ),
    (
        "transaction-count",
        "the bytes that an mbarrier expects differ from the bytes that arrive, or exceed its range",
        "expect the number of bytes that the copies of that phase write: for a box, its extents times the size of "
        "an element",
    ),
    (
        "barrier-use",
        "a barrier is used before its initialization, initialized again while in use, or receives too many arrivals",
        "initialize each barrier once, in one thread, and execute __syncthreads() before the first use; make the "
        "arrivals of a phase equal the count",
    ),
    (
        "early-exit",
        "a CTA ends while an operation may still read or write its shared memory, or arrive there",
        "before the end, wait for every issued copy, and in a cluster execute its barrier",
    ),
    (
        "misaligned",
        "an address, a coordinate or a size is not a multiple of the instruction's alignment",
        "declare shared memory for TMA with __align__(128), or 1024 for a swizzle, and use offsets that are "
        "multiples of it",
    ),
    (
        "out-of-bounds",
        "an access lies outside the memory of the kernel",
        "compare the index with the extents, or pass memory that is large enough",
    ),
    (
        "map-mismatch",
        "an instruction does not fit its tensor map (rank, mode, type), or the bytes are not a tensor map",
        "use the instruction of the map's rank and mode, and a map with this box",
    ),
    (
        "uninitialized-read",
        "a read of bytes that were never written",
        "write the bytes before the read",
    ),
    (
        "wgmma-order",
        "registers or shared memory of a wgmma are accessed before the wait for it, or without its fence",
        "execute wgmma.fence before the first product, and wgmma.commit_group and wgmma.wait_group before its "
        "accumulators are read",
    ),
    (
        "barrier-divergence",
        "threads of one barrier name different barriers or counts, diverge at a .sync.aligned instruction, or are "
        "not in the mask that they name",
        "execute the barrier in all its threads with the same number and, as the count, the number of these threads; "
        "in a warp, name in the mask exactly the lanes that execute it",
    ),
    (
        "cluster",
        "an instruction names a CTA outside the cluster or out of its reach, or needs a launch with clusters",
        "use ranks below the number of CTAs in the cluster, and only their bits in a mask; launch with clusters, of "
        "one CTA if one is enough",
    ),
    (
        "no-progress",
        "a loop does not end: it repeats one state, or exceeds the limit of steps",
        "make the loop's condition come true, before it or in another thread; or allow more steps (max_steps)",
    ),
    (
        "tensor-memory",
        "an instruction uses columns of tensor memory that are not allocated, lanes out of reach of its warp, or cells "
        "that were never written (advice if their values have no effect); or columns are not freed",
        "allocate the columns before their first use, with the address that tcgen05.alloc wrote, and free them once "
        "after their last",
    ),
    (
        "tcgen05-order",
        "tensor memory, or an operand of a tcgen05 operation, is accessed before the operation is complete",
        "wait for the mbarrier of tcgen05.commit, or execute tcgen05.wait, before the access",
    ),
    (
        "fault",
        "another error that ends the context: a trap, a failed assertion, a stack overflow",
        "see the message",
    ),
    (
        "leak",
        "a program does not free memory of the GPU until it ends",
        "free each allocation, or destroy its context",
    ),
    (
        "hardware-difference",
        "the memory after a launch on a GPU differs from that of the simulator",
        "run the kernel under more schedules; without a race, record the launch and report it",
    ),
)
KINDS: Mapping[str, str] = MappingProxyType({kind: text for kind, text, _ in _TABLE})
_REMEDIES = {kind: remedy for kind, _, remedy in _TABLE}


def message_of(happened: str, rule: str, remedy: str) -> str:
    """Return the message of a finding: the event, the rule and the remedy."""
    return f"{happened}. {rule}. Remedy: {remedy}"


@dataclass(frozen=True, slots=True)
class Finding:
    """An error or advice about a kernel.

    Attributes
    ----------
    kind : str
        One of :data:`KINDS`.
    severity : str
        ``"error"`` or ``"advice"``.
    message : str
        The event with its numbers, the rule and the remedy.
    source : tuple of Place
        The place of the statement, and of each call that inlines it. The tuple is empty if the PTX has no line
        information.
    blocks : tuple of tuple of int
        ``blockIdx`` of the affected blocks.
    threads : tuple of int
        The affected threads, numbered within the block with x first.
    ptx_line : int
        The line of the instruction in the PTX; 0 if the finding is not about one instruction.
    count : int
        The number of occurrences.
    other : tuple of Place
        The place of the conflicting statement; empty without a conflicting statement.
    other_ptx_line : int
        The line of the conflicting statement in the PTX; 0 without a conflicting statement.
    rule, remedy : str
        The rule and the remedy in the message; empty if the message does not contain them.
    related : tuple of (str, tuple of Place)
        Other statements that explain the finding, each with a label. A finding about two accesses contains the last
        barrier or wait before the later access. A deadlock contains the initialization of the mbarrier, the last
        expect_tx, the last arrival, and the waits of other threads.
    ends_launch : bool
        Whether the launch ended at this finding, so that the simulator did not check the rest of the kernel.
    """

    kind: str
    severity: str
    message: str
    source: tuple[Place, ...] = ()
    blocks: tuple[tuple[int, int, int], ...] = ()
    threads: tuple[int, ...] = ()
    ptx_line: int = 0
    count: int = 1
    other: tuple[Place, ...] = ()
    other_ptx_line: int = 0
    rule: str = ""
    remedy: str = ""
    related: tuple[tuple[str, tuple[Place, ...]], ...] = ()
    ends_launch: bool = False

    @property
    def general_remedy(self) -> str:
        """The general remedy for the kind of the finding."""
        return _REMEDIES[self.kind]

    @property
    def happened(self) -> str:
        """The part of the message that describes the event, without the rule and the remedy."""
        return self.message.removesuffix(message_of("", self.rule, self.remedy))

    def __str__(self) -> str:
        """Return the finding as a line of a compiler's output: place, severity, message, kind and other places."""
        own, inner = statements(self.source)
        where = [f"{shown_path(place.file)}:{place.line}" for place in own] or [f"PTX line {self.ptx_line}"]
        lines = [f"{where[0]}: {self.severity}: {self.message} [{self.kind}]"]
        lines += [f"  {by_way_of(inner).removeprefix(', ')}"] if inner else []
        lines += [f"  called at {place}" for place in where[1:]]
        beside = (("the other access", self.other), *self.related)
        lines += [f"  {name}: {_outermost(places)}" for name, places in beside if places]
        if self.blocks:
            lines.append(f"  block {self.blocks[0]}{_more(self.blocks)}, thread {self.threads[0]}{_more(self.threads)}")
        return printable("\n".join(lines))


def _outermost(places: tuple[Place, ...]) -> str:
    return f"{shown_path(places[-1].file)}:{places[-1].line}"


def _more(values: tuple) -> str:
    return f" and {len(values) - 1} more" if len(values) > 1 else ""
