"""Fragments: the thread that has an element of a matrix, and the index of the element among the thread's values.

A warp has 16 rows, and lane i has elements of rows i / 4 and i / 4 + 8. The next warp has the next 16 rows. The sources
are PTX ISA 9.0, "Register Fragments for wgmma.mma_async.m64nNk16", "Matrix Fragments for mma.m16n8k16" and the sections
after each, "ldmatrix" and "stmatrix". Tests compare these fragments with the simulator's MMA, whose results are
bit-identical to those of an H200.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["Grid", "Places", "factor", "factor_b", "matrices", "matrices_turned", "scales", "sums"]

Grid = np.ndarray
# The grids contain the fields of the places, such as threads and values.
Places = tuple[Grid, ...]
_LANES = 32


def sums(row: Grid, column: Grid, bits: int) -> Places:
    """Return the places of C or D.

    A thread's values are in this order: two neighbors in a row, then the row that is 8 rows below, then the next 8
    columns.
    """
    lane = row % 8 * 4 + column % 8 // 2
    return _of_warp(row, lane), column % 2 + row // 8 % 2 * 2 + column // 8 * 4


def factor(row: Grid, column: Grid, bits: int) -> Places:
    """Return the places of A.

    A thread's values are in this order: the elements of one register, then the row that is 8 rows below, then the next
    16 bytes.
    """
    each = 32 // bits
    lane = row % 8 * 4 + column // each % 4
    return _of_warp(row, lane), column % each + row // 8 % 2 * each + column // (4 * each) * 2 * each


def factor_b(row: Grid, column: Grid, bits: int) -> Places:
    """Return the places of B of ``mma``, transposed.

    A thread's values are in this order: the elements of one register, then the next 16 bytes.
    """
    each = 32 // bits
    return row * 4 + column // each % 4, column % each + column // (4 * each) * each


def scales(row: Grid, column: Grid, bits: int) -> Places:
    """Return the places of the scale factors of ``mma``: for each thread-id, 16 rows of A or 8 columns of B.

    Lanes 4 * i to 4 * i + 3 have the rows i, i + 8, i + 16 and i + 24. A register contains four scales of a row.
    """
    return row % 8 * 4 + row // 8, column


def matrices(down: int) -> Callable[[Grid, Grid, int], Places]:
    """Return the places of ``ldmatrix`` or ``stmatrix``.

    The matrices have 8 rows of 16 bytes, and the first `down` matrices are stacked.
    """

    def places(row: Grid, column: Grid, bits: int) -> Places:
        each = 32 // bits
        matrix = row // 8 % down + column // (4 * each) * down
        return row // (8 * down) * _LANES + row % 8 * 4 + column // each % 4, column % each + matrix * each

    return places


def matrices_turned(down: int) -> Callable[[Grid, Grid, int], Places]:
    """Return the places of matrices() with ``.trans``: both 16-bit elements of a register are in one column."""

    def places(row: Grid, column: Grid, bits: int) -> Places:
        matrix = row // 8 % down + column // 8 * down
        return row // (8 * down) * _LANES + column % 8 * 4 + row % 8 // 2, row % 2 + matrix * 2

    return places


def _of_warp(row: Grid, lane: Grid) -> Grid:
    return row // 16 * _LANES + lane
