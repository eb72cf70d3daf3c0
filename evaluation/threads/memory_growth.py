"""Whose memory it is that a process grew by: kinds of work beside the same works without the package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

BARE = {"capture": "core_graph_alone"}  # of our kinds of work, what makes the same objects of cuda.core's and no other
MOST_BYTES_EACH = 8  # that a work may leave behind, where there is no leak: less than any object
NOISE_BYTES = 512 << 10  # pages that come and go


class Alone(NamedTuple):
    """What one kind of work left behind, when nothing else was done."""

    works: int
    grown_bytes: int

    @property
    def bytes_each(self) -> float:
        return self.grown_bytes / max(self.works, 1)


def bare_bytes_each(work: str, alone: Mapping[str, Alone]) -> float:
    """What a kind of work leaves behind by what it does through others; 0 where none of that is known."""
    return max(0.0, alone[BARE[work]].bytes_each) if BARE.get(work) in alone else 0.0


def grown_alone(alone: Mapping[str, Alone]) -> list[str]:
    """Which of our kinds of work leave more behind than what they do through others."""
    found = []
    for work, left in alone.items():
        own_bytes = left.grown_bytes - left.works * bare_bytes_each(work, alone)
        if not work.endswith("_alone") and own_bytes > NOISE_BYTES + left.works * MOST_BYTES_EACH:
            found.append(f"{work} alone left {own_bytes / left.works:.1f} bytes a work that are none of others'")
    return found


def others_bytes(done: Mapping[str, int], alone: Mapping[str, Alone]) -> int:
    """What so many works left behind by what they do through others."""
    return round(sum(count * bare_bytes_each(work, alone) for work, count in done.items()))
