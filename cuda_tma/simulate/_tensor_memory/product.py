"""The product of ``tcgen05.mma`` as a function of arrays (PTX ISA, "tcgen05.mma").

NVIDIA does not document the order and the rounding in which hardware adds the products of an instruction. The simulator
uses the order and the rounding of ``wgmma``, which is not verified on hardware.
"""

from __future__ import annotations

import numpy as np

from .._matrix.adder import multiply_add
from .._matrix.elements import Sums, decoded
from .._matrix.formats import FORMATS
from .._matrix.padded import PACKED, PADDED, decoded_bytes, decoded_packed, decoded_padded
from .form import Form

__all__ = ["cells_of", "matrix_in_lanes", "matrix_of", "multiply", "sums_in"]

_ROWS = 64  # One call of the adder computes 64 rows.
_NARROW = ("e4m3", "e5m2", *PADDED)


def matrix_of(pieces: np.ndarray, type_: str, mn_major: bool, negative: bool) -> np.ndarray:
    """Return a matrix, float64 [rows, K], from its pieces, uint8 [..., 16], in the order of `descriptor.pieces`."""
    data = pieces.reshape(len(pieces), -1)
    found = decoded_padded(data, type_) if type_ in PADDED else _decoded(data, type_)
    found = found.T if mn_major else found
    return -found if negative else found


def matrix_in_lanes(cells: np.ndarray, type_: str, negative: bool) -> np.ndarray:
    """Return A, float64 [rows, K], from its cells, uint32 [8 columns, rows].

    Each element of 6 bits has its own byte, and so does each element of 4 bits in a kind with several types.
    """
    data = np.ascontiguousarray(cells.T).view(np.uint8)
    found = decoded_bytes(data, type_) if type_ in PADDED else _decoded(data, type_)
    return -found if negative else found


def _decoded(data: np.ndarray, type_: str) -> np.ndarray:
    return decoded_packed(data) if type_ == PACKED else decoded(data, type_)


def sums_in(cells: np.ndarray, form: Form) -> np.ndarray:
    """Return the sums in cells, uint32 [columns, rows], as float64 [rows, columns]; an f16 is in the lower half."""
    if form.sums == "f16":
        return FORMATS["f16"].decode(cells.astype(np.uint16)).T
    return cells.view(np.int32 if form.sums == "s32" else np.float32).T.astype(np.float64)


def cells_of(sums: np.ndarray, form: Form) -> np.ndarray:
    """Return the cells that contain sums; this is the inverse of `sums_in`."""
    if form.sums == "f16":
        return FORMATS["f16"].encode(FORMATS["f16"].round(sums)).astype(np.uint32).T
    return Sums(form.sums, form.saturate).pack(sums).view(np.uint32).T


def multiply(form: Form, a: np.ndarray, b: np.ndarray, d: np.ndarray | None) -> np.ndarray:
    """Return A * B + D, float64 [rows, columns], for A, [rows, K], and B, [columns, K]; D is zero if it is None."""
    if form.sums == "s32":  # For 8-bit elements, the adder is exact, and takes less time than NumPy's matrix product.
        return _added(a, b, None, ("f16", "f16"), "f32") + (0 if d is None else d)
    return _added(a, b, d, (_adder_type(form.a_type), _adder_type(form.b_type)), form.sums)


def _added(a: np.ndarray, b: np.ndarray, d: np.ndarray | None, types: tuple[str, str], sums: str) -> np.ndarray:
    """Return the product of `multiply`, computed in calls of the adder with `_ROWS` rows each."""
    groups = len(a) // _ROWS or 1
    left, right = a.reshape(groups, -1, a.shape[1]), np.broadcast_to(b, (groups, *b.shape))
    before = None if d is None else d.reshape(groups, -1, d.shape[1])
    return multiply_add(left, right, before, types, sums).reshape(len(a), -1)


def _adder_type(type_: str) -> str:
    """Return a type of the adder that represents all numbers of `type_`, with 25 bits for a term.

    The adder uses fewer bits for fp8, as ``wgmma`` does.
    """
    return "f16" if type_ in _NARROW else type_
