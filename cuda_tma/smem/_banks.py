"""The bank conflicts of a warp's reads of a box."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from .._given import entry
from .._limits import MAX_SMEM_BYTES
from .._params_checks import check_params
from ..params import Params
from ._layout import box_extents, check_fits, rows, slice_bytes, smem_bytes, unit_bytes
from ._pattern import swizzle_offset

__all__ = ["bank_conflicts", "worst_read"]

_LINE_BYTES = 128
_BANK_BYTES = 4
_BANKS = _LINE_BYTES // _BANK_BYTES
# _LARGEST_BYTES limits the size of a box, because a box may be larger than shared memory.
_LARGEST_BYTES = 64 * MAX_SMEM_BYTES


def bank_conflicts(params: Params, access: str) -> int:
    """Return the bank conflicts (ways) of a warp's read of the box: the largest number of wavefronts of such a read.

    Shared memory has 32 banks of 4 bytes. Reads of different 4-byte words in one bank are serialized. The result 1
    means that the read has no conflict.

    Parameters
    ----------
    params : TiledParams, Im2colParams or Im2colWideParams
    access : {"row", "column", "ldmatrix"}
        The reads of a warp. ``"row"``: 32 lanes read neighboring elements of one row. ``"column"``: 32 lanes read the
        same element of 32 successive rows. ``"ldmatrix"``: 8 lanes read 16 bytes each from 8 successive rows (one
        8x16-byte matrix).

    Returns
    -------
    int
        The largest number over all places in the box. Hardware serves elements of 8 bytes to 16 lanes at a time.

    Raises
    ------
    TensorMapError
        If `access` is not one of the three texts, or `params` is not a params object. Also if its box is more than 64
        times larger than shared memory.

    Examples
    --------
    >>> from cuda_tma.params import TiledParams
    >>> p = TiledParams(data_type=7, global_address=0, global_dim=(512, 512), global_strides=(2048,),
    ...                 box_dim=(32, 32), element_strides=(1, 1))
    >>> import dataclasses
    >>> swizzled = dataclasses.replace(p, swizzle=3)
    >>> bank_conflicts(p, "column"), bank_conflicts(swizzled, "column"), bank_conflicts(swizzled, "ldmatrix")
    (32, 4, 1)
    """
    return _ways(worst_read(params, access))


def worst_read(params: Params, access: str) -> np.ndarray:
    """Return the 4-byte words of the read in :func:`bank_conflicts`, numbered from the destination on.

    >>> from cuda_tma.params import TiledParams
    >>> p = TiledParams(data_type=7, global_address=0, global_dim=(512, 512), global_strides=(2048,),
    ...                 box_dim=(32, 4), element_strides=(1, 1))
    >>> worst_read(p, "column").tolist()
    [0, 32, 64, 96]
    """
    check_params(params)
    reads = entry("access", access, _ACCESSES)
    if smem_bytes(params) > _LARGEST_BYTES:
        check_fits(smem_bytes(params))
    return max(reads(params), key=_ways)


def _row_starts(params: Params) -> np.ndarray:
    if params.interleave:
        return np.arange(math.prod(box_extents(params))) * slice_bytes(params)
    return np.arange(rows(params).count) * rows(params).pitch_bytes


def _row_bytes(params: Params) -> int:
    return slice_bytes(params) or rows(params).taken_bytes


def _row_reads(params: Params) -> Iterator[np.ndarray]:
    unit = unit_bytes(params)
    lanes = min(_BANKS, _LINE_BYTES // unit)
    elements = np.arange(0, _row_bytes(params), unit)
    for start in range(0, len(elements), lanes):
        for row in _row_starts(params):
            yield _words(params, row + elements[start : start + lanes], unit)


def _column_reads(params: Params) -> Iterator[np.ndarray]:
    unit = unit_bytes(params)
    lanes = min(_BANKS, _LINE_BYTES // unit)
    starts = _row_starts(params)
    for first in range(0, len(starts), lanes):
        for column in range(0, _row_bytes(params), unit):
            yield _words(params, starts[first : first + lanes] + column, unit)


def _ldmatrix_reads(params: Params) -> Iterator[np.ndarray]:
    starts = _row_starts(params)
    for first in range(0, len(starts), 8):
        for column in range(0, _row_bytes(params), 16):
            yield _words(params, starts[first : first + 8] + column, 16)


_ACCESSES = {"row": _row_reads, "column": _column_reads, "ldmatrix": _ldmatrix_reads}


def _words(params: Params, offsets: np.ndarray, lane_bytes: int) -> np.ndarray:
    """Return the distinct 4-byte words of a read in which each lane reads `lane_bytes` from linear `offsets`."""
    every = offsets[:, None] + np.arange(0, lane_bytes, min(lane_bytes, _BANK_BYTES))
    return np.unique(swizzle_offset(params.swizzle, every) // _BANK_BYTES)


def _ways(words: np.ndarray) -> int:
    return int(np.bincount(words % _BANKS).max())
