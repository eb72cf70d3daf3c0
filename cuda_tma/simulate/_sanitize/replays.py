"""The replays of a launch, by which the sanitizer decides whether a value has an effect."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from .._memory.global_memory import Segment
from .checks.racing_reads import Pair
from .report.collector import UndefinedRead

__all__ = ["Launched", "Replays"]


class Launched(Protocol):
    """The interface of an observer after the end of a launch, which contains the expected results of a replay."""

    def before(self) -> dict[Segment, bytes] | None:
        """Return the initial bytes of all arrays that the launch accesses; None if they are too large to keep."""

    def progress(self) -> tuple[str, int, int]:
        """Return the printed output, the number of executed instructions, and the number of steps of the launch."""


class Replays(Protocol):
    """The interface of a launch that the simulator can run again."""

    def without_effect(self, pairs: Collection[Pair], launched: Launched) -> dict[Pair, str]:
        """Return the pairs of a racing read and a write whose read has no effect, each with the reason."""

    def with_effect(self, reads: Mapping[tuple, UndefinedRead], launched: Launched) -> set[tuple]:
        """Return the keys of the reads of undefined values that have an effect."""
