"""The instructions ``mbarrier``, which initialize an mbarrier, arrive at it, and wait for it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._ptx import Address, Instruction, Operand
from .._sync.mbarrier import BYTES, pending_of
from .._warps.binder import BOOL, I64, U32, U64, Address64, Binder, Read, Write
from .._warps.code import Outcome, Step
from .._warps.events import Arrive, CompleteBytes, ExpectBytes, Init, Invalidate, Poll
from .._warps.lanes import Lanes, as_array, count, narrowed
from ._table import Group, instruction
from .addresses import space_of

# A Parities function returns the phase parity for which each lane polls its mbarrier.
Parities = Callable[[Group, Lanes, np.ndarray], np.ndarray]

SECTION = "Parallel Synchronization and Communication Instructions: mbarrier.{}"


def positions_of(binder: Binder, operand: Operand) -> Address64:
    """Return the positions in `Memory.shared` of the mbarriers of all lanes."""
    address, space = binder.address(operand), space_of(binder.instruction.opcode)

    def positions(group: Group, lanes: Lanes) -> np.ndarray:
        return group.parts.memory.in_shared(space, lanes, address(group, lanes), BYTES)

    return positions


def _values(read: Read, group: Group, lanes: Lanes) -> list[int]:
    given = read(group, lanes)
    return given.tolist() if isinstance(given, np.ndarray) and given.ndim else [int(given)] * count(lanes)


def _with_value(
    event: type[Init | ExpectBytes | CompleteBytes], act: Callable[[Group, int, int, Instruction, int], None]
) -> Callable[[Binder], Step]:
    """Return a function that binds ``mbarrier.op [address], value`` to a step."""

    def bind(binder: Binder) -> Step:
        where, value = binder.instruction.operands
        positions, read = positions_of(binder, where), binder.read(value, U32)
        by = binder.instruction

        def step(group: Group, lanes: Lanes) -> None:
            at, values = positions(group, lanes), _values(read, group, lanes)
            group.parts.events.tell(event(lanes, by, at, values))
            for position, number, lane in zip(at.tolist(), values, as_array(lanes).tolist(), strict=True):
                act(group, position, number, by, lane)

        return step

    return bind


@instruction("mbarrier.init", section=SECTION.format("init"))
def init(binder: Binder) -> Step:
    return _with_value(Init, lambda group, *what: group.parts.mbarriers.init(*what))(binder)


@instruction("mbarrier.expect_tx", section=SECTION.format("expect_tx"))
def expect_tx(binder: Binder) -> Step:
    return _with_value(ExpectBytes, lambda group, *what: group.parts.mbarriers.expect_tx(*what[:3]))(binder)


@instruction("mbarrier.complete_tx", section=SECTION.format("complete_tx"))
def complete_tx(binder: Binder) -> Step:
    def complete(group: Group, position: int, value: int, by: Instruction, lane: int) -> None:
        group.parts.mbarriers.complete_tx(position, value)

    return _with_value(CompleteBytes, complete)(binder)


@instruction("mbarrier.inval", section=SECTION.format("inval"))
def inval(binder: Binder) -> Step:
    positions, by = positions_of(binder, binder.instruction.operands[0]), binder.instruction

    def step(group: Group, lanes: Lanes) -> None:
        at = positions(group, lanes)
        group.parts.events.tell(Invalidate(lanes, by, at))
        for position in at.tolist():
            group.parts.mbarriers.invalidate(position, by)

    return step


@instruction("mbarrier.arrive", "mbarrier.arrive_drop", section=SECTION.format("arrive, mbarrier.arrive_drop"))
def arrive(binder: Binder) -> Step:
    """Return the step that executes ``mbarrier.arrive{.expect_tx} {state|_,} [address]{, value};``."""
    parts, operands = binder.instruction.opcode, [*binder.instruction.operands]
    write = _drop if isinstance(operands[0], Address) else binder.write(operands.pop(0), U64)
    positions = positions_of(binder, operands[0])
    read = binder.read(operands[1], U32) if len(operands) > 1 else None
    expects, drops = "expect_tx" in parts, "arrive_drop" in parts
    by = binder.instruction

    def step(group: Group, lanes: Lanes) -> None:
        barriers, at = group.parts.mbarriers, positions(group, lanes)
        values = [1] * len(at) if read is None else _values(read, group, lanes)
        group.parts.events.tell(Arrive(lanes, by, at, values))
        states = []
        for position, value in zip(at.tolist(), values, strict=True):
            if expects:
                barriers.expect_tx(position, value, by)
            states.append(barriers.arrive(position, 1 if expects else value, by, drops))
        write(group, lanes, np.array(states, np.uint64))

    return step


def _drop(group: Group, lanes: Lanes, values: np.ndarray) -> None:
    """Discard the state, because an arrival at an mbarrier of another CTA does not return it."""


@instruction("mbarrier.test_wait", section=SECTION.format("test_wait, mbarrier.try_wait"))
def test_wait(binder: Binder) -> Step:
    """Return the step of a poll, after which threads continue at once.

    Threads that poll in a loop wait for the phase.
    """
    write, positions, parities = _waiting(binder)
    pc = binder.pc

    def step(group: Group, lanes: Lanes) -> None:
        at = positions(group, lanes)
        done = group.parts.mbarriers.completed(at, parities(group, lanes, at))
        group.parts.mbarriers.look(group, lanes, pc, np.where(done, -1, at))
        _announce_waited(binder, group, lanes, at, done)
        write(group, lanes, done)

    return step


@instruction("mbarrier.try_wait", section=SECTION.format("test_wait, mbarrier.try_wait"), moves=True)
def try_wait(binder: Binder) -> Step:
    """Return the step of a wait until the phase completes.

    The wait ends at its time limit only if no other thread or copy can continue.
    """
    write, positions, parities = _waiting(binder)
    pc = binder.pc

    def step(group: Group, lanes: Lanes) -> Outcome:
        barriers, at = group.parts.mbarriers, positions(group, lanes)
        done = barriers.completed(at, parities(group, lanes, at))
        late = barriers.timed_out[lanes]
        if done.all() and not late.any():
            _announce_waited(binder, group, lanes, at, done)
            write(group, lanes, True)
            return None
        # If all lanes poll the same mbarrier for the same parity, the result has only one element.
        done = np.broadcast_to(done, at.shape)
        go = done | late
        if go.any():
            some = narrowed(lanes, go)
            barriers.timed_out[some] = False
            _announce_waited(binder, group, some, at[go], done[go])
            write(group, some, done[go])
            if go.all():
                return None
            group.parts.scheduler.add(group.context, pc + 1, as_array(some))
        return barriers.park(group, as_array(lanes)[~go], pc, at[~go])

    return step


def _announce_waited(binder: Binder, group: Group, lanes: Lanes, at: np.ndarray, done: np.ndarray) -> None:
    group.parts.events.tell(Poll(lanes, binder.instruction, at, done))


def _waiting(binder: Binder) -> tuple[Write, Address64, Parities]:
    """Return functions that write the result, read the mbarriers, and read the awaited parities."""
    result, where, phase, *_ = binder.instruction.operands
    by, write, positions = binder.instruction, binder.write(result, BOOL), positions_of(binder, where)
    if "parity" in by.opcode:
        read = binder.read(phase, U32)
        return write, positions, lambda group, lanes, at: read(group, lanes) & 1
    state = binder.read(phase, U64)

    def parities(group: Group, lanes: Lanes, at: np.ndarray) -> np.ndarray:
        tokens = np.broadcast_to(np.asarray(state(group, lanes), np.uint64), at.shape)
        return group.parts.mbarriers.parities_of(tokens, at, lanes, by)

    return write, positions, parities


@instruction("mbarrier.pending_count", section=SECTION.format("pending_count"))
def pending_count(binder: Binder) -> Step:
    result, state = binder.instruction.operands
    read, write = binder.read(state, U64), binder.write(result, I64)
    return lambda group, lanes: write(group, lanes, pending_of(read(group, lanes)))
