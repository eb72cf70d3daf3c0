"""Fragments: which thread holds an element of a matrix, and as which of its values.

A warp has 16 rows: lane i belongs to rows i / 4 and i / 4 + 8. Warps lie below each other. Sources: PTX ISA 9.0,
"Register Fragments for wgmma.mma_async.m64nNk16" and its neighbours, "Matrix Fragments for mma.m16n8k16" and its
neighbours, "ldmatrix", "stmatrix"; the simulator's products, which are an H200's bit for bit, are held to the same.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["Grid", "Places", "factor", "factor_b", "matrices", "matrices_turned", "sums"]

Grid = np.ndarray
Places = tuple[Grid, ...]  # threads and values; or lanes, columns and parts
_LANES = 32


def sums(row: Grid, column: Grid, bits: int) -> Places:
    """C and D: two neighbours in a row, then the row 8 below, then the next 8 columns; whatever their type."""
    lane = row % 8 * 4 + column % 8 // 2
    return _of_warp(row, lane), column % 2 + row // 8 % 2 * 2 + column // 8 * 4


def factor(row: Grid, column: Grid, bits: int) -> Places:
    """A: the elements of one register side by side, then the row 8 below, then the next 16 bytes."""
    each = 32 // bits
    lane = row % 8 * 4 + column // each % 4
    return _of_warp(row, lane), column % each + row // 8 % 2 * each + column // (4 * each) * 2 * each


def factor_b(row: Grid, column: Grid, bits: int) -> Places:
    """B of ``mma``, of which a row here is a column of B: the elements of one register, then the next 16 bytes."""
    each = 32 // bits
    return row * 4 + column // each % 4, column % each + column // (4 * each) * each


def matrices(down: int) -> Callable[[Grid, Grid, int], Places]:
    """``ldmatrix`` and ``stmatrix`` of so many matrices of 8 rows of 16 bytes, the first ones below each other."""

    def places(row: Grid, column: Grid, bits: int) -> Places:
        each = 32 // bits
        matrix = row // 8 % down + column // (4 * each) * down
        return row // (8 * down) * _LANES + row % 8 * 4 + column // each % 4, column % each + matrix * each

    return places


def matrices_turned(down: int) -> Callable[[Grid, Grid, int], Places]:
    """The same with ``.trans``, of 16-bit elements: a thread's two elements of a register lie below each other."""

    def places(row: Grid, column: Grid, bits: int) -> Places:
        matrix = row // 8 % down + column // 8 * down
        return row // (8 * down) * _LANES + column % 8 * 4 + row % 8 // 2, row % 2 + matrix * 2

    return places


def _of_warp(row: Grid, lane: Grid) -> Grid:
    return row // 16 * _LANES + lane
