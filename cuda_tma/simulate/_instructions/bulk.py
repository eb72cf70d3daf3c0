"""The instruction ``cp.async.bulk`` for plain bytes, and the groups by which threads wait for bulk copies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...emulate import REDUCTIONS
from ...enums import TensorMapDataType as T
from .._copies.copy import BULK, Issue, each_lane, landing, landings, once_per_warp, submit
from .._ptx import Immediate, Operand
from .._warps.binder import U32, Binder
from .._warps.code import Step
from .._warps.events import CommitGroup, WaitGroup
from .._warps.faults import Fault
from .._warps.lanes import Lanes, as_array, count, selected
from ._table import Group, instruction
from .addresses import space_of

SECTION = "Data Movement and Conversion Instructions: {}"
_MULTIPLE = 16  # The addresses and the size of a bulk copy must be multiples of 16 bytes.
_TYPES = {
    "u32": T.UINT32, "s32": T.INT32, "u64": T.UINT64, "s64": T.INT64, "b32": T.UINT32, "b64": T.UINT64,
    "f16": T.FLOAT16, "bf16": T.BFLOAT16, "f32": T.FLOAT32, "f64": T.FLOAT64,
}  # fmt: skip


class Ends:
    """The operands of a bulk copy in each lane: source, destination and size."""

    def __init__(self, binder: Binder, target: Operand, source: Operand, size: Operand):
        self._target, self._source = binder.address(target), binder.address(source)
        self._size, self._instruction = binder.read(size, U32), binder.instruction

    def operands(self, group: Group, lanes: Lanes) -> list[np.ndarray]:
        """Return the destination, the source and the size of each lane."""
        return [read(group, lanes) for read in (self._target, self._source, self._size)]

    def __call__(self, group: Group, lanes: Lanes) -> list[tuple[Issue, int, int, int]]:
        """Check the operands of each lane's copy, and return (issue, target, source, size) for each lane."""
        sizes = np.broadcast_to(self._size(group, lanes), (count(lanes),)).tolist()
        ends = zip(self._target(group, lanes).tolist(), self._source(group, lanes).tolist(), sizes, strict=True)
        found = []
        for (_, issue), (target, source, size) in zip(each_lane(group, lanes, self._instruction), ends, strict=True):
            _check_multiples(issue, "copy", destination=target, source=source, size=size)
            found.append((issue, target, source, size))
        return found


def _check_multiples(issue: Issue, what: str, **operands: int) -> None:
    for name, value in operands.items():
        if value % _MULTIPLE:
            text = f"the {name} of a bulk {what}, 0x{value:x}, is not a multiple of {_MULTIPLE}"
            raise Fault("misaligned", text, issue.lanes)


def _read_global(issue: Issue, address: int, size: int, signal: int) -> np.ndarray:
    segment, start = issue.parts.memory.global_bytes(address, size)
    issue.observe("read", "global", np.array([address]), size, signal)
    return segment.bytes[start : start + size]


def _shared(issue: Issue, position: int, size: int, kind: str, signal: int | None = None) -> np.ndarray:
    issue.observe(kind, "shared", np.array([position]), size, signal)
    return issue.parts.memory.shared.bytes[position : position + size]


@instruction("cp.async.bulk", section=SECTION.format("cp.async.bulk"))
def cp_async_bulk(binder: Binder) -> Step:
    """Return the step of ``.shared::cluster.global``, ``.shared::cluster.shared::cta`` or ``.global.shared::cta``."""
    parts = binder.instruction.opcode
    if parts[3] == "global":
        return _to_global(binder)
    return _to_shared(binder, from_global=parts[4] == "global")


def _to_shared(binder: Binder, from_global: bool) -> Step:
    target, source, size, barrier, *rest = binder.instruction.operands
    ends, at, space = Ends(binder, target, source, size), binder.address(barrier), space_of(binder.instruction.opcode)
    masked = "multicast::cluster" in binder.instruction.opcode
    mask = binder.read(rest[0], U32) if masked else None

    def step(group: Group, lanes: Lanes) -> None:
        masks = [None] * count(lanes) if mask is None else np.broadcast_to(mask(group, lanes), (count(lanes),)).tolist()
        given = zip(ends(group, lanes), at(group, lanes).tolist(), masks, strict=True)
        for (issue, to, origin, length), barrier_address, ctas in given:
            with issue.faults():
                places = landings(issue, space, to, barrier_address, ctas, length or 1, _MULTIPLE)
                for place, signal in places:
                    submit(issue, partial(_deliver, issue, origin, length, place, signal, from_global))

    return step


def _deliver(issue: Issue, origin: int, size: int, place: int, barrier: int, from_global: bool) -> None:
    if from_global:
        data = _read_global(issue, origin, size, barrier)
    else:
        data = _shared(issue, issue.position("shared", origin, size or 1, _MULTIPLE), size, "read", barrier).copy()
    _shared(issue, place, size, "write", barrier)[:] = data
    issue.parts.mbarriers.complete_tx(barrier, size, f"the copy at {issue.name}", issue.instruction)


def _to_global(binder: Binder) -> Step:
    target, source, size, *rest = binder.instruction.operands
    ends = Ends(binder, target, source, size)
    mask = binder.read(rest[-1], U32) if "cp_mask" in binder.instruction.opcode else None

    def step(group: Group, lanes: Lanes) -> None:
        stores = once_per_warp(lanes, *ends.operands(group, lanes), *([] if mask is None else [mask(group, lanes)]))
        firsts = selected(np.array([*stores]))
        masks = [None] * len(stores)
        if mask is not None:
            masks = np.broadcast_to(mask(group, firsts), (len(stores),)).tolist()
        for (issue, to, origin, length), of_bytes in zip(ends(group, firsts), masks, strict=True):
            issue.sharers = stores[issue.lane]
            with issue.faults():
                _submit_store(issue, to, issue.position("shared", origin, length or 1, _MULTIPLE), length, of_bytes)

    return step


def _submit_store(issue: Issue, target: int, position: int, size: int, mask: int | None) -> None:
    """Submit a store to global memory; with ``.cp_mask``, bit i of the mask selects byte i of each 16 bytes."""
    taken: list[np.ndarray] = []

    def read() -> None:
        taken.append(_shared(issue, position, size, "read").copy())

    def write() -> None:
        segment, start = issue.parts.memory.global_bytes(target, size, writes=True)
        place = segment.bytes[start : start + size]
        chosen = slice(None) if mask is None else np.tile((mask >> np.arange(16) & 1).astype(bool), size // 16)

        def unchanged() -> np.ndarray:
            return np.array([np.array_equal(place[chosen], taken[0][chosen])])

        issue.observe("write", "global", np.array([target]), size, unchanged=unchanged)
        place[chosen] = taken[0][chosen]

    submit(issue, read, write, kind=BULK)


@instruction("cp.reduce.async.bulk", section=SECTION.format("cp.reduce.async.bulk"))
def cp_reduce_async_bulk(binder: Binder) -> Step:
    parts = binder.instruction.opcode
    target, source, size, *rest = binder.instruction.operands
    ends, op = Ends(binder, target, source, size), next(part for part in parts if part in REDUCTIONS)
    dtype, combine = REDUCTIONS[op].get(_TYPES[parts[-1]], ("", None)) if parts[-1] in _TYPES else ("", None)
    if combine is None:
        raise binder.unsupported(f"no reduction {op} of {parts[-1]}")
    barrier = None if "bulk_group" in parts else binder.address(rest[0])

    def step(group: Group, lanes: Lanes) -> None:
        barriers = [None] * count(lanes) if barrier is None else barrier(group, lanes).tolist()
        for (issue, to, origin, length), at in zip(ends(group, lanes), barriers, strict=True):
            with issue.faults():
                read_from = issue.position("shared", origin, length or 1, _MULTIPLE)
                place, signal = to, None
                if at is not None:
                    place, signal = landing(issue, "shared::cluster", to, at, length or 1, _MULTIPLE)
                _submit_reduction(issue, place, read_from, length, np.dtype(dtype), combine, signal)

    return step


def _submit_reduction(
    issue: Issue,
    target: int,
    position: int,
    size: int,
    dtype: np.dtype,
    combine: Callable[..., np.ndarray],
    barrier: int | None,
) -> None:
    taken: list[np.ndarray] = []

    def read() -> None:
        taken.append(_shared(issue, position, size, "read", barrier).copy())

    def write() -> None:
        if barrier is None:
            segment, start = issue.parts.memory.global_bytes(target, size, writes=True)
            issue.observe("atomic", "global", np.array([target]), size)
            place = segment.bytes[start : start + size].view(dtype)
        else:
            place = _shared(issue, target, size, "write", barrier).view(dtype)
        place[:] = combine(place.copy(), taken[0].view(dtype))
        if barrier is not None:
            issue.parts.mbarriers.complete_tx(barrier, size, f"the copy at {issue.name}", issue.instruction)

    submit(issue, read, write, kind=BULK if barrier is None else None)


@instruction("cp.async.bulk.prefetch", section=SECTION.format("cp.async.bulk.prefetch"))
def cp_async_bulk_prefetch(binder: Binder) -> Step:
    """Return the step of a prefetch, which only checks its operands because the simulator has no caches."""
    source, size, *_ = binder.instruction.operands
    start, length = binder.address(source), binder.read(size, U32)

    def step(group: Group, lanes: Lanes) -> None:
        starts, lengths = start(group, lanes).tolist(), np.broadcast_to(length(group, lanes), (count(lanes),)).tolist()
        for i, issue in each_lane(group, lanes, binder.instruction):
            with issue.faults():
                _check_multiples(issue, "prefetch", source=starts[i], size=lengths[i])

    return step


@instruction("cp.async.bulk.commit_group", section=SECTION.format("cp.async.bulk.commit_group"))
def commit_group(binder: Binder) -> Step:
    by = binder.instruction

    def step(group: Group, lanes: Lanes) -> None:
        group.parts.events.tell(CommitGroup(lanes, by, BULK))
        group.parts.engine.commit(BULK, as_array(lanes).tolist())

    return step


@instruction("cp.async.bulk.wait_group", section=SECTION.format("cp.async.bulk.wait_group"))
def wait_group(binder: Binder) -> Step:
    """Return the step that waits for bulk groups; with ``.read``, threads wait only for the reads of shared memory."""
    (most,) = binder.instruction.operands
    if not isinstance(most, Immediate):
        raise binder.unsupported("a count that is not a constant")
    by, reads_only = binder.instruction, "read" in binder.instruction.opcode
    stages = 1 if reads_only else None

    def step(group: Group, lanes: Lanes) -> None:
        group.parts.engine.wait(BULK, as_array(lanes).tolist(), most.value, stages)
        group.parts.events.tell(WaitGroup(lanes, by, BULK, most.value, reads_only))

    return step
