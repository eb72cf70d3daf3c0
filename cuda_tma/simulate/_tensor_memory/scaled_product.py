"""The product of scaled factors, in which each quarter of the lanes uses its own scales (PTX ISA, "Block Scaling")."""

from __future__ import annotations

import numpy as np

from .._matrix.scaled import multiply_add_scaled

__all__ = ["multiply_scaled"]


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
    before = None if d is None else d.reshape(quarters, -1, len(b))
    found = multiply_add_scaled(a.reshape(quarters, -1, a.shape[-1]), b[None], before, a_scales, b_scales)
    return found.reshape(len(a), -1)
