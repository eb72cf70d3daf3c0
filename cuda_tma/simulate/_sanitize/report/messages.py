"""The messages of findings: the event with its numbers, both places, the rule and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..._ptx import Instruction
from ..._warps.events import SignaledElsewhere, UnwrittenRead
from ..._warps.lanes import as_array
from ..model.history import Explained
from ..model.operations import IssueRecord
from ..model.shadow import Cells, Conflict
from .global_messages import GlobalMessages
from .mbarrier_messages import MbarrierMessages
from .product_messages import ProductMessages
from .remedies import (
    ACQUIRE_MAP,
    FENCE_BEFORE_LOAD,
    FENCE_BEFORE_STORE,
    ONE_WRITER,
    RELEASE_MAP,
    RULES,
    WAIT_FOR_GRIDS,
    WIDER_SCOPE,
    remedy_of,
)
from .statements import name_of, place_of

if TYPE_CHECKING:
    from ..._sync.mbarrier import Mbarrier

__all__ = ["Messages"]


class Messages(GlobalMessages, MbarrierMessages, ProductMessages):
    """Turns violations into findings."""

    # ---- accesses ----

    def race(self, found: Conflict, lane: int, mark: IssueRecord | None, kind: str, now: Instruction) -> None:
        """Report two unordered accesses."""
        before = self._collector.instruction(int(found.sites[0]))
        if "mbarrier" in (before.opcode[0], now.opcode[0]):
            self._barrier_race(before, now, lane, found)
            return
        if self._collector.known("race", "error", id(before), id(now)):
            return
        done = "writing" if found.before == "write" else "reading"
        text = (
            f"{self._who(lane, mark)} {kind}s {self._bytes(found)} while {self._who_before(lane, found, before)} may "
            f"still be {done} them: nothing orders the two"
        )
        who, _ = self._before(lane, found)
        is_own = mark is not None and who == lane
        remedy = remedy_of(
            found.before,
            now,
            who,
            is_own=is_own,
            is_in_bulk_group=mark is not None and mark.group is not None and mark.group[0] == "bulk",
            is_elsewhere=self._is_elsewhere(who, lane),
        )
        beside = (*self._after(lane, mark), *self._groups(lane, found))
        self._add("race", "error", text, now, before, lane, RULES["order"], remedy, beside)

    def same_value(self, found: Conflict, lane: int, now: Instruction, strict: bool) -> None:
        """Report two unordered writes of the same value."""
        before = self._collector.instruction(int(found.sites[0]))
        severity = "error" if strict else "advice"
        if self._collector.known("race", severity, id(before), id(now)):
            return
        text = (
            f"{self._thread(lane)} writes {self._bytes(found)}, and {self._who_before(lane, found, before)} writes the "
            "same value there: nothing orders the two"
        )
        self._add("race", severity, text, now, before, lane, RULES["order"], ONE_WRITER)

    def narrow(
        self, found: Conflict, lane: int, mark: IssueRecord | None, kind: str, now: Instruction, disputed: bool
    ) -> None:
        """Report accesses of two CTAs that only operations of scope .cta order."""
        before = self._collector.instruction(int(found.sites[0]))
        severity = "advice" if disputed else "error"
        if self._collector.known("race", severity, id(before), id(now)):
            return
        done = "wrote" if found.before == "write" else "read"
        text = (
            f"{self._who(lane, mark)} {kind}s {self._bytes(found)}, which {self._who_before(lane, found, before)} "
            f"{done}: only an mbarrier arrival or wait of scope .cta orders the two, and they are in different CTAs"
        )
        self._add("race", severity, text, now, before, lane, RULES["scope"], WIDER_SCOPE, self._after(lane, mark))

    def missing_fence(
        self, found: Conflict, lane: int, mark: IssueRecord | None, kind: str, now: Instruction, disputed: bool
    ) -> None:
        """Report ordered accesses through two proxies without a proxy fence."""
        before = self._collector.instruction(int(found.sites[0]))
        severity = "advice" if disputed else "error"
        if self._collector.known("missing-proxy-fence", severity, id(before), id(now)):
            return
        wrote = found.before == "write"
        text = (
            f"{self._who(lane, mark)} {kind}s {self._bytes(found)} through the async proxy, which "
            f"{self._who_before(lane, found, before)} {'wrote' if wrote else 'read'} through the generic proxy, "
            "with no fence.proxy.async between the two"
        )
        remedy = FENCE_BEFORE_STORE if wrote else FENCE_BEFORE_LOAD
        after = self._after(lane, mark)
        self._add("missing-proxy-fence", severity, text, now, before, lane, RULES["proxy"], remedy, after)

    def before_its_wait(
        self, lane: int, kind: str, address: int, now: Instruction, other: Instruction, others_kind: str
    ) -> None:
        """Report an access of a grid that began early, and has not waited for the preceding grid."""
        if self._collector.known("race", "error", id(other), id(now)):
            return
        text = (
            f"{self._thread(lane)} {kind}s global memory at 0x{address:x}, which the preceding grid {others_kind}s at "
            f"{place_of(other.places, other.line)}, with no griddepcontrol.wait before this access"
        )
        self._add("race", "error", text, now, other, lane, RULES["grids"], WAIT_FOR_GRIDS)

    # ---- barriers ----

    def barrier_not_ready(self, position: int, mark: IssueRecord, site: int) -> None:
        """Report an operation that is not ordered after the initialization of its mbarrier."""
        before = self._collector.instruction(site)
        if self._collector.known("barrier-use", "error", id(before), id(mark.instruction)):
            return
        text = (
            f"{self._who(mark.lane, mark)} signals {self._mbarrier(position)}, and nothing orders that after its "
            "mbarrier.init"
        )
        remedy = "put __syncthreads(), or in a cluster its barrier, between mbarrier.init and the first use"
        now = mark.instruction
        after = (*mark.after, self._history.fence_of_inits)
        self._add("barrier-use", "error", text, now, before, mark.lane, RULES["init"], remedy, after)

    def signaled_elsewhere(self, event: SignaledElsewhere) -> None:
        """Report a copy whose mbarrier is in another CTA than its destination."""
        named, signaled, now = event.named, event.signaled, event.instruction
        lane, barrier = int(as_array(event.lanes)[0]), self._parts.mbarriers.known(named)
        if self._collector.known("cluster", "error", id(barrier and barrier.made), id(now)):
            return
        cta = signaled // self._parts.memory.shared_pitch
        text = (
            f"{name_of(now)} that {self._thread(lane)} issued writes shared memory of block "
            f"{self._parts.geometry.block_index(cta)}, and names the mbarrier {self._mbarrier(named)}; the one that "
            f"it signals is {self._mbarrier(signaled)}, as on an H200"
        )
        remedy = "name the mbarrier of the CTA that the copy writes, by mapa of the same rank, and wait for it there"
        made = barrier.made if barrier is not None else None
        self._add("cluster", "error", text, now, made, lane, RULES["elsewhere"], remedy, self._history.before(lane))

    def barrier_not_fenced(self, position: int, mark: IssueRecord, site: int, disputed: bool) -> None:
        """Report a signal through the async proxy without a fence after the mbarrier's initialization."""
        before = self._collector.instruction(site)
        severity = "advice" if disputed else "error"
        if self._collector.known("missing-proxy-fence", severity, id(before), id(mark.instruction)):
            return
        text = (
            f"{self._who(mark.lane, mark)} signals {self._mbarrier(position)} through the async proxy, with no "
            "fence between its mbarrier.init and this use"
        )
        remedy = "fence_barrier_init() (fence.mbarrier_init.release.cluster), or fence.proxy.async, after mbarrier.init"
        now = mark.instruction
        self._add("missing-proxy-fence", severity, text, now, before, mark.lane, RULES["proxy"], remedy, mark.after)

    def bytes_unexpected(self, positions: list[int], lane: int, now: Instruction | None) -> None:
        """Report mbarriers that end with a negative tx-count."""
        for position in positions:
            left = self._parts.mbarriers.unexpected(position)
            if (
                left is not None
                and now is not None
                and not self._collector.known("transaction-count", "advice", id(now))
            ):
                self._unexpected(position, left, lane, now)

    def _unexpected(self, position: int, left: Mbarrier, lane: int, now: Instruction) -> None:
        text = (
            f"{self._mbarrier(position)} ends with a tx-count of {left.tx}: {-left.tx:,} bytes arrived in its phase "
            f"{left.phase} without an expect_tx, so that phase cannot complete"
        )
        remedy = (
            "execute mbarrier.expect_tx (Barrier::expect_tx(), arrive_expect_tx()) for the bytes of each copy, and "
            "wait for the phase before the mbarrier ends"
        )
        self._add("transaction-count", "advice", text, now, None, lane, RULES["bytes"], remedy, left.related)

    # ---- the end ----

    def exit_while_reading(self, mark: IssueRecord, lane: int, related: Sequence[Explained] = ()) -> None:
        """Report a thread that ends before its bulk store has read shared memory."""
        if self._collector.known("early-exit", "error", id(mark.instruction)):
            return
        text = (
            f"{self._thread(lane)} ends while {name_of(mark.instruction)}, which it issued, may still read shared "
            "memory: the thread has not waited for its bulk group"
        )
        remedy = (
            "execute commit_group() and wait_group_read<0>() (cp.async.bulk.wait_group.read 0) in the same thread at "
            "the end"
        )
        self._add("early-exit", "error", text, mark.instruction, None, lane, RULES["group"], remedy, related)

    def exit_while_copying(self, now: Instruction, lane: int, related: Sequence[Explained] = ()) -> None:
        """Report a ``cp.async`` that no thread of its CTA has waited for."""
        if self._collector.known("early-exit", "error", id(now)):
            return
        block = self._parts.geometry.block_index(int(self._parts.geometry.cta_of_lane[lane]))
        text = (
            f"block {block} ends while {name_of(now)}, which {self._thread(lane)} issued, may still write its shared "
            "memory: no thread has waited for it"
        )
        remedy = "execute cp.async.wait_all before the end, or issue no unused copy"
        self._add("early-exit", "error", text, now, None, lane, RULES["lifetime"], remedy, related)

    def exit_while_landing(self, mark: IssueRecord, cta: int, position: int, related: Sequence[Explained] = ()) -> None:
        """Report a load that may write shared memory of a CTA that has ended."""
        if self._collector.known("early-exit", "error", id(mark.instruction)):
            return
        block = self._parts.geometry.block_index(cta)
        text = (
            f"block {block} ends while {name_of(mark.instruction)} may still write its shared memory: none of its "
            f"threads has waited for that phase of {self._mbarrier(position)}"
        )
        remedy = "issue no unused load, or wait for it before the end"
        self._add("early-exit", "error", text, mark.instruction, None, mark.lane, RULES["lifetime"], remedy, related)

    def exit_while_sending(self, mark: IssueRecord, cta: int, position: int, related: Sequence[Explained] = ()) -> None:
        """Report a copy to another CTA that may read shared memory of a CTA that has ended."""
        if self._collector.known("early-exit", "error", id(mark.instruction)):
            return
        text = (
            f"block {self._parts.geometry.block_index(cta)} ends while {name_of(mark.instruction)} may still read "
            f"its shared memory: nothing orders its end after that phase of {self._mbarrier(position)}"
        )
        remedy = "execute a cluster barrier (cluster_sync()) at the end, after the wait for the copy's mbarrier"
        self._add("early-exit", "error", text, mark.instruction, None, mark.lane, RULES["lifetime"], remedy, related)

    def exit_before_remote(
        self, instruction: Instruction, lane: int, cta: int, related: Sequence[Explained] = ()
    ) -> None:
        """Report a use of another CTA's shared memory that may follow the end of that CTA."""
        if self._collector.known("early-exit", "error", id(instruction)):
            return
        what = "arrives at an mbarrier" if instruction.opcode[0] == "mbarrier" else "uses shared memory"
        text = (
            f"{self._thread(lane)} {what} of block {self._parts.geometry.block_index(cta)}, and nothing orders that "
            "before the end of that block"
        )
        remedy = (
            "execute a cluster barrier (cluster_sync()) at the end of the kernel, or wait there for all such arrivals"
        )
        self._add("early-exit", "error", text, instruction, None, lane, RULES["lifetime"], remedy, related)

    # ---- maps, and memory that was never written ----

    def map_without_fence(self, mark: IssueRecord, changed: Instruction, lacks: str) -> None:
        """Report a use of a changed map that was not released or not acquired."""
        now = mark.instruction
        if self._collector.known("missing-tensor-map-fence", "error", id(changed), id(now)):
            return
        text = (
            f"{self._who(mark.lane, mark)} uses a tensor map that {'.'.join(changed.opcode[:2])} at "
            f"{place_of(changed.places, changed.line)} has changed, with no fence.proxy.tensormap::generic.{lacks} "
            "before this use"
        )
        remedy = ACQUIRE_MAP if lacks.startswith("acquire") else RELEASE_MAP
        after = self._unacquired(mark)
        self._add("missing-tensor-map-fence", "error", text, now, changed, mark.lane, RULES["map"], remedy, after)

    def map_in_memory(self, mark: IssueRecord, address: int, disputed: bool) -> None:
        """Report a map in global memory of which the TMA unit may have a stale copy."""
        now = mark.instruction
        severity = "advice" if disputed else "error"
        if self._collector.known("missing-tensor-map-fence", severity, id(now)):
            return
        text = (
            f"{self._who(mark.lane, mark)} uses a tensor map in global memory, at 0x{address:x}, and no "
            "fence.proxy.tensormap::generic.acquire of it precedes: the TMA unit may have a stale copy"
        )
        remedy = (
            "execute fence_tensor_map_acquire(map) (fence.proxy.tensormap::generic.acquire.sys) in the thread that "
            "issues the copy, or pass the map as a __grid_constant__ parameter"
        )
        after = self._unacquired(mark)
        self._add("missing-tensor-map-fence", severity, text, now, None, mark.lane, RULES["map"], remedy, after)

    def unwritten_local_memory(self, event: UnwrittenRead) -> None:
        """Report threads that read local memory which they have not written."""
        now, lane = event.instruction, int(as_array(event.lanes)[0])
        if self._collector.known("uninitialized-read", "advice", id(now)):
            return
        size, at = event.size_bytes, int(event.addresses[0]) - event.base
        text = f"{self._thread(lane)} reads {size} bytes at byte {at} of its local variables, which it has not written"
        remedy = "write each element of the local array before it is read; compare the indices of both accesses"
        self._add("uninitialized-read", "advice", text, now, None, lane, RULES["local"], remedy)

    def uninitialized(
        self, who: np.ndarray, units: Cells, unwritten: np.ndarray, now: Instruction, beside: Instruction | None,
        is_operation: bool,
    ) -> None:  # fmt: skip
        """Report a read of bytes that were never written.

        `unwritten` marks these units of each access; `beside` is the statement that wrote the bytes next to them.
        """
        if self._collector.known("uninitialized-read", "advice", id(now)):
            return
        unit = int(units.all[unwritten][0]) * self._unit_bytes
        name = self._parts.program.shared_name(unit % self._parts.memory.shared_pitch)
        lane = int(who[unwritten.any(axis=1)][0])
        who_reads = f"{name_of(now)} that {self._thread(lane)} issued" if is_operation else self._thread(lane)
        text = f"{who_reads} reads shared memory that was never written: {name}"
        remedy = (
            "write the bytes before the read, or wait for the copy that writes them; their initial value is undefined"
        )
        related = (("written next to it", beside), *self._after(lane, None))
        self._add("uninitialized-read", "advice", text, now, None, lane, RULES["undefined"], remedy, related)
