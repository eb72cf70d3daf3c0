"""The time limit of a launch, or of the loading of its PTX.

A separate thread of the process interrupts each launch at its time limit, because a launch itself never reads the
clock. The thread starts with the first launch that has a limit, and ends after some time without such launches.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from ..._given import shown
from .._errors import TimeLimitReached

__all__ = ["NEVER", "THREAD_NAME", "Deadline", "seconds_of"]

THREAD_NAME = "cuda_tma time limits"

_TICK_SECONDS = 0.05  # A thread checks the time limits of launches every 0.05 seconds.
_IDLE_SECONDS = 5.0
_MOST_SECONDS = 10_000_000  # The largest time limit is about four months.


class Deadline:
    """The time at which a launch, or the loading of PTX, must end.

    Parameters
    ----------
    limit_seconds : float or None
        The limit in seconds from the present time; None for no limit.
    """

    def __init__(self, limit_seconds: float | None):
        self.limit_seconds = limit_seconds
        self._end = float("inf") if limit_seconds is None else time.monotonic() + limit_seconds

    @property
    def has_passed(self) -> bool:
        return time.monotonic() >= self._end

    def check(self, work: str = "the launch") -> None:
        """Raise an exception if the time limit is reached.

        Raises
        ------
        TimeLimitReached
        """
        if self.has_passed:
            raise TimeLimitReached(f"{work} reached the time limit of {self.limit_seconds:g} s")

    @contextmanager
    def interrupting(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """Call a function repeatedly from another thread, after the time limit and until the end of the ``with``
        block."""
        if self.limit_seconds is None:
            yield
            return
        key = _watch.add(self, interrupt)
        try:
            yield
        finally:
            _watch.remove(key)


NEVER = Deadline(None)


def seconds_of(given: float | None) -> float | None:
    """Return a time limit in seconds, or None for no limit; refuse other values."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise TypeError(f"time_limit={shown(given)}; pass seconds, or None")
    if not 0 < given <= _MOST_SECONDS:
        raise ValueError(f"time_limit={given}; pass more than 0 seconds, and at most {_MOST_SECONDS}")
    return float(given)


class _Watch:
    """The thread that interrupts launches at their time limits, and the list of these launches."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys = count()
        self._watched: dict[int, tuple[Deadline, Callable[[], None]]] = {}
        self._thread: threading.Thread | None = None

    def add(self, deadline: Deadline, interrupt: Callable[[], None]) -> int:
        with self._lock:
            key = next(self._keys)
            self._watched[key] = deadline, interrupt
            # A forked process needs a new thread, because the thread of its parent does not exist.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)
                self._thread.start()
        return key

    def remove(self, key: int) -> None:
        with self._lock:
            del self._watched[key]

    def _run(self) -> None:
        last_used = time.monotonic()
        while True:
            time.sleep(_TICK_SECONDS)
            with self._lock:
                watched = [*self._watched.values()]
                if watched:
                    last_used = time.monotonic()
                elif time.monotonic() - last_used > _IDLE_SECONDS:
                    self._thread = None
                    return
            for deadline, interrupt in watched:
                if deadline.has_passed:
                    interrupt()


_watch = _Watch()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_watch.__init__)  # type: ignore[misc]  # The thread may hold the lock.
