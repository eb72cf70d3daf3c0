"""Findings in words: what happened, with numbers, both places, the rule, and what mends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from ..._ptx import Instruction
from ..._warps.lanes import as_array
from ..._warps.observe import Event
from ..model.operations import Mark
from ..model.shadow import Conflict, Units
from ..model.trail import Explained
from .array_words import ArrayWords
from .barrier_words import BarrierWords
from .products import OfProducts
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

__all__ = ["Words"]


class Words(ArrayWords, BarrierWords, OfProducts):
    """Turns what the sanitizer has found into findings."""

    # ---- accesses ----

    def race(self, found: Conflict, lane: int, mark: Mark | None, kind: str, now: Instruction) -> None:
        """Two accesses that nothing orders."""
        before = self._ledger.instruction(int(found.sites[0]))
        if "mbarrier" in (before.opcode[0], now.opcode[0]):
            self._barrier_race(before, now, lane, found)
            return
        if self._ledger.known("race", "error", id(before), id(now)):
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
        """Two threads write the same, in any order."""
        before = self._ledger.instruction(int(found.sites[0]))
        severity = "error" if strict else "advice"
        if self._ledger.known("race", severity, id(before), id(now)):
            return
        text = (
            f"{self._thread(lane)} writes {self._bytes(found)}, and {self._who_before(lane, found, before)} writes the "
            "same value there: nothing orders the two"
        )
        self._add("race", severity, text, now, before, lane, RULES["order"], ONE_WRITER)

    def narrow(
        self, found: Conflict, lane: int, mark: Mark | None, kind: str, now: Instruction, disputed: bool
    ) -> None:
        """They are ordered by what counts in one CTA only, and are of two."""
        before = self._ledger.instruction(int(found.sites[0]))
        severity = "advice" if disputed else "error"
        if self._ledger.known("race", severity, id(before), id(now)):
            return
        done = "wrote" if found.before == "write" else "read"
        text = (
            f"{self._who(lane, mark)} {kind}s {self._bytes(found)}, which {self._who_before(lane, found, before)} "
            f"{done}: all that orders the two is an mbarrier's arrival or wait of scope .cta, between different CTAs"
        )
        self._add("race", severity, text, now, before, lane, RULES["scope"], WIDER_SCOPE, self._after(lane, mark))

    def missing_fence(
        self, found: Conflict, lane: int, mark: Mark | None, kind: str, now: Instruction, disputed: bool
    ) -> None:
        """They are ordered, and are of two proxies."""
        before = self._ledger.instruction(int(found.sites[0]))
        severity = "advice" if disputed else "error"
        if self._ledger.known("missing-proxy-fence", severity, id(before), id(now)):
            return
        wrote = found.before == "write"
        text = (
            f"{self._who(lane, mark)} {kind}s {self._bytes(found)} through the async proxy, which "
            f"{self._who_before(lane, found, before)} {'wrote' if wrote else 'read'} through the generic proxy, "
            "and no fence.proxy.async lies between"
        )
        remedy = FENCE_BEFORE_STORE if wrote else FENCE_BEFORE_LOAD
        after = self._after(lane, mark)
        self._add("missing-proxy-fence", severity, text, now, before, lane, RULES["proxy"], remedy, after)

    def before_its_wait(
        self, lane: int, kind: str, address: int, now: Instruction, other: Instruction, others_kind: str
    ) -> None:
        """A grid that began early does not wait for the one before, which touches the same."""
        if self._ledger.known("race", "error", id(other), id(now)):
            return
        text = (
            f"{self._thread(lane)} {kind}s global memory at 0x{address:x}, which the grid before {others_kind}s at "
            f"{place_of(other.places, other.line)}, and no griddepcontrol.wait precedes"
        )
        self._add("race", "error", text, now, other, lane, RULES["grids"], WAIT_FOR_GRIDS)

    # ---- barriers ----

    def barrier_not_ready(self, position: int, mark: Mark, site: int) -> None:
        """An operation names an mbarrier whose making does not precede it."""
        before = self._ledger.instruction(site)
        if self._ledger.known("barrier-use", "error", id(before), id(mark.instruction)):
            return
        text = (
            f"{self._who(mark.lane, mark)} signals {self._mbarrier(position)}, and nothing orders that after its "
            "mbarrier.init"
        )
        remedy = "put __syncthreads(), or in a cluster its barrier, between mbarrier.init and the first use"
        now = mark.instruction
        after = (*mark.after, self._trail.fence_of_inits)
        self._add("barrier-use", "error", text, now, before, mark.lane, RULES["init"], remedy, after)

    def signaled_elsewhere(self, event: Event) -> None:
        """A copy names an mbarrier of another CTA than its destination."""
        named, signaled, now = event.details["named"], event.details["signaled"], cast(Instruction, event.instruction)
        lane, barrier = int(as_array(event.lanes)[0]), self._machine.mbarriers.known(named)
        if self._ledger.known("cluster", "error", id(barrier and barrier.made), id(now)):
            return
        cta = signaled // self._machine.memory.shared_pitch
        text = (
            f"{name_of(now)} that {self._thread(lane)} issued writes shared memory of block "
            f"{self._machine.geometry.block_index(cta)}, and names the mbarrier {self._mbarrier(named)}; the one that "
            f"it signals is {self._mbarrier(signaled)}, as on an H200"
        )
        remedy = "name the mbarrier of the CTA that the copy writes, by mapa of the same rank, and wait for it there"
        made = barrier.made if barrier is not None else None
        self._add("cluster", "error", text, now, made, lane, RULES["elsewhere"], remedy, self._trail.before(lane))

    def barrier_not_fenced(self, position: int, mark: Mark, site: int, disputed: bool) -> None:
        """... precedes it, but through the generic proxy."""
        before = self._ledger.instruction(site)
        severity = "advice" if disputed else "error"
        if self._ledger.known("missing-proxy-fence", severity, id(before), id(mark.instruction)):
            return
        text = (
            f"{self._who(mark.lane, mark)} signals {self._mbarrier(position)} through the async proxy, and no fence "
            "stands behind its mbarrier.init"
        )
        remedy = "fence_barrier_init() (fence.mbarrier_init.release.cluster), or fence.proxy.async, after mbarrier.init"
        now = mark.instruction
        self._add("missing-proxy-fence", severity, text, now, before, mark.lane, RULES["proxy"], remedy, mark.after)

    def bytes_unexpected(self, positions: list[int], lane: int, now: Instruction | None) -> None:
        """mbarriers end, with a tx-count below zero."""
        for position in positions:
            left = self._machine.mbarriers.unexpected(position)
            if left is not None and now is not None and not self._ledger.known("transaction-count", "advice", id(now)):
                self._unexpected(position, left, lane, now)

    def _unexpected(self, position: int, left: Mbarrier, lane: int, now: Instruction) -> None:
        text = (
            f"{self._mbarrier(position)} ends with a tx-count of {left.tx}: {-left.tx:,} bytes came in its phase "
            f"{left.phase} that nobody expects, and so that phase cannot complete"
        )
        remedy = (
            "mbarrier.expect_tx (Barrier::expect_tx(), arrive_expect_tx()) of the bytes of each copy; and wait for the "
            "phase before the mbarrier ends"
        )
        self._add("transaction-count", "advice", text, now, None, lane, RULES["bytes"], remedy, left.related)

    # ---- the end ----

    def exit_while_reading(self, mark: Mark, lane: int, related: Sequence[Explained] = ()) -> None:
        """Nobody can know when the store has read."""
        if self._ledger.known("early-exit", "error", id(mark.instruction)):
            return
        text = (
            f"{self._thread(lane)} ends while {name_of(mark.instruction)}, which it issued, may still read shared "
            "memory: its bulk group was not waited for"
        )
        remedy = (
            "commit_group(), and wait_group_read<0>() (cp.async.bulk.wait_group.read 0) by the same thread at the end"
        )
        self._add("early-exit", "error", text, mark.instruction, None, lane, RULES["group"], remedy, related)

    def exit_while_copying(self, now: Instruction, lane: int, related: Sequence[Explained] = ()) -> None:
        """Report a ``cp.async`` that no thread of its CTA has waited for."""
        if self._ledger.known("early-exit", "error", id(now)):
            return
        block = self._machine.geometry.block_index(int(self._machine.geometry.cta_of_lane[lane]))
        text = (
            f"block {block} ends while {name_of(now)}, which {self._thread(lane)} issued, may still write its shared "
            "memory: no thread has waited for it"
        )
        remedy = "cp.async.wait_all before the end; or issue no copy beyond the last one that is used"
        self._add("early-exit", "error", text, now, None, lane, RULES["lifetime"], remedy, related)

    def exit_while_landing(self, mark: Mark, cta: int, position: int, related: Sequence[Explained] = ()) -> None:
        """A load writes into memory that is no longer the CTA's."""
        if self._ledger.known("early-exit", "error", id(mark.instruction)):
            return
        block = self._machine.geometry.block_index(cta)
        text = (
            f"block {block} ends while {name_of(mark.instruction)} may still write its shared memory: none of its "
            f"threads has waited for that phase of {self._mbarrier(position)}"
        )
        remedy = "issue no load beyond the last one that is used, or wait for it before the end"
        self._add("early-exit", "error", text, mark.instruction, None, mark.lane, RULES["lifetime"], remedy, related)

    def exit_while_sending(self, mark: Mark, cta: int, position: int, related: Sequence[Explained] = ()) -> None:
        """A copy to another CTA reads memory that is no longer the CTA's."""
        if self._ledger.known("early-exit", "error", id(mark.instruction)):
            return
        text = (
            f"block {self._machine.geometry.block_index(cta)} ends while {name_of(mark.instruction)} may still read "
            f"its shared memory: nothing orders its end after that phase of {self._mbarrier(position)}"
        )
        remedy = "a barrier of the cluster (cluster_sync()) at the end, behind the wait for the copy's mbarrier"
        self._add("early-exit", "error", text, mark.instruction, None, mark.lane, RULES["lifetime"], remedy, related)

    def exit_before_remote(
        self, instruction: Instruction, lane: int, cta: int, related: Sequence[Explained] = ()
    ) -> None:
        """A CTA of a cluster ends, and others use its shared memory."""
        if self._ledger.known("early-exit", "error", id(instruction)):
            return
        what = "arrives at an mbarrier" if instruction.opcode[0] == "mbarrier" else "uses shared memory"
        text = (
            f"{self._thread(lane)} {what} of block {self._machine.geometry.block_index(cta)}, and nothing orders that "
            "before the end of that block"
        )
        remedy = "a barrier of the cluster (cluster_sync()), or waits for all such arrivals, at the end of the kernel"
        self._add("early-exit", "error", text, instruction, None, lane, RULES["lifetime"], remedy, related)

    # ---- maps, registers, memory that nobody has written ----

    def map_without_fence(self, mark: Mark, changed: Instruction, lacks: str) -> None:
        """A map that was changed, and not released, or not acquired."""
        now = mark.instruction
        if self._ledger.known("missing-tensor-map-fence", "error", id(changed), id(now)):
            return
        text = (
            f"{self._who(mark.lane, mark)} uses a tensor map that {'.'.join(changed.opcode[:2])} at "
            f"{place_of(changed.places, changed.line)} has changed, and no fence.proxy.tensormap::generic.{lacks} of "
            "it precedes"
        )
        remedy = ACQUIRE_MAP if lacks.startswith("acquire") else RELEASE_MAP
        after = self._unacquired(mark)
        self._add("missing-tensor-map-fence", "error", text, now, changed, mark.lane, RULES["map"], remedy, after)

    def map_in_memory(self, mark: Mark, address: int, disputed: bool) -> None:
        """A map that lies in global memory, where the TMA unit may know what was there before."""
        now = mark.instruction
        severity = "advice" if disputed else "error"
        if self._ledger.known("missing-tensor-map-fence", severity, id(now)):
            return
        text = (
            f"{self._who(mark.lane, mark)} uses a tensor map in global memory, at 0x{address:x}, and no "
            "fence.proxy.tensormap::generic.acquire of it precedes: the TMA unit may have a stale copy"
        )
        remedy = (
            "fence_tensor_map_acquire(map) (fence.proxy.tensormap::generic.acquire.sys) by the thread that issues the "
            "copy; or pass the map as a __grid_constant__ parameter"
        )
        after = self._unacquired(mark)
        self._add("missing-tensor-map-fence", severity, text, now, None, mark.lane, RULES["map"], remedy, after)

    def unwritten_local_memory(self, event: Event) -> None:
        """Report threads that read local memory which they have not written."""
        now, lane = cast(Instruction, event.instruction), int(as_array(event.lanes)[0])
        if self._ledger.known("uninitialized-read", "advice", id(now)):
            return
        size, at = event.details["size_bytes"], int(event.details["addresses"][0]) - event.details["base"]
        text = f"{self._thread(lane)} reads {size} bytes at byte {at} of its local variables, which it has not written"
        remedy = "give each element of the local array a value before it is read; see the indices of both"
        self._add("uninitialized-read", "advice", text, now, None, lane, RULES["local"], remedy)

    def uninitialized(
        self, who: np.ndarray, units: Units, unwritten: np.ndarray, now: Instruction, beside: Instruction | None,
        is_operation: bool,
    ) -> None:  # fmt: skip
        """Bytes that nobody has written are read; which units of each access, `unwritten` says. What lies beside them
        has been written by another statement."""
        if self._ledger.known("uninitialized-read", "advice", id(now)):
            return
        unit = int(units.all[unwritten][0]) * self._unit_bytes
        name = self._machine.program.shared_name(unit % self._machine.memory.shared_pitch)
        lane = int(who[unwritten.any(axis=1)][0])
        who_reads = f"{name_of(now)} that {self._thread(lane)} issued" if is_operation else self._thread(lane)
        text = f"{who_reads} reads shared memory that nobody has written: {name}"
        remedy = "write it first, or wait for the copy that does; what lies there before differs from run to run"
        related = (("written beside it", beside), *self._after(lane, None))
        self._add("uninitialized-read", "advice", text, now, None, lane, RULES["undefined"], remedy, related)
