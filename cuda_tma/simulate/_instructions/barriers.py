"""Barriers of warps, CTAs and clusters."""

from __future__ import annotations

import numpy as np

from .._binder import BOOL, U32, Binder, Read
from .._faults import Fault
from .._group import Context, Group
from .._lanes import Lanes, count
from .._program import Outcome, Step
from .._warp_sync import when_together
from ._table import instruction

SECTION = "Parallel Synchronization and Communication Instructions: {}"
_BARRIERS = 16


@instruction("bar.warp", section=SECTION.format("bar.warp.sync"), moves=True)
def bar_warp(binder: Binder) -> Step:
    read, pc = binder.read(binder.instruction.operands[0], U32), binder.pc
    return lambda group, lanes: group.machine.warp_sync.meet(group, lanes, pc, read(group, lanes))


@instruction("bar", "barrier", section=SECTION.format("bar, barrier"), moves=True)
def bar(binder: Binder) -> Step:
    """``bar.sync a{, b}``, ``bar.arrive a, b``, ``bar.red.op p, a{, b}, {!}c``."""
    parts = [part for part in binder.instruction.opcode if part != "cta"]
    action, operands, pc = parts[1], binder.instruction.operands, binder.pc
    if action == "red":
        return _red(binder, parts[2])
    number = binder.read(operands[0], U32)
    threads = binder.read(operands[1], U32) if len(operands) > 1 else None

    def step(group: Group, lanes: Lanes) -> Outcome:
        of, expected = _uniform(number, group, lanes), _count(threads, group, lanes)
        if action == "sync":
            return group.machine.cta_barriers.sync(group, lanes, pc, of, expected)
        group.machine.cta_barriers.arrive(lanes, of, expected)
        return None

    return step


def _count(read: Read | None, group: Group, lanes: Lanes) -> int | None:
    return None if read is None else _uniform(read, group, lanes)


def _uniform(read: Read, group: Group, lanes: Lanes) -> int:
    values = np.asarray(read(group, lanes))
    first = int(values.flat[0])
    if not (values == first).all():
        raise Fault("barrier-divergence", "threads of a warp name different barriers, or counts, in one bar", lanes)
    return first


def _red(binder: Binder, op: str) -> Step:
    result, number, *threads, predicate = binder.instruction.operands
    read_number, pc = binder.read(number, U32), binder.pc
    read_threads = binder.read(threads[0], U32) if threads else None
    read = binder.read(predicate, BOOL)
    write = binder.write(result, U32 if op == "popc" else BOOL)
    results = {"popc": lambda true, of: true, "and": lambda true, of: true == of, "or": lambda true, of: true > 0}

    def tell(context: Context, lanes: np.ndarray, true: int, of: int) -> None:
        write(context, lanes, results[op](true, of))

    def step(group: Group, lanes: Lanes) -> Outcome:
        of, expected = _uniform(read_number, group, lanes), _count(read_threads, group, lanes)
        true = np.broadcast_to(read(group, lanes), (count(lanes),))
        return group.machine.cta_barriers.vote(group, lanes, pc, of, expected, true, tell)

    return step


@instruction("barrier.cluster", section=SECTION.format("barrier.cluster"), moves=True)
def barrier_cluster(binder: Binder) -> Step:
    parts, pc = binder.instruction.opcode, binder.pc

    def arrive(group: Group, lanes: Lanes) -> None:
        group.machine.cluster_barriers.arrive(lanes)

    if "wait" in parts:
        return lambda group, lanes: group.machine.cluster_barriers.wait(group, lanes, pc)
    if "aligned" in parts:
        return lambda group, lanes: when_together(group, lanes, pc, arrive)
    return arrive
