"""How far a long launch is, on standard error, where a terminal looks."""

from __future__ import annotations

import sys
import time

__all__ = ["Progress"]

_FIRST_SECONDS, _NEXT_SECONDS = 2.0, 0.2  # what is shorter shows nothing


class Progress:
    """A line that is written anew now and then."""

    def __init__(self) -> None:
        self._is_seen = sys.stderr is not None and sys.stderr.isatty()
        self._due = time.monotonic() + _FIRST_SECONDS
        self._width = 0

    @property
    def is_due(self) -> bool:
        """Whether somebody looks, and it is time."""
        return self._is_seen and time.monotonic() >= self._due

    def show(self, text: str) -> None:
        """In the place of what was there."""
        self._due = time.monotonic() + _NEXT_SECONDS
        self._write(text)

    def clear(self) -> None:
        """At the end nothing is left of it."""
        if self._width:
            self._write("")

    def _write(self, text: str) -> None:
        print(f"\r{text:{self._width}}\r{text}", end="", file=sys.stderr, flush=True)
        self._width = len(text)
