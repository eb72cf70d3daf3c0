"""The instructions for barriers of warps, CTAs and clusters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._ptx import Operand
from .._sync.warp_sync import when_together
from .._warps.binder import BOOL, U32, Binder
from .._warps.code import YIELD, Context, Outcome, Step
from .._warps.lanes import Lanes, as_array, count, each, selected
from ._table import Group, instruction

Act = Callable[[Group, Lanes, int, "int | None"], Outcome]

SECTION = "Parallel Synchronization and Communication Instructions: {}"


@instruction("bar.warp", section=SECTION.format("bar.warp.sync"), moves=True)
def bar_warp(binder: Binder) -> Step:
    read, pc = binder.read(binder.instruction.operands[0], U32), binder.pc
    return lambda group, lanes: group.parts.warp_sync.meet(group, lanes, pc, read(group, lanes))


@instruction("bar", "barrier", section=SECTION.format("bar, barrier"), moves=True)
def bar(binder: Binder) -> Step:
    """Return the step that executes ``bar.sync a{, b}``, ``bar.arrive a, b`` or ``bar.red.op p, a{, b}, {!}c``."""
    parts = [part for part in binder.instruction.opcode if part != "cta"]
    action, operands, pc = parts[1], binder.instruction.operands, binder.pc
    if action == "red":
        return _red(binder, parts[2])

    def act(group: Group, lanes: Lanes, number: int, expected: int | None) -> Outcome:
        if action == "sync":
            return group.parts.cta_barriers.sync(group, lanes, pc, number, expected)
        group.parts.cta_barriers.arrive(lanes, number, expected, binder.instruction)
        return None

    return _each_barrier(binder, operands[0], operands[1:], act)


def _each_barrier(binder: Binder, number: Operand, threads: tuple[Operand, ...], act: Act) -> Step:
    """Return the step of an instruction whose barrier and number of threads may differ between warps."""
    read, pc = binder.read(number, U32), binder.pc
    read_count = binder.read(threads[0], U32) if threads else None

    def step(group: Group, lanes: Lanes) -> Outcome:
        number, threads_of_it = read(group, lanes), read_count(group, lanes) if read_count else 0
        if not (np.ndim(number) or np.ndim(threads_of_it)):
            return act(group, lanes, int(number), int(threads_of_it) or None)
        numbers, counts = (each(value, count(lanes)) for value in (number, threads_of_it))
        pairs = sorted({*zip(numbers.tolist(), counts.tolist(), strict=True)})
        if len(pairs) == 1:
            return act(group, lanes, pairs[0][0], pairs[0][1] or None)
        for of, expected in pairs:
            some = as_array(lanes)[(numbers == of) & (counts == expected)]
            if act(group, selected(some), of, expected or None) is None:
                group.parts.scheduler.add(group.context, pc + 1, some)
        return YIELD

    return step


def _red(binder: Binder, op: str) -> Step:
    result, number, *threads, predicate = binder.instruction.operands
    read, pc = binder.read(predicate, BOOL), binder.pc
    write = binder.write(result, U32 if op == "popc" else BOOL)
    results = {"popc": lambda true, of: true, "and": lambda true, of: true == of, "or": lambda true, of: true > 0}
    if op not in results:
        raise binder.unsupported("of no such reduction")

    def tell(context: Context, lanes: np.ndarray, true: int, of: int) -> None:
        write(context, lanes, results[op](true, of))

    def act(group: Group, lanes: Lanes, number: int, expected: int | None) -> Outcome:
        true = np.broadcast_to(read(group, lanes), (count(lanes),))
        return group.parts.cta_barriers.vote(group, lanes, pc, number, expected, true, tell)

    return _each_barrier(binder, number, tuple(threads), act)


@instruction("barrier.cluster", section=SECTION.format("barrier.cluster"), moves=True)
def barrier_cluster(binder: Binder) -> Step:
    parts, by, pc = binder.instruction.opcode, binder.instruction, binder.pc

    def arrive(group: Group, lanes: Lanes) -> None:
        group.parts.cluster_barriers.arrive(lanes, by, "relaxed" in parts)

    if "wait" in parts:
        return lambda group, lanes: group.parts.cluster_barriers.wait(group, lanes, pc)
    if "aligned" in parts:
        return lambda group, lanes: when_together(group, lanes, pc, arrive)
    return arrive
