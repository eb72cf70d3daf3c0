"""The product of scaled factors. PTX ISA, "tcgen05.mma", "Block Scaling".

A scaled factor is an element times its scale. The order and the rounding in which hardware adds the products are not
documented. Here they are those of the kinds without scales (`product.py`), which is not verified on hardware.
"""

from __future__ import annotations

import numpy as np

from .._matrix.adder import multiply_add
from .._matrix.formats import FORMATS

__all__ = ["multiply_scaled"]

_WIDE = ("f32", "f32")  # The adder keeps 25 bits of a product of these types.
_LEAST, _LARGEST = 2.0**-120, 2.0**120  # The adder can contain factors in this range.


def multiply_scaled(
    a: np.ndarray, b: np.ndarray, d: np.ndarray | None, a_scales: np.ndarray, b_scales: np.ndarray
) -> np.ndarray:
    """Return the product of scaled matrices, float64 [rows, columns], plus D.

    Parameters
    ----------
    a, b : numpy.ndarray
        float64 [rows, K] and [columns, K].
    d : numpy.ndarray or None
        float64 [rows, columns]; None is zero.
    a_scales, b_scales : numpy.ndarray
        float64 [quarters, rows of a quarter, scales along K] and [quarters, columns, scales along K].
    """
    quarters = len(a_scales)
    left = _scaled(a.reshape(quarters, -1, a.shape[-1]), a_scales)
    right = _scaled(b[None], b_scales)
    before = None if d is None else d.reshape(quarters, -1, len(b))
    add = multiply_add if _fits(left) and _fits(right) else _multiply_add_exactly
    return add(left, right, before, _WIDE, "f32").reshape(len(a), -1)


def _scaled(factor: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return factors, [quarters, rows, K], times their scales."""
    return factor * np.repeat(scales, factor.shape[-1] // scales.shape[-1], axis=-1)


def _fits(factor: np.ndarray) -> bool:
    """Return whether the adder computes with these factors without overflow, except infinities and NaNs."""
    sizes = np.abs(factor[np.isfinite(factor) & (factor != 0)])
    return not sizes.size or bool(sizes.min() >= _LEAST and sizes.max() <= _LARGEST)


def _multiply_add_exactly(
    a: np.ndarray, b: np.ndarray, c: np.ndarray | None, types: tuple[str, str], sums: str
) -> np.ndarray:
    """Return A * B + C with sums of float64, which contains the products of the largest and the smallest scales."""
    found = a @ b.swapaxes(-1, -2)
    return FORMATS[sums].round(found if c is None else found + c, "rz").astype(np.float64)
