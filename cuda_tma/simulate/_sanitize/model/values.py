"""The values of stores, which decide whether two stores write the same value.

Two stores of the same value race by the definition of the PTX ISA, but usually by intent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["Values", "leaves_as_it_is", "same_as"]

# A Values sequence contains an array for each element of a vector, with one value for each access or one value for all.
Values = Sequence[np.ndarray]


def _bytes_of(values: Values, count: int) -> np.ndarray:
    """Return the bytes of the values in memory order, [access, byte]."""
    together = np.stack([np.broadcast_to(value, (count,)) for value in values], axis=1)
    return together.view(np.uint8).reshape(count, -1)


def leaves_as_it_is(memory: np.ndarray, positions: np.ndarray, values: Values) -> np.ndarray:
    """Return, for each store, whether memory already contains the bytes of the store."""
    written = _bytes_of(values, len(positions))
    return (memory[positions[:, None] + np.arange(written.shape[1])] == written).all(axis=1)


def same_as(values: Values, lanes: np.ndarray, some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return, for each lane in `some`, whether it writes the same bytes as the lane at the same index of `others`."""
    written, order = _bytes_of(values, len(lanes)), np.argsort(lanes)
    places = [order[np.searchsorted(lanes, which, sorter=order)] for which in (some, others)]
    return (written[places[0]] == written[places[1]]).all(axis=1)
