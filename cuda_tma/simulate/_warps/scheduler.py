"""The scheduler, which determines the order in which threads run.

Threads at the same instruction run together as a group. The group at the lowest instruction runs first, until it
reaches the instruction of another group, so that threads converge after a branch. After many steps, another group runs
first, so that a thread that spins on a flag does not starve the thread that sets it (independent thread scheduling:
CUDA C++ Programming Guide, "SIMT Architecture").
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .._errors import TimeLimitReached, UnsupportedInstruction
from .._ptx import Instruction
from .code import Context
from .faults import Fault
from .group import Group
from .lanes import WARP
from .observe import Events
from .waiting import Standing, Stuck

__all__ = ["Scheduler"]

_TURN = 4096  # After 4,096 steps, the scheduler runs the group that has been ready for the longest time.
# After 16 polls by a group, the scheduler runs another group, because a thread of that group may hold the lock.
_POLLS = 16
_LOOKS = 64  # After 64 polls of each group, pending copies complete, because all groups may wait for them.
_NEVER, _AT_ONCE = 1 << 60, -1
_STRAY = 0.3  # In a random schedule, a group, and each warp of the group, runs out of turn with a probability of 0.3.


class Copies(Protocol):
    """The interface of the asynchronous copies of a launch."""

    @property
    def is_busy(self) -> bool:
        """Return whether at least one copy is pending."""


class Scheduler:
    """The scheduler of a launch, which contains the groups that can run.

    Attributes
    ----------
    steps : int
        The number of instructions that groups have executed.
    thread_steps : int
        The number of instructions that threads have executed.
    is_interrupted : bool
        Whether the time limit of the launch is reached.
    has_progressed : bool
        Whether an event for which threads may wait has happened since the machine last cleared this flag.
    where : Group or None
        The group that runs; after an exception, the group at the instruction that raised it.
    """

    def __init__(
        self,
        max_steps: int,
        generator: np.random.Generator | None,
        copies: Copies,
        events: Events,
    ):
        self._random, self._copies, self._events = generator, copies, events
        # The list for each place begins with the lanes that have been ready for the longest time.
        self._ready: dict[tuple[Context, int], list[np.ndarray]] = {}
        self._running: Context | None = None
        self._pc, self._stop, self._last = 0, _NEVER, _TURN
        self._max_steps = max_steps
        self._expired = False
        self._polls = self._looks = 0
        self.is_interrupted = self.has_progressed = False
        self.where: Group[Any] | None = None
        self.steps = self.thread_steps = 0

    def __bool__(self) -> bool:
        return bool(self._ready)

    def add(self, context: Context, pc: int, lanes: np.ndarray) -> None:
        """Let lanes continue at an instruction, together with lanes that are already at this instruction."""
        self._ready.setdefault((context, pc), []).append(lanes)
        if context is self._running and pc > self._pc:
            self._stop = min(self._stop, pc)

    def progress(self) -> None:
        """Record an event for which other threads may wait."""
        self.has_progressed = True

    def interrupt(self) -> None:
        """Stop the running group after its instruction; another thread of the host calls this method."""
        self.is_interrupted = True
        self._stop = _AT_ONCE

    def polled(self) -> None:
        """Record that the running group polls memory, because the group may wait for other threads."""
        self._polls += 1
        self._looks += 1

    def standing(self) -> list[tuple[Context, int, np.ndarray]]:
        """Return the context, instruction and lanes of each group that can run, ordered by the time of its last run."""
        everyone = ((*key, np.sort(np.concatenate(waiting))) for key, waiting in self._ready.items())
        return [*everyone]

    def standing_among(self, wanted: np.ndarray) -> list[Standing]:
        """Return the places of the lanes that can run and for which `wanted` is true."""
        each = ((*key, lanes[wanted[lanes]]) for key, waiting in self._ready.items() for lanes in waiting)
        return [Standing(*place) for place in each if len(place[2])]

    def turn(self, parts: object) -> bool:
        """Run one group, and return whether the group stopped because of its number of steps.

        The group runs until it waits, reaches the instruction of another group, or has executed its number of steps.
        """
        key, lanes = self._choose()
        group: Group[Any] = Group(parts, *key, lanes)
        if self._expired:
            self._expired, self._last = False, self.steps + _TURN
        self._stop = min((pc for context, pc in self._ready if context is key[0] and pc > key[1]), default=_NEVER)
        self._running, self.where = group.context, group
        try:
            self._run(group)
        except (Fault, Stuck, TimeLimitReached, UnsupportedInstruction, MemoryError):
            raise
        except Exception as error:
            raise _own_error(group, error) from error
        finally:
            self._running = None
        self.where = None
        return self._expired

    def _choose(self) -> tuple[tuple[Context, int], np.ndarray]:
        """Return the next group: the group at the lowest instruction, or the oldest group after many steps."""
        if self._expired or self._polls > _POLLS:
            self._polls = 0
            key = next(iter(self._ready))
            return key, self._take(key)
        if self._random is not None and (found := self._stray(self._random)) is not None:
            return found
        key = min(self._ready, key=_order)
        return key, self._take(key)

    def _take(self, key: tuple[Context, int]) -> np.ndarray:
        waiting = self._ready.pop(key)
        return waiting[0] if len(waiting) == 1 else np.sort(np.concatenate(waiting))

    def _stray(self, random: np.random.Generator) -> tuple[tuple[Context, int], np.ndarray] | None:
        """Return some warps of a group to run out of turn, at random times; otherwise None.

        Threads of one warp do not overtake each other.
        """
        if random.random() >= _STRAY:
            return None
        key = [*self._ready][random.integers(len(self._ready))]
        lanes = self._take(key)
        behind = [lanes for other, all_of in self._ready.items() if _order(other) < _order(key) for lanes in all_of]
        warps = np.setdiff1d(lanes // WARP, np.concatenate(behind) // WARP if behind else ())
        chosen = np.isin(lanes // WARP, warps[random.random(len(warps)) < _STRAY])
        if not chosen.all():
            self.add(*key, lanes[~chosen])
        return (key, lanes[chosen]) if chosen.any() else None

    def _run(self, group: Group[Any]) -> None:
        steps, lanes, pc = self._events.steps_of(group.context.code), group.lanes, group.pc
        self._pc = since = pc
        try:
            while True:
                outcome = steps[pc](group, lanes)
                if outcome is None:
                    pc += 1
                    if pc < self._stop:
                        continue
                elif not isinstance(outcome, int):  # The remaining outcome of a step is YIELD.
                    pc += 1
                    return
                else:
                    self._count(pc + 1 - since, group.size)
                    backwards, pc = outcome <= pc, outcome
                    self._pc = since = pc
                    if self.steps >= self._last or self._all_look():
                        self._expired, self._looks = True, 0
                    elif pc < self._stop and not (backwards and self._ready):
                        continue
                self.add(group.context, pc, group.array())
                return
        finally:
            group.pc = pc
            self._pc = _NEVER
            self._count(pc - since, group.size)

    def _all_look(self) -> bool:
        """Return whether all groups only poll while copies are pending."""
        return self._looks > _LOOKS * (1 + len(self._ready)) and self._copies.is_busy

    def _count(self, steps: int, size: int) -> None:
        self.steps += steps
        self.thread_steps += steps * size
        if self.steps > self._max_steps:
            raise Fault(
                "no-progress",
                f"the kernel has not ended after {self.steps} steps: a loop does not end, or max_steps is too small",
            )


def _own_error(group: Group[Any], error: Exception) -> UnsupportedInstruction:
    """Return the exception for an error of the simulator itself."""
    by = group.context.code.instruction(group.pc) or Instruction(("ret",))
    reason = f"an error of the simulator itself, {type(error).__name__}: {error}"
    return UnsupportedInstruction(".".join(by.opcode), by.line, reason)


def _order(key: tuple[Context, int]) -> tuple[int, int]:
    """Return the key by which groups are sorted: the deepest call first, then the lowest instruction."""
    context, pc = key
    return -context.depth, pc
