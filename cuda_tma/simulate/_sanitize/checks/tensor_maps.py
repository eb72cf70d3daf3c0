"""The check of the fences of tensor maps in global memory.

``tensormap`` instructions and ordinary stores change a map. A thread that changes the map needs a release, and a thread
that uses the changed map needs an acquire. Each block that uses a map in global memory needs an acquire. Source: PTX
ISA 9.0, "membar, fence" (``fence.proxy.tensormap::generic.acquire``) and "tensormap.cp_fenceproxy"; CUDA C++
Programming Guide, "Tensor Memory Accelerator".
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any, NamedTuple

import numpy as np

from ..._copies.parts import Parts
from ..._copies.tensor_copy import MAP_BYTES
from ..._ptx import Instruction
from ..._warps.lanes import WARP
from ..._warps.observe import Access
from ..model.areas import Writer
from ..model.clocks import CLUSTER, CTA, GPU, ORDERED, Clocks, scope_of
from ..model.global_shadow import GlobalShadow
from ..model.history import History
from ..model.operations import IssueRecord, Operations
from ..report.collector import FindingCollector
from ..report.violations import ChangedMap, MapInMemory
from .maps_in_use import MapsInUse

__all__ = ["Change", "TensorMaps"]

_SCOPES = ("cta", "cluster", "gpu")
_MOST_RELEASES = 8  # The check keeps the last 8 releases of each thread.


class _Fence(NamedTuple):
    """A release or an acquire of a tensor map: its lane, epoch, time and scope, and the clock of the lane."""

    lane: int
    epoch: int
    time: int
    known: np.ndarray
    scope: int


class Change(NamedTuple):
    """A change of a tensor map, with its statement and, in `lacks`, the missing fence.

    `lacks` is empty if no fence is missing. If `lacks` contains a scope, such as ``"acquire.gpu"``, the kernel has the
    fence, but with too narrow a scope.
    """

    by: Instruction
    lacks: str


class TensorMaps:
    """The acquires of each tensor map in global memory, and the last releases of each thread."""

    def __init__(
        self,
        parts: Parts,
        clocks: Clocks,
        operations: Operations,
        collector: FindingCollector,
        shadow: GlobalShadow,
        history: History,
        strict: bool,
    ):
        self._clocks, self._collector, self._shadow = clocks, collector, shadow
        self._history, self._strict, self._memory = history, strict, parts.memory.all_global
        self._lanes_of_cta = parts.geometry.lanes_of_cta
        self.in_use = MapsInUse(clocks, operations)
        self._acquired: defaultdict[int, dict[int, _Fence]] = defaultdict(dict)
        self._released: defaultdict[int, deque[_Fence]] = defaultdict(lambda: deque(maxlen=_MOST_RELEASES))

    def forget(self, slot: int) -> None:
        """Remove the uses and acquires of the preceding cluster in a slot in which another cluster begins."""
        self.in_use.forget(slot)
        for lanes in self._acquired.values():
            for lane in [lane for lane in lanes if self._clocks.slot_of(lane) == slot]:
                del lanes[lane]

    def release(self, lanes: np.ndarray, scope: int) -> None:
        """Record a release by some lanes, which covers all preceding changes of tensor maps."""
        for fence in self._fences(lanes, scope):
            self._released[fence.lane].append(fence)

    def acquire(self, lanes: np.ndarray, addresses: np.ndarray, scope: int) -> None:
        """Record that each of some lanes acquires one tensor map.

        If a lane acquires a map several times, the first acquire that needs no other fence is kept.
        """
        for fence, address in zip(self._fences(lanes, scope), addresses.tolist(), strict=True):
            before = self._acquired[address].get(fence.lane)
            if before is None or self._lacks(address, before):
                self._acquired[address][fence.lane] = fence

    def _fences(self, lanes: np.ndarray, scope: int) -> list[_Fence]:
        clocks, now = self._clocks, self._clocks.now
        known = [clocks.known_to(slice(lane, lane + 1))[ORDERED] for lane in lanes.tolist()]
        each = zip(lanes.tolist(), clocks.own(lanes).tolist(), known, strict=True)
        return [_Fence(lane, epoch, now, clock, scope) for lane, epoch, clock in each]

    # ---- the order and the scopes of fences ----

    def _lacks(self, address: int, acquired: _Fence) -> str:
        """Return the name of the missing fence between changes of a map and an acquire; "" if none is missing."""
        writers = self._shadow.writers(address, MAP_BYTES)
        if not all(self._knows_of(acquired, writer) for writer in writers):
            return "acquire"
        needed = max((self._needed(acquired.lane, writer) for writer in writers), default=CTA)
        if acquired.scope < needed:
            return f"acquire.{_SCOPES[needed]}"
        released = [self._released_to(acquired, writer) for writer in writers]
        if all(scope >= needed for scope in released):
            return ""
        return f"release.{_SCOPES[needed]}" if all(scope >= CTA for scope in released) else "release"

    def _needed(self, lane: int, writer: Writer) -> int:
        """Return the narrowest scope that includes both a lane and the lane of a writer."""
        slot = self._clocks.slot_of(lane)
        if writer.slot != slot or writer.time < int(self._clocks.started[slot]):
            return GPU
        ctas = (each // self._lanes_of_cta for each in (lane % self._clocks.threads, writer.column))
        return CTA if len({*ctas}) == 1 else CLUSTER

    def _knows_of(self, fence: _Fence, writer: Writer) -> bool:
        """Return whether a fence follows a write.

        A fence also follows the earlier ``tensormap.cp_fenceproxy`` of its warp, because the threads of the warp
        execute this ``.sync.aligned`` instruction together.
        """
        lane = writer.slot * self._clocks.threads + writer.column
        if self._is_copy(writer) and lane // WARP == fence.lane // WARP and writer.time <= fence.time:
            return True
        return self._knows(fence, writer.slot, writer.column, writer.epoch, writer.time)

    def _knows(self, fence: _Fence, slot: int, column: int, epoch: int, time: int) -> bool:
        clocks = self._clocks
        started = int(clocks.started[slot])
        if clocks.slot_of(fence.lane) == slot and min(time, fence.time) >= started:
            return bool(column < len(fence.known) and fence.known[column] >= epoch)
        return bool(fence.known[clocks.threads + slot] >= time)

    def _is_copy(self, writer: Writer) -> bool:
        return self._collector.instruction(writer.site).opcode[:2] == ("tensormap", "cp_fenceproxy")

    def _released_to(self, acquired: _Fence, writer: Writer) -> int:
        """Return the widest scope of the releases between a write and an acquire; -1 without such a release."""
        if self._is_copy(writer):
            return scope_of(self._collector.instruction(writer.site).opcode, GPU)
        scopes = (
            fence.scope
            for fences in self._released.values()
            for fence in fences
            if self._knows_of(fence, writer) and self._follows(acquired, fence)
        )
        return max(scopes, default=-1)

    def _follows(self, acquired: _Fence, released: _Fence) -> bool:
        if acquired.lane == released.lane:
            return acquired.time > released.time
        slot, column = self._clocks.slot_of(released.lane), released.lane % self._clocks.threads
        return self._knows(acquired, slot, column, released.epoch, released.time)

    # ---- the uses of maps ----

    def use(self, address: int, mark: IssueRecord) -> None:
        """Check an operation that reads a tensor map."""
        change = self._change(address, mark)
        self.in_use.begin(address, mark)
        if change is not None:
            if change.lacks:
                self._report(ChangedMap, mark, other=change.by, lacks=change.lacks)
        elif not self._before(address, mark) and (array := self._memory.find(address)) is not None and array.writeable:
            self._report(MapInMemory, mark, address=address, is_disputed=not self._strict)

    def write(self, access: Access) -> None:
        """Report a write to global memory that changes a tensor map which an operation may still read."""
        if (found := self.in_use.overwritten(access)) is not None:
            self._collector.report(found)

    def _report(self, violation: type[ChangedMap | MapInMemory], mark: IssueRecord, **facts: Any) -> None:
        related = ("another acquire of a map", self._history.map_acquire), *mark.after
        self._collector.report(violation(now=mark.instruction, lane=mark.lane, related=related, **facts))

    def _change(self, address: int, mark: IssueRecord) -> Change | None:
        """Return the last change of a tensor map in this launch, and the missing fence before an operation."""
        writers = self._shadow.writers(address, MAP_BYTES)
        if not writers:
            return None
        lacks = {self._lacks(address, fence) for fence in self._before(address, mark)} or {"acquire"}
        # The finding names a missing release rather than a missing acquire, and a narrow scope rather than a missing
        # fence.
        missing = "" if "" in lacks else max(lacks)
        return Change(self._collector.instruction(max(writers, key=lambda writer: writer.time).site), missing)

    def _before(self, address: int, mark: IssueRecord) -> list[_Fence]:
        slot, clock, threads = self._clocks.slot_of(mark.lane), mark.clock[ORDERED], self._clocks.threads
        fences = self._acquired.get(address, {}).values()
        return [
            fence
            for fence in fences
            if self._clocks.slot_of(fence.lane) == slot and clock[fence.lane % threads] >= fence.epoch
        ]
