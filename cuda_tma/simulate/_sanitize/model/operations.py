"""Asynchronous operations, with the clock at the issue, and the group in which each operation completes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ..._ptx import Instruction
from ..._warps.events import ArriveAfterCopies, CommitGroup, IssuedTogether, WaitGroup
from ..._warps.geometry import Geometry
from ..._warps.lanes import WARPGROUP, Lanes, as_array
from ..report.statements import Explained
from .barriers import Barriers
from .clocks import Clocks

__all__ = ["IssueRecord", "Operations"]


@dataclass(slots=True, eq=False)
class IssueRecord:
    """The record of the issue of an asynchronous operation.

    Attributes
    ----------
    lane : int
        The lane that issued the operation.
    cluster : int
        The number of the lane's cluster in the grid.
    instruction : Instruction
    clock : numpy.ndarray, [row, column]
        The clock of the issuing lanes at the issue.
    group : tuple, optional
        The kind of the operation's groups and the lane that waits for them, such as ``("bulk", lane)``.
    epoch : int
        The number of the operation's group; the first group is 1.
    after : tuple of Explained
        The last barrier or wait of the issuing thread before the issue.
    """

    lane: int
    cluster: int
    instruction: Instruction
    clock: np.ndarray
    group: tuple[str, int] | None = None
    epoch: int = 0
    after: tuple[Explained, ...] = ()


@dataclass(slots=True)
class Groups:
    """The groups of asynchronous operations of one owner and one kind.

    Attributes
    ----------
    committed : int
        The number of committed groups.
    last : IssueRecord or None
        The last operation that was issued to any group.
    done : int
        The number of groups for which waits exist, including waits for the end of reads.
    waits, commits : Instruction or None
        The last wait, and the instruction that committed the last group.
    shared : list of (int, IssueRecord)
        The operations that this lane issued together with their owner, each with the number of this lane's group.
    """

    committed: int = 0
    last: IssueRecord | None = field(default=None)
    done: int = 0
    waits: Instruction | None = None
    commits: Instruction | None = None
    shared: list[tuple[int, IssueRecord]] = field(default_factory=list)

    def issue(self, mark: IssueRecord) -> None:
        """Add an operation to the open group."""
        mark.epoch = self.committed + 1
        self.last = mark

    def wait(self, most: int, by: Instruction | None) -> int:
        """Return the number of complete groups after a wait that leaves at most `most` groups pending."""
        self.waits = by
        self.done = max(self.done, self.committed - most)
        return self.committed - most

    def shared_until(self, done: int) -> list[IssueRecord]:
        """Return, for each owner of shared operations, the last operation in this lane's first `done` groups."""
        over = {mark.lane: (epoch, mark) for epoch, mark in self.shared if epoch <= done}
        self.shared = [*over.values(), *(each for each in self.shared if each[0] > done)]
        return [mark for _, mark in over.values()]

    @property
    def open(self) -> IssueRecord | None:
        """The last operation, if it may still be pending after all waits; otherwise None."""
        return self.last if self.last is not None and self.last.epoch > self.done else None


class Operations:
    """The groups of each owner of operations, which is a thread, or the first thread of a warpgroup."""

    def __init__(self, geometry: Geometry, clocks: Clocks):
        self._geometry, self._clocks = geometry, clocks
        # The dictionary maps a kind of operation to the groups of each owner.
        self._groups: defaultdict[str, dict[int, Groups]] = defaultdict(dict)
        # The dictionary caches results of the method `groups_of`.
        self._groups_of: dict[tuple[str, int, int, int], tuple[np.ndarray, list[Groups]]] = {}
        # Each key identifies a statement at which several lanes issued copies, and the value contains the lanes, their
        # groups, and the statement.
        self._begun: dict[tuple[str, int, int, int, int], tuple[np.ndarray, np.ndarray, Instruction]] = {}

    def forget(self, slot: int) -> None:
        """Remove the operations of the preceding cluster in a slot in which another cluster begins."""
        self._groups_of.clear()
        for begun, (owners, numbers, instruction) in [*self._begun.items()]:
            others = owners // self._clocks.threads != slot
            self._begun[begun] = owners[others], numbers[others], instruction
        for groups in self._groups.values():
            for lane in [lane for lane in groups if self._clocks.slot_of(lane) == slot]:
                del groups[lane]

    def issue(self, lanes: slice, instruction: Instruction, kind: str | None) -> IssueRecord:
        """Record an operation that a thread or a warpgroup issues; `kind` is None for an operation without a group."""
        lane: int = lanes.start
        cluster = self._geometry.cluster_of_slot[self._clocks.slot_of(lane)]
        mark = IssueRecord(lane, cluster, instruction, self._clocks.known_to(lanes))
        if kind is not None:
            mark.group = (kind, lane)
            self._groups[kind].setdefault(lane, Groups()).issue(mark)
        return mark

    def groups_of(self, kind: str, lanes: np.ndarray, instruction: Instruction) -> np.ndarray:
        """Return the number of each lane's open group, to which an instruction adds a copy."""
        key = kind, int(lanes[0]), int(lanes[-1]), len(lanes)
        found, known = self._groups_of.get(key), self._groups[kind]
        if found is None or not np.array_equal(found[0], lanes):
            groups = [known.setdefault(lane, Groups()) for lane in lanes.tolist()]
            found = self._groups_of[key] = lanes, groups
        numbers = np.array([groups.committed + 1 for groups in found[1]])
        self._begun[(*key, id(instruction))] = lanes, numbers, instruction
        return numbers

    def open_group(self, kind: str, owner: int) -> int:
        """Return the number of the group that an owner commits next."""
        return self._groups[kind].setdefault(owner, Groups()).committed + 1

    def unfinished(self, kind: str, lanes: slice) -> Iterator[tuple[int, int, Instruction]]:
        """Yield the lane, the group and the instruction of each operation for which its lane has not waited."""
        for lane, groups in self.owned(kind, lanes):
            if (mark := groups.open) is not None:
                yield lane, mark.epoch, mark.instruction
        for (of, *_), (owners, numbers, instruction) in self._begun.items():
            for lane, number in zip(owners.tolist(), numbers.tolist(), strict=True) if of == kind else ():
                if lanes.start <= lane < lanes.stop and number > self._groups[kind][lane].done:
                    yield lane, number, instruction

    def issue_together(self, event: IssuedTogether) -> None:
        """Record an operation that several lanes of a warp issue together.

        The first lane owns the operation, but each of the lanes may wait for the operation.
        """
        first, *others = as_array(event.lanes).tolist()
        if event.kind is None:
            return
        known = self._groups[event.kind]
        mark = known[first].last
        if mark is None:
            return
        for lane in others:
            groups = known.setdefault(lane, Groups())
            groups.shared.append((groups.committed + 1, mark))

    def owned(self, kind: str, lanes: Lanes) -> list[tuple[int, Groups]]:
        """Return the owners among some lanes in ascending order, with their groups.

        One lane owns the wgmma groups of all 128 lanes of a warpgroup.
        """
        known = self._groups[kind]
        return [(lane, known[lane]) for lane in sorted(known.keys() & as_array(lanes).tolist())]

    def commit(self, event: CommitGroup) -> None:
        """Commit the open groups of some lanes."""
        for _, groups in self.owned(event.kind, event.lanes):
            groups.committed += 1
            groups.commits = event.instruction

    def related(self, who: object) -> tuple[Explained, ...]:
        """Return the last commit and the last wait of an owner such as ``("bulk", lane, "read")``.

        A finding about a missing wait contains the two statements.
        """
        if not isinstance(who, tuple) or (groups := self._groups[who[0]].get(who[1])) is None:
            return ()
        return ("its group is closed", groups.commits), ("last wait for its groups", groups.waits)

    def wait(self, event: WaitGroup) -> None:
        """Record the completion of the groups for which an instruction waits."""
        if event.kind == "bulk":
            self._bulk_wait(event)
        elif event.kind == "wgmma":
            self._wgmma_wait(event)
        else:
            self._cp_async_wait(event)

    def _bulk_wait(self, event: WaitGroup) -> None:
        """Record the completion of bulk groups at ``cp.async.bulk.wait_group{.read}``."""
        for lane, groups in self.owned("bulk", event.lanes):
            done = groups.wait(event.most, event.instruction)
            for what in ("read",) if event.reads_only else ("read", "write"):
                self._complete(slice(lane, lane + 1), ("bulk", lane, what), done)
                for mark in groups.shared_until(done):
                    self._complete(slice(lane, lane + 1), ("bulk", mark.lane, what), mark.epoch)

    def _cp_async_wait(self, event: WaitGroup) -> None:
        """Record the completion of ``cp.async`` groups at ``cp.async.wait_group`` or ``cp.async.wait_all``."""
        clocks, owned = self._clocks, self.owned("cp.async", event.lanes)
        if not owned:
            return
        lanes, columns, done = np.zeros((3, len(owned)), np.int64)
        for at, (lane, groups) in enumerate(owned):
            groups.committed += event.commits
            done[at] = groups.wait(event.most, event.instruction)
            lanes[at], columns[at] = lane, clocks.column(clocks.slot_of(lane), ("cp.async", lane, "write"))
        clocks.complete(lanes, columns, done, fenced=False)

    def _wgmma_wait(self, event: WaitGroup) -> None:
        """Record the completion of the groups of warpgroups at ``wgmma.wait_group``."""
        for first, groups in self.owned("wgmma", event.lanes):
            done = groups.wait(event.most, event.instruction)
            self._complete(slice(first, first + WARPGROUP), ("wgmma", first, "read"), done)

    def _complete(self, lanes: slice, key: tuple[str, int, str], done: int, fenced: bool = True) -> None:
        column = self._clocks.column(self._clocks.slot_of(lanes.start), key)
        self._clocks.complete(lanes, column, done, fenced)

    def cp_async_arrive(self, event: ArriveAfterCopies, barriers: Barriers) -> None:
        """Apply ``cp.async.mbarrier.arrive``, which arrives when the earlier copies of its lane are complete."""
        groups = dict(self.owned("cp.async", event.lanes))
        for lane, position in zip(as_array(event.lanes).tolist(), event.positions.tolist(), strict=True):
            if lane in groups:
                # The arrival of cp.async.mbarrier.arrive covers only copies that the lane issued before it.
                groups[lane].committed += 1
                column = self._clocks.column(self._clocks.slot_of(lane), ("cp.async", lane, "write"))
                clock = self._clocks.nothing()
                # The row FENCED is omitted, because copies of cp.async use the generic proxy.
                clock[::2, column] = groups[lane].committed
                barriers.mbarriers[position].arrive(self._clocks, clock)
