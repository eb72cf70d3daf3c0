"""Conversions between two fragments: another order of values or columns, or an exchange between threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

__all__ = ["Exchange", "exchange_of"]

_MOST_LISTED = 32


@dataclass(frozen=True, slots=True)
class Exchange:
    """The conversion of registers from the layout that is written to the layout that is read.

    Attributes
    ----------
    moved : int
        The number of elements that must come from another thread.
    within : int
        The number of adjacent lanes (1, 4, 32, 128 or more) in the groups within which elements move.
    values : tuple of int, optional
        The value of the write that each thread moves to each value of the read, so that the rows are right. None if the
        threads have other rows.
    columns : tuple of int, optional
        The column of the write that every row has in each column of the read after the move. None if the rows differ.
    """

    moved: int
    within: int
    values: tuple[int, ...] | None
    columns: tuple[int, ...] | None

    def lines(self) -> Iterator[str]:
        """Yield the lines of a text about the conversion."""
        if not self.moved:
            yield "each thread holds the elements that it reads: reorder its values, without an exchange"
        else:
            whom = {4: "its quad of lanes", 32: "its warp", 128: "its warpgroup"}.get(self.within, "the CTA")
            how = "by shuffles, or through shared memory" if self.within <= 32 else "through shared memory"
            yield f"{self.moved:,} elements must come from another thread of {whom}: {how}"
        if self.values is None or self.columns is None:
            return
        in_order = self.values == tuple(range(len(self.values)))
        order = "" if in_order else f"let each thread take its values in the order {_listed(self.values)}: "
        if self.columns != tuple(range(len(self.columns))):
            yield (
                f"or without an exchange: {order}{'then ' * (not in_order)}every row has its columns in the order "
                f"{_listed(self.columns)}, which does not change a sum over columns if the rows of the other operand "
                "are in that order, too"
            )
        elif not in_order:
            yield f"the order: {_listed(self.values)}"


def exchange_of(written: np.ndarray, read: np.ndarray) -> Exchange:
    """Return the exchange of two layouts in registers.

    Each layout is int [rows, columns, (thread, value)].
    """
    moved = written[..., 0] != read[..., 0]
    pairs = np.stack([written[..., 0][moved], read[..., 0][moved]])
    within = next((size for size in (1, 4, 32, 128) if (pairs[0] // size == pairs[1] // size).all()), 1 << 10)
    values, columns = _reordered(written, read)
    return Exchange(int(moved.sum()), within, values, columns)


def _reordered(written: np.ndarray, read: np.ndarray) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Return an order of values that all threads can use.

    With the order, the rows are right, and each row has the same order of columns.
    """
    holds, wants = _by_thread(written), _by_thread(read)
    if holds.keys() != wants.keys():
        return None, None
    order: tuple[int, ...] | None = None
    columns = np.full(written.shape[1], -1)
    for thread, wanted in wants.items():
        pairs = _matched(holds[thread], wanted)
        if pairs is None or (order is not None and pairs[0] != order):
            return None, None
        order = pairs[0]
        for column, comes_from in pairs[1]:
            if columns[column] not in (-1, comes_from):
                return None, None
            columns[column] = comes_from
    return order, tuple(columns.tolist())


def _by_thread(places: np.ndarray) -> dict[int, list[tuple[int, int, int]]]:
    """Return value, row and column of all elements of each thread, ordered by value."""
    found: dict[int, list[tuple[int, int, int]]] = {}
    for (row, column), thread in np.ndenumerate(places[..., 0]):
        found.setdefault(int(thread), []).append((int(places[row, column, 1]), row, column))
    return {thread: sorted(held) for thread, held in found.items()}


def _matched(
    held: list[tuple[int, int, int]], wanted: list[tuple[int, int, int]]
) -> tuple[tuple[int, ...], list[tuple[int, int]]] | None:
    """Match the values of each row in their order.

    Return the target of each value, and its columns in both layouts.
    """
    by_row: dict[int, list[tuple[int, int]]] = {}
    for value, row, column in held:
        by_row.setdefault(row, []).append((value, column))
    order, columns = [], []
    for _, row, column in wanted:
        if not by_row.get(row):
            return None
        value, comes_from = by_row[row].pop(0)
        order.append(value)
        columns.append((column, comes_from))
    return tuple(order), columns


def _listed(numbers: tuple[int, ...]) -> str:
    said = " ".join(map(str, numbers[:_MOST_LISTED]))
    return f"{said} ..." if len(numbers) > _MOST_LISTED else said
