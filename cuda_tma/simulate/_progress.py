"""How far a long launch is, on standard error, where a terminal looks."""

from __future__ import annotations

import sys
import time

__all__ = ["Progress"]

_FIRST_SECONDS, _NEXT_SECONDS = 2.0, 0.2  # a launch that is shorter shows nothing


class Progress:
    """A line that is written anew now and then.

    Parameters
    ----------
    clusters : int
        Of the grid.
    """

    def __init__(self, clusters: int):
        self._clusters = clusters
        self._is_seen = sys.stderr is not None and sys.stderr.isatty()
        self._due = time.monotonic() + _FIRST_SECONDS
        self._width = 0

    def show(self, ended: int, thread_steps: int) -> None:
        """So many clusters have ended, and so many instructions of threads are done."""
        if not self._is_seen or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _NEXT_SECONDS
        text = (
            f"simulated: {ended} of {self._clusters} clusters, {thread_steps / 1e6:.1f} million instructions of threads"
        )
        self._write(text)

    def clear(self) -> None:
        """At the end nothing is left of it."""
        if self._width:
            self._write("")

    def _write(self, text: str) -> None:
        print(f"\r{text:{self._width}}\r{text}", end="", file=sys.stderr, flush=True)
        self._width = len(text)
