"""The scales of a product with ``.block_scale``: their cells in tensor memory, and their numbers.

A cell contains the scales of one row of A or of one column of B, a byte for each block of K. Row r is in lane r % 32 of
column r // 32, and each quarter of the lanes contains a copy (PTX ISA, "Scale Factor Layout"; CUTLASS 4,
`UMMA::tmem_sf_frg`). In the simulator, the sums in a quarter use the copy of this quarter, which is not verified on
hardware.
"""

from __future__ import annotations

import numpy as np

from .._matrix.scaled import scale_numbers
from .form import Scales
from .layouts import Block, groups_of

__all__ = ["columns_of", "groups_of_scales", "quarters_of", "rows_of_scales", "scale_numbers"]

ROWS_OF_CELLS = 32  # One column of tensor memory contains the scales of 32 rows of A or 32 columns of B.


def columns_of(rows: int) -> int:
    """Return the number of columns that contain the scales of some rows.

    >>> columns_of(128), columns_of(8)
    (4, 1)
    """
    return -(-rows // ROWS_OF_CELLS)


def groups_of_scales(block_lanes: np.ndarray, rows: int) -> tuple[int, ...]:
    """Return the groups of 16 lanes that contain the scales of some rows, for sums in some lanes."""
    quarters = np.unique(block_lanes // ROWS_OF_CELLS) * ROWS_OF_CELLS
    return groups_of(np.add.outer(quarters, np.arange(min(rows, ROWS_OF_CELLS))).ravel())


def rows_of_scales(
    cells: np.ndarray, column: int, quarters: np.ndarray, rows: np.ndarray, scales: Scales, first: int
) -> np.ndarray:
    """Return the scales of some rows, float64 [quarters, rows, scales along K].

    Parameters
    ----------
    cells : numpy.ndarray
        The cells of a CTA, uint32 [column, lane].
    column : int
        The first column of the scales.
    quarters : numpy.ndarray of intp, [quarters]
        The quarters of the lanes whose copies are used.
    rows : numpy.ndarray of intp, [quarters, rows]
        The rows of A, or the columns of B.
    scales : Scales
    first : int
        The first byte in each cell.
    """
    lanes = quarters[:, None] * ROWS_OF_CELLS + rows % ROWS_OF_CELLS
    found = np.ascontiguousarray(cells[column + rows // ROWS_OF_CELLS, lanes])
    codes = found.view(np.uint8).reshape(*found.shape, 4)[..., first : first + scales.count]
    return scale_numbers(codes, scales.type)


def quarters_of(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Return the quarters with the lanes of a block, [quarters], and the rows in each quarter, [quarters, 32]."""
    return block.lanes[::ROWS_OF_CELLS] // ROWS_OF_CELLS, np.arange(len(block.lanes)).reshape(-1, ROWS_OF_CELLS)
