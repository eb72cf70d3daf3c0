"""The cells of tensor memory that contain the sums of a product (PTX ISA, "Data Path Layout Organization").

Tensor memory contains a matrix as blocks. A block consists of some columns of some rows, with one lane for each row. If
A is in tensor memory, the row of A for a sum is in the same lane as the sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .._warps.tensor_events import GROUP_LANES
from .form import Form

__all__ = ["Block", "blocks_of", "groups_of"]


@dataclass(frozen=True, slots=True)
class Block:
    """A block of the matrix D, whose rows are in adjacent lanes or in 16 of every 32 lanes.

    Attributes
    ----------
    lanes : numpy.ndarray of intp
        The lane of each row, relative to the lane of the address of D.
    first_column, columns : int
        The columns of D in the block. Tensor memory contains the block from column `first_column` on, counted from the
        address of D.
    """

    lanes: np.ndarray
    first_column: int
    columns: int


@lru_cache(maxsize=64)
def blocks_of(form: Form) -> tuple[Block, ...]:
    """Return the blocks that contain the sums in one CTA."""
    rows = form.m // form.ctas
    if rows == 128:
        return (Block(np.arange(128), 0, form.n),)
    if rows == 64 and form.ctas == 1 and not form.is_stationary:
        return (Block(np.arange(64) // 16 * 32 + np.arange(64) % 16, 0, form.n),)
    parts = 128 // rows
    width = form.n // parts
    return tuple(Block(np.arange(rows) + i * rows, i * width, width) for i in range(parts))


def groups_of(lanes: np.ndarray) -> tuple[int, ...]:
    """Return the groups of 16 lanes that include at least one of `lanes`."""
    return tuple(np.unique(lanes // GROUP_LANES).tolist())
