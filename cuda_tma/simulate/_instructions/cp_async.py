"""``cp.async``: 4 to 16 bytes of each thread, from global to shared memory.

Source: PTX ISA 9.0, "Data Movement and Conversion Instructions: Asynchronous copy, Non-bulk copy".
"""

from __future__ import annotations

from functools import partial

import numpy as np

from .._async import Operation
from .._binder import BOOL, U32, Binder
from .._copy import Issue, each_lane, submit
from .._group import Group
from .._lanes import Lanes, as_array, count
from .._observe import announce
from .._program import Step
from ..ptx import Immediate, Register
from ._table import instruction
from .mbarrier import positions_of

SECTION = "Data Movement and Conversion Instructions: {}"
_KIND = "cp.async"  # of groups


@instruction("cp.async", section=SECTION.format("cp.async"))
def cp_async(binder: Binder) -> Step:
    """``[destination], [source], size{, source_size | ignore_source}{, policy}``."""
    target, source, size, *rest = binder.instruction.operands
    if "L2::cache_hint" in binder.instruction.opcode:
        rest = rest[:-1]
    if not isinstance(size, Immediate):
        raise binder.unsupported("a size that is no constant")
    to, origin = binder.address(target), binder.address(source)
    ignores = bool(rest) and isinstance(rest[0], Register) and _is_predicate(binder, rest[0])
    read = binder.read(rest[0], BOOL if ignores else U32) if rest else None

    def step(group: Group, lanes: Lanes) -> None:
        given = np.full(count(lanes), size.value) if read is None else np.broadcast_to(read(group, lanes), count(lanes))
        lengths = np.where(given, 0, size.value) if ignores else given
        ends = zip(to(group, lanes).tolist(), origin(group, lanes).tolist(), lengths.tolist(), strict=True)
        for (_, issue), (place, address, length) in zip(
            each_lane(group, lanes, binder.instruction, "generic"), ends, strict=True
        ):
            with issue.faults():
                at = issue.position("shared", place, size.value, size.value)
                submit(issue, partial(_copy, issue, address, length, at, size.value), kind=_KIND)

    return step


def _is_predicate(binder: Binder, register: Register) -> bool:
    return binder.code.function.registers[register.index].type == "pred"


def _copy(issue: Issue, address: int, length: int, position: int, size: int) -> None:
    """What is not read is zero."""
    memory = issue.machine.memory
    memory.check_aligned(issue.lanes, np.array([address]), size)
    place = memory.shared.bytes[position : position + size]
    issue.observe("write", "shared", np.array([position]), size)
    place[length:] = 0
    if length:
        segment, start = memory.global_bytes(address, length)
        issue.observe("read", "global", np.array([address]), length)
        place[:length] = segment.bytes[start : start + length]


@instruction("cp.async.commit_group", section=SECTION.format("cp.async.commit_group"))
def commit_group(binder: Binder) -> Step:
    def step(group: Group, lanes: Lanes) -> None:
        announce(group, "cp.async.commit_group", lanes, binder.instruction)
        group.machine.engine.commit(_KIND, as_array(lanes).tolist())

    return step


@instruction("cp.async.wait_group", "cp.async.wait_all", section=SECTION.format("cp.async.wait_group, wait_all"))
def wait_group(binder: Binder) -> Step:
    is_all = "wait_all" in binder.instruction.opcode
    operands = binder.instruction.operands
    most = operands[0].value if operands and isinstance(operands[0], Immediate) else 0

    def step(group: Group, lanes: Lanes) -> None:
        owners = as_array(lanes).tolist()
        if is_all:
            group.machine.engine.commit(_KIND, owners)
        group.machine.engine.wait(_KIND, owners, most)
        announce(group, ".".join(binder.instruction.opcode), lanes, binder.instruction, most=most)

    return step


@instruction("cp.async.mbarrier.arrive", section=SECTION.format("cp.async.mbarrier.arrive"))
def mbarrier_arrive(binder: Binder) -> Step:
    """An arrival once all that the thread has begun is complete; without ``.noinc`` one more is awaited."""
    positions = positions_of(binder, binder.instruction.operands[0])
    counted = "noinc" in binder.instruction.opcode

    def step(group: Group, lanes: Lanes) -> None:
        barriers, engine = group.machine.mbarriers, group.machine.engine
        where = positions(group, lanes)
        announce(group, "cp.async.mbarrier.arrive", lanes, binder.instruction, positions=where)
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
    issue.machine.mbarriers.arrive(position, 1, issue.instruction)
