"""The bytes of a tensor that a box contains, computed for an observer of the copy."""

from __future__ import annotations

from functools import reduce

import numpy as np

from ..._data_type import element_bits
from ...emulate._whole import whole
from ...params import Params, TiledParams

__all__ = ["footprint"]


def footprint(params: Params, coordinates: tuple[int, ...]) -> tuple[np.ndarray, int]:
    """Return the start of each row of a box inside the tensor, and the size of a row in bytes.

    The result contains no rows for an unsupported mode.

    Parameters
    ----------
    params : Params
    coordinates : tuple of int
        The start of the box, with the innermost dimension first.

    Returns
    -------
    (numpy.ndarray of int64, int)
    """
    found = whole(params)
    if found is not None and (origin := found.origin(coordinates)) is not None:
        return found.rows + (params.global_address + origin), found.row_bytes
    plain = isinstance(params, TiledParams) and not params.interleave and element_bits(params.data_type) >= 8
    if not isinstance(params, TiledParams) or not plain or any(step != 1 for step in params.element_strides):
        return np.zeros(0, np.int64), 0
    # A wrong number of coordinates is an error that the copy itself reports.
    if len(coordinates) != len(params.global_dim):
        return np.zeros(0, np.int64), 0
    spans = [
        (max(0, start), min(extent, start + box))
        for start, box, extent in zip(coordinates, params.box_dim, params.global_dim, strict=True)
    ]
    if any(first >= end for first, end in spans):
        return np.zeros(0, np.int64), 0
    size = element_bits(params.data_type) // 8
    (first, end), *outer = spans
    steps = [np.arange(*span) * stride for span, stride in zip(outer, params.global_strides, strict=True)]
    rows = reduce(lambda rows, step: np.add.outer(step, rows).ravel(), steps, np.zeros(1, np.int64))
    return params.global_address + first * size + rows, (end - first) * size
