"""The bytes that a load or store of a box moves if the box is entirely inside its tensor.

The bytes are computed once, in chunks of 16 bytes.
"""

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
    """The bytes of any box of a map that is entirely inside the tensor.

    The value is read-only, because several calls share it.

    Attributes
    ----------
    size_bytes : int
        The size of the box without gaps, which is the number of bytes that a load delivers.
    rows : numpy.ndarray of int64
        The start of each row, in bytes from the first element of the box.
    chunks : numpy.ndarray of int64
        The index of the 16 bytes of global memory for each 16 bytes of swizzled shared memory, counted from the start
        of the box.
    reach_bytes : int
        The distance from the box's first byte to the end of its last byte.
    """

    size_bytes: int
    rows: np.ndarray
    row_bytes: int
    chunks: np.ndarray
    reach_bytes: int
    _last: tuple[int, ...]  # _last contains the last coordinates at which a box is inside the tensor.
    _strides: tuple[int, ...]  # The strides of a box are in bytes.

    def origin(self, coordinates: Sequence[int]) -> int | None:
        """Return the start of a box in bytes from ``global_address``.

        Return None if the box is partly outside the tensor, or does not start at a multiple of 16 bytes.
        """
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
    """Return the chunks of a tiled map that copies elements unchanged, or None for other maps and for illegal maps."""
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
