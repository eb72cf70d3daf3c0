"""The analysis of a process's memory growth, which compares kinds of work with the same work without the package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# The table maps a kind of work to work that creates the same objects of cuda.core without the package.
BARE = {"capture": "core_graph_alone"}
MOST_BYTES_EACH = 8  # Growth of at most eight bytes for each work is not a leak, because every object is larger.
NOISE_BYTES = 512 << 10  # The memory of a process varies by up to 512 KiB without a leak.


class Alone(NamedTuple):
    """The memory that one kind of work retained when no other work ran."""

    works: int
    grown_bytes: int

    @property
    def bytes_each(self) -> float:
        return self.grown_bytes / max(self.works, 1)


def bare_bytes_each(work: str, alone: Mapping[str, Alone]) -> float:
    """Return the memory that a kind of work retains through other libraries, or 0 if that memory is not known."""
    return max(0.0, alone[BARE[work]].bytes_each) if BARE.get(work) in alone else 0.0


def grown_alone(alone: Mapping[str, Alone]) -> list[str]:
    """Return the kinds of work with the package that retain more memory than the same work without the package."""
    found = []
    for work, left in alone.items():
        own_bytes = left.grown_bytes - left.works * bare_bytes_each(work, alone)
        if not work.endswith("_alone") and own_bytes > NOISE_BYTES + left.works * MOST_BYTES_EACH:
            found.append(
                f"{work} alone left {own_bytes / left.works:.1f} bytes a work, which other libraries do not explain"
            )
    return found


def others_bytes(done: Mapping[str, int], alone: Mapping[str, Alone]) -> int:
    """Return the memory that the kinds of work retained through other libraries."""
    return round(sum(count * bare_bytes_each(work, alone) for work, count in done.items()))
