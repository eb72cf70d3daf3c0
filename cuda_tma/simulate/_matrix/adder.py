"""The sums of the tensor cores of compute capability 9.0, which are equal to those of hardware in every bit.

Tensor cores truncate the terms of an instruction, including C, to multiples of a unit. The unit of a sum is 25 bits
below the largest exponent of its terms. For 8-bit floating-point types, the unit is 13 bits below the largest exponent.
The sum of the truncated terms is exact, and is rounded once. Sums of type f32 are rounded toward zero (for 8-bit types,
to the first 13 bits). Sums of type f16 are rounded to nearest. The exponent of a subnormal number is the least exponent
of its type. The exponent of a product is the sum of the exponents of its factors.

Recorded results of an H200 are equal in every bit, for wgmma and for mma.sync with 32 bytes of K
(tests/data/wgmma_sm90.npz). The simulator assumes the same sums for other shapes of mma.sync.
"""

from __future__ import annotations

import numpy as np

from ._adder import add_to_fragments, add_to_rows
from .formats import FORMATS

NARROW = ("e4m3", "e5m2")


def multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray | None, types: tuple[str, str], sums: str) -> np.ndarray:
    """Return A * B + C as wgmma and mma.sync compute it, except mma.sync of 8-bit floating types.

    Parameters
    ----------
    a, b : numpy.ndarray
        float64 [groups, m, k] and [groups, n, k], with values of `types`.
    c : numpy.ndarray or None
        float64 [groups, m, n], with values of type `sums`; None for a product without C.
    types : tuple of str
        The types of A and B, such as ``"bf16"`` or ``"e4m3"``.
    sums : str
        The type of the sums: ``"f32"`` or ``"f16"``.

    Returns
    -------
    numpy.ndarray
        float64 [groups, m, n], with values of type `sums`. A sum that is too large for f32 does not become infinite.
    """
    found = np.zeros((len(a), a.shape[1], b.shape[1])) if c is None else c.astype(np.float64, order="C")
    add_to_rows(np.ascontiguousarray(a), np.ascontiguousarray(b), found, *_precision(types, sums))
    return FORMATS["f16"].round(found) if sums == "f16" else found


def multiply_add_to(
    registers: np.ndarray,
    rows: np.ndarray,
    lanes: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    b_of: np.ndarray,
    types: tuple[str, str],
    add: bool,
) -> None:
    """Compute A * B + C as `multiply_add` does, with f32 sums in the registers of warpgroups.

    Parameters
    ----------
    registers : numpy.ndarray
        All registers, float32 [register, lane].
    rows : numpy.ndarray of intp
        The registers that contain the sums, in the order of `fragments.sums_to_rows`.
    lanes : numpy.ndarray of intp, [groups]
        The first lane of each warpgroup.
    b_of : numpy.ndarray of intp, [groups]
        The index in `b` of the matrix of each warpgroup.
    add : bool
        Whether the sums begin with the values in the registers.
    """
    left, right = np.ascontiguousarray(a), np.ascontiguousarray(b)
    add_to_fragments(left, right, b_of, registers, rows, lanes, add, *_precision(types, "f32"))


def multiply_add_as_f16(a: np.ndarray, b: np.ndarray, c: np.ndarray, sums: str) -> np.ndarray:
    """Compute A * B + C as `multiply_add` does, for mma.sync of e4m3 and e5m2.

    Compute capability 9.0 does not have this instruction, so ptxas (CUDA 13) converts the elements to f16. The code
    of ptxas multiplies the first two of every four elements, and then adds the product of the last two. Finally the
    code adds C in a separate instruction, with rounding to nearest.
    """
    first, f16 = np.arange(a.shape[-1]) % 4 < 2, ("f16", "f16")
    product = multiply_add(a[..., first], b[..., first], None, f16, sums)
    product = multiply_add(a[..., ~first], b[..., ~first], product, f16, sums)
    if sums == "f16":
        return FORMATS["f16"].round(product + c)
    return (product.astype(np.float32) + c.astype(np.float32)).astype(np.float64)


def _precision(types: tuple[str, str], sums: str) -> tuple[tuple[int, ...], int, int]:
    """Return the least exponents for A, B and C, and the numbers of bits of a term and a sum.

    The number of bits of a term counts the bits below the largest exponent.
    """
    narrow = types[0] in NARROW
    least = tuple(FORMATS[each].least_exponent for each in (*types, sums))
    return least, 13 if narrow else 25, 52 if sums == "f16" else 13 if narrow else 23
