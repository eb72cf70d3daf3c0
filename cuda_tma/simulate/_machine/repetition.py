"""Loops that do not end: a launch that reaches a state twice repeats it endlessly.

A state is the places of threads, their registers, and memory, on which the rest of the launch depends. The time is not
a part of it: a loop that reads the clock has another value in a register each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np

from .._memory.memory import Memory
from .._memory.runtime_state import RuntimeState
from .._warps.code import Frames
from .._warps.faults import Fault
from .._warps.scheduler import Scheduler

__all__ = ["Repetition"]

_BYTES_A_LOOK = 1 << 21  # of a state: twice as large, and it is looked at half as often


class Repetition:
    """Looks at the state of a launch, now and then.

    One state is kept, and replaced by the present one when twice the time has passed (R. P. Brent's way to find
    cycles): so a cycle of any length is found.
    """

    def __init__(self, alive: np.ndarray, runtime: RuntimeState, scheduler: Scheduler, memory: Memory, frames: Frames):
        self._alive, self._runtime, self._scheduler = alive, runtime, scheduler
        self._memory, self._frames = memory, frames
        self._looks = 0
        self._state = b""
        self._kept_at = self._next = 1

    def found(self) -> bool:
        """Whether the launch has come back to a state; asked each time that the oldest group has been let run.

        Since then all must have been let run who can: as many times as there are groups.
        """
        self._looks += 1
        size = sum(part.nbytes for part in self._parts())
        if self._looks % (1 + size // _BYTES_A_LOOK):
            return False
        digest = blake2b(digest_size=16)
        for part in self._parts():
            digest.update(np.ascontiguousarray(part).data)
        state = digest.digest()
        if state == self._state:
            return self._looks - self._kept_at >= len(self._scheduler.standing())
        if self._looks >= self._next:
            self._state, self._kept_at, self._next = state, self._looks, 2 * self._looks
        return False

    def _parts(self) -> Iterator[np.ndarray]:
        yield self._alive
        yield np.array([self._runtime.printed, len(self._runtime.heap)])
        for context, pc, lanes in self._scheduler.standing():
            yield np.array([id(context), pc])
            yield lanes
        yield from self._memory.writeable()
        for registers in self._frames.all():
            yield from registers.memory

    def fault(self) -> Fault:
        """Return the fault to raise."""
        scheduler = self._scheduler
        context, pc, lanes = scheduler.standing()[-1]
        return Fault(
            "no-progress",
            f"after {scheduler.steps} steps the kernel is where it has been before, and nothing has changed in "
            "registers or memory: a loop does not end",
            lanes,
            context.code.function.instructions[pc],
        )
