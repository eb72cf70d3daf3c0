"""The progress line of a long launch, which appears on standard error if it is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Progress", "hide_progress", "progress_of_run"]

# The line of progress appears after 2 seconds, and is updated at most every 0.2 seconds.
_FIRST_SECONDS, _NEXT_SECONDS = 2.0, 0.2
_prefix: ContextVar[str] = ContextVar("prefix", default="")
_first_due: ContextVar[float | None] = ContextVar("first_due", default=None)


class Progress:
    """A progress line that is written again at most five times a second."""

    def __init__(self) -> None:
        self._is_seen = sys.stderr is not None and sys.stderr.isatty()
        due = _first_due.get()
        self._due = time.monotonic() + _FIRST_SECONDS if due is None else due
        self._width = 0

    @property
    def is_due(self) -> bool:
        """Return whether standard error is a terminal and the line is due for an update."""
        return self._is_seen and time.monotonic() >= self._due

    def show(self, text: str) -> None:
        """Replace the progress line by a text."""
        self._due = time.monotonic() + _NEXT_SECONDS
        self._write(_prefix.get() + text)

    def clear(self) -> None:
        """Erase the progress line."""
        if self._width:
            self._write("")

    def _write(self, text: str) -> None:
        print(f"\r{text:{self._width}}\r{text}", end="", file=sys.stderr, flush=True)
        self._width = len(text)


def hide_progress() -> None:
    """Disable the progress line in this process."""
    _first_due.set(float("inf"))


@contextmanager
def progress_of_run(launch: str, begun: float) -> Iterator[None]:
    """Show the name of a launch in the progress line of a longer run.

    Parameters
    ----------
    launch : str
        The name of the launch, such as ``"launch 12, matmul"``.
    begun : float
        The value of ``time.monotonic()`` at the start of the run, which determines the time of the first line.
    """
    prefix = _prefix.set(f"{launch}: ")
    due = _first_due.set(begun + _FIRST_SECONDS)
    try:
        yield
    finally:
        _prefix.reset(prefix)
        _first_due.reset(due)
