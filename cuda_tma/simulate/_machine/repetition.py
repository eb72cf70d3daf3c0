"""The detection of endless loops: a launch that reaches the same state twice repeats it endlessly.

A state consists of the places of threads, their registers, and memory, which determine the rest of the launch. A state
does not contain the time, because a loop that reads the clock has a new value in a register in each iteration.
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

# A launch with a larger state is compared less often, because a comparison reads the whole state.
_BYTES_A_LOOK = 1 << 21


class Repetition:
    """A comparison, at intervals, of the present state of a launch with an earlier state.

    The comparison keeps one earlier state, and replaces this state by the present state at intervals that double.
    Brent's algorithm finds a cycle of any length. P.
    """

    def __init__(self, alive: np.ndarray, runtime: RuntimeState, scheduler: Scheduler, memory: Memory, frames: Frames):
        self._alive, self._runtime, self._scheduler = alive, runtime, scheduler
        self._memory, self._frames = memory, frames
        self._looks = 0
        self._state = b""
        self._kept_at = self._next = 1

    def found(self) -> bool:
        """Return whether the launch has returned to an earlier state; the caller calls this method after each run of
        the oldest group.

        All groups that can run must have run since the earlier state, which takes one call for each group.
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
        """Return the fault for an endless loop."""
        scheduler = self._scheduler
        context, pc, lanes = scheduler.standing()[-1]
        return Fault(
            "no-progress",
            f"after {scheduler.steps} steps the kernel is where it has been before, and nothing has changed in "
            "registers or memory: a loop does not end. Write the value for which the loop ends, before the loop or in "
            "another thread",
            lanes,
            context.code.function.instructions[pc],
        )
