"""Which cells of tensor memory the sums of a product lie in. PTX ISA, "Data Path Layout Organization".

A matrix lies there in blocks: a block has some of its rows in as many lanes, and some of its columns. Where A is in
tensor memory, each sum takes the row of A that lies in the lane of the sum.
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
    """Rows of D that lie in lanes side by side, or in 16 of every 32.

    Attributes
    ----------
    lanes : numpy.ndarray of intp
        A lane for each row, from the lane of D's address on.
    first_column, columns : int
        Of D; they lie in columns from that of D's address on.
    """

    lanes: np.ndarray
    first_column: int
    columns: int


@lru_cache(maxsize=64)
def blocks_of(form: Form) -> tuple[Block, ...]:
    """Return the blocks of the sums that one CTA has."""
    rows = form.m // form.ctas
    if rows == 128:
        return (Block(np.arange(128), 0, form.n),)
    if rows == 64 and form.ctas == 1 and not form.is_stationary:
        return (Block(np.arange(64) // 16 * 32 + np.arange(64) % 16, 0, form.n),)
    parts = 128 // rows
    width = form.n // parts
    return tuple(Block(np.arange(rows) + i * rows, i * width, width) for i in range(parts))


def groups_of(lanes: np.ndarray) -> tuple[int, ...]:
    """Return the groups of 16 lanes that some lanes are in."""
    return tuple(np.unique(lanes // GROUP_LANES).tolist())
