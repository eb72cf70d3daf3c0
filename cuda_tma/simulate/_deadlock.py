"""A deadlock in words: who waits where, for what, what is missing, and what to look at."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ._faults import Fault
from ._geometry import Geometry
from ._waiting import Waiting
from .ptx import Instruction

__all__ = ["deadlock"]

_MOST_LINES = 8


def deadlock(waiting: list[Waiting], geometry: Geometry) -> Fault:
    """What is raised where nobody can go on. Who waits alike, in several blocks, is said once.

    Parameters
    ----------
    waiting : list of Waiting
        What explains most comes first: it gives the finding its kind and its place.
    geometry : Geometry
    """
    alike = defaultdict(list)
    for each in waiting:
        alike[each.kind, each.missing, each.remedy, each.parked.instruction].append(each.parked.lanes)
    lines = []
    for (_, missing, remedy, instruction), found in alike.items():
        who = _who(np.concatenate(found), geometry)
        lines.append(f"{_place(instruction)}{who} for {missing}" + (f" ({remedy})" if remedy else ""))
    shown = lines[:_MOST_LINES]
    if len(lines) > len(shown):
        shown.append(f"and {len(lines) - len(shown)} more")
    kind, _, _, instruction = min(alike, key=lambda key: key[0] != "transaction-count")
    lanes = np.concatenate([each.parked.lanes for each in waiting])
    return Fault(kind, "no thread can go on:\n" + "\n".join(f"  {line}" for line in shown), np.sort(lanes), instruction)


def _place(instruction: Instruction | None) -> str:
    if instruction is None:
        return ""
    if not instruction.places:
        return f"PTX line {instruction.line}: "
    inner, outer = instruction.places[0], instruction.places[-1]
    where = "" if inner is outer else f", by way of {outer.file.rpartition('/')[2]}:{outer.line}"
    return f"{inner.file.rpartition('/')[2]}:{inner.line}{where}: "


def _who(lanes: np.ndarray, geometry: Geometry) -> str:
    """``128 threads (0 to 127) in each of 4 blocks wait``."""
    blocks, threads = geometry.blocks_and_threads(lanes)
    if len(lanes) == 1:
        return f"thread {threads[0]} of block {blocks[0]} waits"
    if len(threads) * len(blocks) != len(lanes):
        return f"{len(lanes)} threads of {len(blocks)} blocks wait"
    where = f"of block {blocks[0]}" if len(blocks) == 1 else f"in each of {len(blocks)} blocks"
    if len(threads) == 1:
        return f"thread {threads[0]} {where} waits"
    return f"{len(threads)} threads ({_ranges(threads)}) {where} wait"


def _ranges(numbers: tuple[int, ...]) -> str:
    """``0 to 31, 64``."""
    starts = [i for i, n in enumerate(numbers) if i == 0 or n != numbers[i - 1] + 1]
    parts = []
    for first, after in zip(starts, [*starts[1:], len(numbers)], strict=True):
        parts.append(str(numbers[first]) if after == first + 1 else f"{numbers[first]} to {numbers[after - 1]}")
    return ", ".join(parts[:4]) + (", ..." if len(parts) > 4 else "")
