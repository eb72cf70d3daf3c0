"""Atomic operations of many threads on one address in sequence, computed for all threads at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["Combine", "in_turn"]

# A Combine function computes the new value in memory from the old value and the operands of an atomic instruction.
Combine = Callable[..., np.ndarray]
# A Scan function returns the value that each thread reads from memory, and the final value in memory. A Scan function
# returns None if threads must execute the atomic instruction one by one.
Scan = Callable[..., "tuple[np.ndarray, np.generic] | None"]


def in_turn(view: np.ndarray, items: np.ndarray, sources: list[np.ndarray], combine: Combine, op: str) -> np.ndarray:
    """Combine each source with its item of `view` in ascending order, and return the old value for each source."""
    order = np.argsort(items, kind="stable")
    ordered = items[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    sizes = np.diff(starts, append=len(items))
    old = np.empty(len(items), view.dtype)
    most = int(sizes.max())
    # If the threads access many addresses, a loop over the threads of each address is faster than a scan.
    scan = _SCANS.get(op) if len(starts) < most else None
    for start, size in zip(starts, sizes, strict=True) if scan else ():
        who, at = order[start : start + size], ordered[start]
        found = scan(view[at], *(source[who] for source in sources)) if scan else None
        if found is None:
            _one_by_one(view, items, sources, combine, old, who, np.arange(size))
        else:
            old[who], view[at] = found
    if not scan:
        rank = np.arange(len(items)) - np.repeat(starts, sizes)
        _one_by_one(view, items, sources, combine, old, order, rank)
    return old


def _one_by_one(
    view: np.ndarray,
    items: np.ndarray,
    sources: list[np.ndarray],
    combine: Combine,
    old: np.ndarray,
    who: np.ndarray,
    rank: np.ndarray,
) -> None:
    """Combine all sources of the same rank in one step, because no two of them have the same address."""
    for number in range(int(rank.max()) + 1):
        some = who[rank == number]
        where = items[some]
        old[some] = view[where]
        view[where] = combine(old[some], *(source[some] for source in sources))


def _accumulated(ufunc: np.ufunc) -> Scan:
    def scan(there: np.generic, values: np.ndarray) -> tuple[np.ndarray, np.generic]:
        after = ufunc.accumulate(np.concatenate([[there], values]), dtype=values.dtype)
        return after[:-1], after[-1]

    return scan


def _of_integers(ufunc: np.ufunc) -> Scan:
    """Return a scan only for integers, because the min and max of floats in PTX differ from those of NumPy."""
    scan = _accumulated(ufunc)
    return lambda there, values: scan(there, values) if values.dtype.kind in "iu" else None


_sums = _accumulated(np.add)


def _added(there: np.generic, values: np.ndarray) -> tuple[np.ndarray, np.generic] | None:
    """Add the values in sequence, and return None for a sum of floats with subnormals or NaNs.

    All other sums of floats in NumPy are equal to those of PTX.
    """
    found = _sums(there, values)
    if values.dtype.kind == "f" and found is not None:
        every = np.abs(np.concatenate([found[0], values, [found[1]]]))
        if not ((every == 0) | (every >= np.finfo(values.dtype).smallest_normal)).all():
            return None
    return found


def _exchanged(there: np.generic, values: np.ndarray) -> tuple[np.ndarray, np.generic]:
    return np.concatenate([[there], values[:-1]]), values[-1]


def _swapped(there: np.generic, expected: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.generic] | None:
    """Compute a sequence of atom.cas: find each source whose expected value is in memory, and store its new value."""
    if expected.dtype.itemsize > 8:  # NumPy has no integer type of 16 bytes, so the type of the items is complex128.
        return None
    old, start = np.empty_like(expected), 0
    while len(hits := np.flatnonzero(expected[start:] == there)):
        old[start : start + hits[0] + 1] = there
        start, there = start + int(hits[0]) + 1, new[start + hits[0]]
    old[start:] = there
    return old, there


_SCANS: dict[str, Scan] = {
    "add": _added,
    "exch": _exchanged,
    "cas": _swapped,
    "and": _accumulated(np.bitwise_and),
    "or": _accumulated(np.bitwise_or),
    "xor": _accumulated(np.bitwise_xor),
    "min": _of_integers(np.minimum),
    "max": _of_integers(np.maximum),
}
