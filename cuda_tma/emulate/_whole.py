"""Boxes that lie in their tensor whole: what a load or a store of one moves, reckoned once, as chunks of 16 bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .._data_type import element_bits
from .._errors import TensorMapError
from ..enums import TensorMapDataType as T
from ..params import Params, TiledParams
from ..smem import pattern
from ..smem._layout import CHUNK_BYTES
from ._legal import emulated_rows
from ._memory import permuted
from ._traversal import runs_of

__all__ = ["Whole", "whole"]


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """Any box of a map that has no element outside of the tensor. Read-only, since it is shared between calls.

    Attributes
    ----------
    size_bytes : int
        In shared memory, without gaps: what a load delivers.
    rows : numpy.ndarray of int64
        Where each row begins, in bytes from the box's first element; each has `row_bytes`.
    chunks : numpy.ndarray of int64
        For each 16 bytes of shared memory, swizzled, which 16 bytes of global memory they are, from the box's first on.
    reach_bytes : int
        From the box's first byte to behind its last.
    """

    size_bytes: int
    rows: np.ndarray
    row_bytes: int
    chunks: np.ndarray
    reach_bytes: int
    _last: tuple[int, ...]  # coordinates
    _strides: tuple[int, ...]  # bytes

    def origin(self, coordinates: Sequence[int]) -> int | None:
        """Where a box begins, in bytes from ``global_address``; None if a part of it lies outside, or it is off 16."""
        if len(coordinates) != len(self._last):
            return None
        origin = 0
        for at, last, stride in zip(coordinates, self._last, self._strides, strict=True):
            if not 0 <= at <= last:
                return None
            origin += at * stride
        return None if origin % CHUNK_BYTES else origin


@lru_cache(maxsize=256)
def whole(params: Params) -> Whole | None:
    """Of a tiled map whose boxes are moved as they are; None for another, and for one that no driver takes."""
    if not isinstance(params, TiledParams) or params.interleave or any(step != 1 for step in params.element_strides):
        return None
    try:
        layout = emulated_rows(params, check=True)
    except TensorMapError:
        return None
    converted = params.data_type in (T.TFLOAT32, T.TFLOAT32_FTZ)
    in_chunks = layout.data_bytes == layout.pitch_bytes and layout.data_bytes % CHUNK_BYTES == 0
    swizzled = pattern(params.swizzle)
    if converted or layout.group or not in_chunks or (swizzled.xors and swizzled.atom_bytes < CHUNK_BYTES):
        return None
    rows = runs_of(params).astype(np.int64)
    linear = rows[:, None] // CHUNK_BYTES + np.arange(layout.data_bytes // CHUNK_BYTES)
    bytes_of_chunks = np.repeat(linear.ravel(), CHUNK_BYTES // linear.itemsize).view(np.uint8)
    chunks = permuted(layout.swizzle, bytes_of_chunks).view(np.int64)[:: CHUNK_BYTES // linear.itemsize].copy()
    rows.flags.writeable = chunks.flags.writeable = False
    last = tuple(extent - box for extent, box in zip(params.global_dim, params.box_dim, strict=True))
    strides = (element_bits(params.data_type) // 8, *params.global_strides)
    reach = int(rows.max()) + layout.data_bytes
    return Whole(layout.count * layout.data_bytes, rows, layout.data_bytes, chunks, reach, last, strides)
