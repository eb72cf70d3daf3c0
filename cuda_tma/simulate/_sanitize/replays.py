"""The replays of a launch that the sanitizer requests, which decide whether a value has an effect."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from .._memory.global_memory import Segment
from .checks.racing_reads import Pair
from .report.collector import UndefinedRead

__all__ = ["Launched", "Replays"]


class Launched(Protocol):
    """The observer of a launch that has ended."""

    def before(self) -> dict[Segment, bytes] | None:
        """Return the initial bytes of all arrays that the launch touches; None if it touches too many."""

    def progress(self) -> tuple[str, int, int]:
        """Return the output, the instructions of threads, and the steps."""


class Replays(Protocol):
    """A launch that can be repeated."""

    def without_effect(self, pairs: Collection[Pair], launched: Launched) -> dict[Pair, str]:
        """Return the pairs whose reads have no effect, each with the reason."""

    def with_effect(self, reads: Mapping[tuple, UndefinedRead], launched: Launched) -> set[tuple]:
        """Return the keys of reads of undefined values that have an effect."""
