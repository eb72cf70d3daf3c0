"""The simulated time of a launch: the steps of the scheduler, and the time during which no thread can run."""

from __future__ import annotations

from .scheduler import Scheduler

__all__ = ["Clock"]


class Clock:
    """The clock that ``%clock`` and ``%globaltimer`` read."""

    def __init__(self, scheduler: Scheduler):
        self._scheduler = scheduler
        self._slept = 0

    def cycles(self) -> int:
        """Return the number of steps of the scheduler."""
        return self._scheduler.steps

    def nanoseconds(self) -> int:
        """Return the number of steps of the scheduler, plus the time during which no thread could run."""
        return self._scheduler.steps + self._slept

    def sleep(self, nanoseconds: int) -> None:
        """Advance the clock by a time during which no thread runs."""
        self._slept += nanoseconds
