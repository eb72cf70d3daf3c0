"""Products of scaled factors for ``mma`` and ``tcgen05.mma`` (PTX ISA, "Block Scaling").

A scaled factor is an element times its scale. The order and the rounding in which hardware adds the products are not
documented. The simulator uses the order and the rounding of the kinds without scales, which is not verified on
hardware.
"""

from __future__ import annotations

import numpy as np

from .adder import multiply_add
from .formats import FORMATS

__all__ = ["KINDS", "count_of_scales", "multiply_add_scaled", "scale_bytes", "scale_numbers"]

# The table maps a kind of product and a qualifier for the size of scales to the number of scales along K. An
# instruction without a qualifier has the default of its kind, except mxf4nvf4, which has none.
_SIZES = {
    "mxf8f6f4": {"": 1, "scale_vec::1X": 1, "block32": 1},
    "mxf4": {"": 2, "scale_vec::2X": 2, "block32": 2},
    "mxf4nvf4": {"scale_vec::2X": 2, "block32": 2, "scale_vec::4X": 4, "block16": 4},
}
KINDS = frozenset(_SIZES)
_QUALIFIERS = frozenset(size for sizes in _SIZES.values() for size in sizes if size)
# The table maps the number of scales along K to the valid first bytes of the scales in 4 bytes.
_BYTES = {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)}

_WIDE = ("f32", "f32")  # For the types f32 and f32, the adder keeps 25 bits of a product.
_LEAST, _LARGEST = 2.0**-120, 2.0**120  # The adder accepts scale factors from 2**-120 to 2**120.
_NAN = 0xFF


def count_of_scales(kind: str, words: tuple[str, ...]) -> int | None:
    """Return the number of scales along K for the qualifiers of an instruction; None if the kind does not allow them.

    >>> count_of_scales("mxf4nvf4", ("tcgen05", "mma", "block_scale", "block16"))
    4
    """
    size = next((word for word in words if word in _QUALIFIERS), "")
    return _SIZES[kind].get(size)


def scale_bytes(count: int) -> tuple[int, ...]:
    """Return the valid first bytes of a number of scales in 4 bytes.

    >>> scale_bytes(2)
    (0, 2)
    """
    return _BYTES[count]


def scale_numbers(codes: np.ndarray, type_: str) -> np.ndarray:
    """Return the numbers of scales, float64, from their bytes.

    >>> scale_numbers(np.array([127, 130], np.uint8), "ue8m0").tolist(), scale_numbers(np.uint8(0x38), "ue4m3").tolist()
    ([1.0, 8.0], 1.0)
    """
    if type_ == "ue4m3":
        return FORMATS["e4m3"].decode(codes & 0x7F)
    return np.where(codes == _NAN, np.nan, np.ldexp(1.0, codes.astype(np.int64) - 127))


def multiply_add_scaled(
    a: np.ndarray, b: np.ndarray, c: np.ndarray | None, a_scales: np.ndarray, b_scales: np.ndarray
) -> np.ndarray:
    """Return A * B + C with sums of f32, as float64 [groups, m, n].

    Parameters
    ----------
    a, b : numpy.ndarray
        float64 [groups, m, k] and [groups, n, k], or [1, n, k] for one B of all groups.
    c : numpy.ndarray or None
        float64 [groups, m, n]; None is zero.
    a_scales, b_scales : numpy.ndarray
        float64, as `a` and `b`, with one number for each block of K.
    """
    left, right = _scaled(a, a_scales), _scaled(b, b_scales)
    add = multiply_add if _fits(left) and _fits(right) else _multiply_add_exactly
    return add(left, right, c, _WIDE, "f32")


def _scaled(factor: np.ndarray, scales: np.ndarray) -> np.ndarray:
    return factor * np.repeat(scales, factor.shape[-1] // scales.shape[-1], axis=-1)


def _fits(factor: np.ndarray) -> bool:
    """Return whether the adder computes with these factors without overflow, except infinities and NaNs."""
    sizes = np.abs(factor[np.isfinite(factor) & (factor != 0)])
    return not sizes.size or bool(sizes.min() >= _LEAST and sizes.max() <= _LARGEST)


def _multiply_add_exactly(
    a: np.ndarray, b: np.ndarray, c: np.ndarray | None, types: tuple[str, str], sums: str
) -> np.ndarray:
    """Return A * B + C with sums of float64, which can represent the products of all scales."""
    found = a @ b.swapaxes(-1, -2)
    return FORMATS[sums].round(found if c is None else found + c, "rz").astype(np.float64)
