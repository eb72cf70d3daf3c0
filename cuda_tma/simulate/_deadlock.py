"""A deadlock in words: who waits, for what, and what is missing."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ._geometry import Geometry
from ._waiting import Waiting

__all__ = ["describe"]

_MOST_LINES = 8


def describe(waiting: list[Waiting], geometry: Geometry) -> str:
    """One line for each thing that is waited for."""
    lanes = defaultdict(list)
    for each in waiting:
        lanes[each.missing].append(each.parked.lanes)
    lines = [_line(missing, np.concatenate(found), geometry) for missing, found in lanes.items()]
    shown = lines[:_MOST_LINES]
    if len(lines) > len(shown):
        shown.append(f"and {len(lines) - len(shown)} more")
    return "no thread can go on: " + "; ".join(shown)


def _line(missing: str, lanes: np.ndarray, geometry: Geometry) -> str:
    blocks, threads = geometry.blocks_and_threads(lanes)
    named = f"thread {threads[0]}" if len(lanes) == 1 else f"{len(lanes)} threads ({_ranges(threads)})"
    return f"{named} of block {blocks[0]}{' and others' if len(blocks) > 1 else ''} wait for {missing}"


def _ranges(numbers: tuple[int, ...]) -> str:
    """``0 to 31, 64``."""
    starts = [i for i, n in enumerate(numbers) if i == 0 or n != numbers[i - 1] + 1]
    parts = []
    for first, after in zip(starts, [*starts[1:], len(numbers)], strict=True):
        parts.append(str(numbers[first]) if after == first + 1 else f"{numbers[first]} to {numbers[after - 1]}")
    return ", ".join(parts[:4]) + (", ..." if len(parts) > 4 else "")
