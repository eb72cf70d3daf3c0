"""The instruction ``cp.async``, which copies 4 to 16 bytes for each thread from global to shared memory.

Source: PTX ISA 9.0, "Data Movement and Conversion Instructions: Asynchronous copy, Non-bulk copy".
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .._copies.copy import Issue, each_lane, submit
from .._copies.engine import Operation
from .._copies.parts import Parts
from .._ptx import Immediate, Instruction, Register
from .._warps.binder import BOOL, U32, Binder, dtype_of
from .._warps.code import Step
from .._warps.events import ArriveAfterCopies, CommitGroup, WaitGroup
from .._warps.lanes import WARP, Lanes, as_array, count
from .._warps.observe import Access
from ._table import Group, instruction
from .mbarrier import positions_of

SECTION = "Data Movement and Conversion Instructions: {}"
_KIND = "cp.async"  # _KIND is the key of the groups of cp.async operations.
_TYPES = {4: dtype_of("b32"), 8: dtype_of("b64"), 16: dtype_of("b128")}


@instruction("cp.async", section=SECTION.format("cp.async"))
def cp_async(binder: Binder) -> Step:
    """Return the step that executes ``[destination], [source], size{, source_size | ignore_source}{, policy}``."""
    target, source, size, *rest = binder.instruction.operands
    if "L2::cache_hint" in binder.instruction.opcode:
        rest = rest[:-1]
    if not isinstance(size, Immediate) or size.value not in (4, 8, 16):
        raise binder.unsupported("a size that is not 4, 8 or 16")
    to, origin = binder.address(target), binder.address(source)
    ignores = bool(rest) and isinstance(rest[0], Register) and _is_predicate(binder, rest[0])
    read = binder.read(rest[0], BOOL if ignores else U32) if rest else None

    def step(group: Group, lanes: Lanes) -> None:
        given = np.full(count(lanes), size.value) if read is None else np.broadcast_to(read(group, lanes), count(lanes))
        lengths = np.where(given, 0, size.value) if ignores else given
        here, places, addresses = as_array(lanes), to(group, lanes), origin(group, lanes)
        for some in _parts(here, group.parts):
            ends = here[some], places[some], addresses[some], lengths[some]
            copies = _Copies(group.parts, binder.instruction, *ends, size.value)
            if not copies.submit_together():
                copies.submit_one_by_one()

    return step


def _parts(lanes: np.ndarray, parts: Parts) -> list[slice]:
    """Return slices of the lanes, one for each asynchronous operation.

    If copies take effect at once, one operation contains the copies of all lanes. Otherwise each CTA has one operation.
    """
    if parts.engine.is_early:
        return [slice(0, len(lanes))]
    ctas = parts.geometry.cta_of_lane[lanes]
    ends = [0, *(np.flatnonzero(np.diff(ctas)) + 1).tolist(), len(lanes)]
    return [slice(*pair) for pair in pairwise(ends)]


def _is_predicate(binder: Binder, register: Register) -> bool:
    return binder.code.function.registers[register.index].type == "pred"


class _Copies(NamedTuple):
    """The copies of several lanes that one cp.async begins.

    Attributes
    ----------
    parts : Parts
    instruction : Instruction
    lanes, places, addresses, lengths : numpy.ndarray
        The lane of each copy, its position in shared memory, its address in global memory, and the number of bytes that
        it reads. A copy writes zeros to the rest of its `size` bytes.
    size : int
    """

    parts: Parts
    instruction: Instruction
    lanes: np.ndarray
    places: np.ndarray
    addresses: np.ndarray
    lengths: np.ndarray
    size: int

    def submit_together(self) -> bool:
        """Begin all copies as one operation; return False if one operation is not possible.

        Each length must be 0 or `size`, each place must differ, and the observer must allow one operation.
        """
        if ((self.lengths != 0) & (self.lengths != self.size)).any():
            return False
        parts, actor = self.parts, None
        with Issue(parts, int(self.lanes[0]), self.instruction, "generic").faults():
            parts.memory.check_aligned(self.lanes, self.places, self.size)
            positions = parts.memory.shared_positions(self.lanes, self.places, self.size, "shared")
        if _repeats(positions):
            return False
        if parts.events.observer is not None:
            is_now = parts.engine.is_early
            actor = parts.events.observer.issue_each(self.lanes, self.instruction, _KIND, is_now)
            if actor is None:
                return False
        ctas = tuple(np.unique(parts.geometry.cta_of_lane[self.lanes]).tolist())
        operation = Operation([partial(self._guarded, positions, actor)], ctas)
        parts.engine.submit(operation, _KIND, self.lanes.tolist())
        return True

    def _guarded(self, positions: np.ndarray, actor: object) -> None:
        with Issue(self.parts, int(self.lanes[0]), self.instruction, "generic").faults():
            self._copy(positions, actor)

    def _copy(self, positions: np.ndarray, actor: object) -> None:
        memory, dtype = self.parts.memory, _TYPES[self.size]
        memory.check_aligned(self.lanes, self.addresses, self.size)
        self._observe("write", "shared", actor, self.lanes, positions)
        shared = memory.shared.typed(dtype)
        shared[positions // self.size] = 0
        some = self.lengths != 0
        if not some.any():
            return
        lanes, addresses, to = self.lanes[some], self.addresses[some], positions[some] // self.size
        pieces = memory.pieces("global", lanes, addresses, self.size)
        self._observe("read", "global", actor, lanes, addresses)
        for piece in pieces:
            at = to if piece.chosen is None else to[piece.chosen]
            shared[at] = piece.buffer.typed(dtype)[piece.positions // self.size]

    def _observe(self, kind: str, space: str, actor: object, lanes: np.ndarray, positions: np.ndarray) -> None:
        if self.parts.events.observer is not None:
            known = kind, "generic", actor, lanes, space, positions, self.size, self.instruction
            self.parts.events.observer.access(Access(*known))

    def submit_one_by_one(self) -> None:
        """Begin the copy of each lane as a separate operation.

        Lanes of a warp may copy the same bytes to one place, as for a scale of a whole tile. These copies are not a
        race, because all of them write the same value; the observer receives only the first copy.
        """
        ends = zip(self.places.tolist(), self.addresses.tolist(), self.lengths.tolist(), strict=True)
        seen: set[tuple[int, ...]] = set()
        for lane, (place, address, length) in zip(self.lanes.tolist(), ends, strict=True):
            issue = Issue(self.parts, lane, self.instruction, "generic")
            copy = lane // WARP, place, address, length
            with issue.faults():
                at = issue.position("shared", place, self.size, self.size)
                is_first = copy not in seen
                submit(issue, partial(_copy, issue, address, length, at, self.size, is_first), kind=_KIND)
            seen.add(copy)


def _repeats(positions: np.ndarray) -> bool:
    """Return whether two lanes have the same position."""
    return not (np.diff(positions) > 0).all() and len(np.unique(positions)) < len(positions)


def _copy(issue: Issue, address: int, length: int, position: int, size: int, is_first: bool) -> None:
    """Copy `length` bytes to shared memory, and fill the rest of `size` bytes with zeros."""
    memory = issue.parts.memory
    memory.check_aligned(issue.lanes, np.array([address]), size)
    place = memory.shared.bytes[position : position + size]
    if is_first:
        issue.observe("write", "shared", np.array([position]), size)
    place[length:] = 0
    if length:
        segment, start = memory.global_bytes(address, length)
        issue.observe("read", "global", np.array([address]), length)
        place[:length] = segment.bytes[start : start + length]


@instruction("cp.async.commit_group", section=SECTION.format("cp.async.commit_group"))
def commit_group(binder: Binder) -> Step:
    def step(group: Group, lanes: Lanes) -> None:
        group.parts.events.tell(CommitGroup(lanes, binder.instruction, _KIND))
        group.parts.engine.commit(_KIND, as_array(lanes).tolist())

    return step


@instruction("cp.async.wait_group", "cp.async.wait_all", section=SECTION.format("cp.async.wait_group, wait_all"))
def wait_group(binder: Binder) -> Step:
    is_all = "wait_all" in binder.instruction.opcode
    operands = binder.instruction.operands
    most = operands[0].value if operands and isinstance(operands[0], Immediate) else 0

    def step(group: Group, lanes: Lanes) -> None:
        owners = as_array(lanes).tolist()
        if is_all:
            group.parts.engine.commit(_KIND, owners)
        group.parts.engine.wait(_KIND, owners, most)
        group.parts.events.tell(WaitGroup(lanes, binder.instruction, _KIND, most, commits=is_all))

    return step


@instruction("cp.async.mbarrier.arrive", section=SECTION.format("cp.async.mbarrier.arrive"))
def mbarrier_arrive(binder: Binder) -> Step:
    """Return the step of an arrival that follows the pending copies of a thread.

    Without ``.noinc``, the phase expects one more arrival.
    """
    positions = positions_of(binder, binder.instruction.operands[0])
    counted = "noinc" in binder.instruction.opcode

    def step(group: Group, lanes: Lanes) -> None:
        barriers, engine = group.parts.mbarriers, group.parts.engine
        where = positions(group, lanes)
        group.parts.events.tell(ArriveAfterCopies(lanes, binder.instruction, where))
        at = where.tolist()
        for (_, issue), position in zip(each_lane(group, lanes, binder.instruction, "generic"), at, strict=True):
            if not counted:
                barriers.at(position).pending += 1
            begun = engine.begun_by(_KIND, issue.lane)
            submit(issue, partial(_arrive, issue, begun, position))

    return step


def _arrive(issue: Issue, before: list[Operation], position: int) -> None:
    for operation in before:
        operation.advance()
    issue.parts.mbarriers.arrive(position, 1, issue.instruction)
