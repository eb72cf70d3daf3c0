"""Sets of lanes, which are the resident threads that execute an instruction together.

A lane is the number of a thread among all resident threads. Lane 0 is thread 0 of the first CTA, and each CTA begins at
a multiple of 32. A set of evenly spaced lanes is a slice, because NumPy then accesses registers in place. Any other set
is an ascending array of lane numbers. A slice and an array can both index a row of registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

__all__ = ["WARP", "WARPGROUP", "Lanes", "Warps", "as_array", "count", "each", "narrowed", "selected", "stretches"]
__all__ += ["warps_of"]

WARP, WARPGROUP = 32, 128
_MOST_KEPT = 1024  # The module caches arrays of at most 1,024 lanes.
Lanes = slice | np.ndarray


def selected(lanes: np.ndarray) -> Lanes:
    """Return ascending lane numbers as a set of lanes; the set is a slice if the lanes are evenly spaced."""
    first, size = int(lanes[0]), len(lanes)
    if size == 1:
        return slice(first, first + 1, 1)
    step, last = int(lanes[1]) - first, int(lanes[-1])
    if last - first == step * (size - 1) and (step == 1 or bool((np.diff(lanes) == step).all())):
        return slice(first, last + 1, step)
    return lanes


def as_array(lanes: Lanes) -> np.ndarray:
    """Return the numbers of some lanes as an ascending array that must not change."""
    if not isinstance(lanes, slice):
        return lanes
    numbers = lanes.start, lanes.stop, lanes.step
    return _kept(*numbers) if lanes.stop - lanes.start <= _MOST_KEPT else np.arange(*numbers)


@lru_cache(maxsize=1024)
def _kept(start: int, stop: int, step: int | None) -> np.ndarray:
    numbers = np.arange(start, stop, step)
    numbers.flags.writeable = False
    return numbers


def stretches(lanes: Lanes) -> list[slice]:
    """Return a slice for each run of adjacent lanes, because NumPy works on slices in place."""
    if isinstance(lanes, slice) and lanes.step in (1, None):
        return [lanes]
    here = as_array(lanes)
    first, last = int(here[0]), int(here[-1])
    if last - first == len(here) - 1:
        return [slice(first, last + 1, 1)]
    ends = np.flatnonzero(np.diff(here) != 1)
    firsts, lasts = [first, *here[ends + 1].tolist()], [*here[ends].tolist(), last]
    return [slice(first, last + 1, 1) for first, last in zip(firsts, lasts, strict=True)]


def count(lanes: Lanes) -> int:
    """Return the number of lanes in a set."""
    return len(range(lanes.start, lanes.stop, lanes.step)) if isinstance(lanes, slice) else len(lanes)


def each(value: Any, size: int) -> np.ndarray:
    """Return an array of `size` values, one for each lane; `value` may be one value for all lanes."""
    return value if isinstance(value, np.ndarray) and value.ndim else np.broadcast_to(value, (size,))


def narrowed(lanes: Lanes, mask: np.ndarray) -> Lanes:
    """Return the lanes for which `mask` is true; `mask` must be true for at least one lane."""
    return selected(as_array(lanes)[mask])


@dataclass(frozen=True, slots=True)
class Warps:
    """The warps to which a set of lanes belongs.

    Attributes
    ----------
    lanes : slice or numpy.ndarray
        The lanes that execute the instruction.
    whole : slice or numpy.ndarray
        All lanes of these warps, as an index of a row of registers; the values have the shape ``[warps, 32]``.
    active : numpy.ndarray of bool, [warps, 32]
        Whether each lane of the warps is in `lanes`.
    numbers : numpy.ndarray
        The numbers of the warps among all resident warps.
    """

    lanes: Lanes
    whole: Lanes
    active: np.ndarray
    numbers: np.ndarray

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return the values of `lanes` as [warps, 32], with 0 for lanes that do not execute the instruction."""
        matrix = np.zeros(self.active.shape, values.dtype)
        matrix[self.active] = values
        return matrix


def warps_of(lanes: Lanes) -> Warps:
    """Return the warps of some lanes."""
    if isinstance(lanes, slice) and lanes.step == 1 and lanes.start % WARP == 0 and lanes.stop % WARP == 0:
        first, last = lanes.start // WARP, lanes.stop // WARP
        return Warps(lanes, lanes, np.ones((last - first, WARP), bool), np.arange(first, last))
    numbers, row = np.unique(as_array(lanes) // WARP, return_inverse=True)
    whole = (numbers[:, None] * WARP + np.arange(WARP)).ravel()
    active = np.zeros((len(numbers), WARP), bool)
    active[row, as_array(lanes) % WARP] = True
    return Warps(lanes, selected(whole), active, numbers)
