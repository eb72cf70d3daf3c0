"""The time of a launch: steps of the scheduler, and the time in which no thread can run."""

from __future__ import annotations

from .scheduler import Scheduler

__all__ = ["Clock"]


class Clock:
    """The clock that ``%clock`` and ``%globaltimer`` read."""

    def __init__(self, scheduler: Scheduler):
        self._scheduler = scheduler
        self._slept = 0

    def cycles(self) -> int:
        """Return the number of steps."""
        return self._scheduler.steps

    def nanoseconds(self) -> int:
        """Return the steps, and the time that has passed without one."""
        return self._scheduler.steps + self._slept

    def sleep(self, nanoseconds: int) -> None:
        """Let time pass."""
        self._slept += nanoseconds
