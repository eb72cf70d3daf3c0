"""The sums of the tensor cores of compute capability 9.0, to the last bit.

The terms of an instruction, C among them, are cut toward zero to multiples of one unit: 25 bits below the largest
exponent, of 8-bit floating types 13. Their sum is exact, and is rounded once: toward zero to f32, of 8-bit types to its
first 13 bits, to nearest to f16. An exponent is that of the number's type, so that of a subnormal number is the type's
least; of a product, it is the sum of its factors'. Recorded on an H200 and found so in every bit: of wgmma, and of
mma.sync with 32 bytes of K (tests/data/wgmma_sm90.npz). Other shapes of mma.sync are taken to add alike.
"""

from __future__ import annotations

import numpy as np

from ._adder import add_to_fragments, add_to_rows
from .formats import FORMATS

NARROW = ("e4m3", "e5m2")


def multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray | None, types: tuple[str, str], sums: str) -> np.ndarray:
    """A * B + C as wgmma and mma.sync have it, but for mma.sync of 8-bit floating types.

    Parameters
    ----------
    a, b : numpy.ndarray
        float64 [groups, m, k] and [groups, n, k], numbers of `types`.
    c : numpy.ndarray or None
        float64 [groups, m, n], numbers of `sums`; None without one.
    types : tuple of str
        ``"bf16"``, ``"e4m3"``, ... of A and B.
    sums : str
        ``"f32"`` or ``"f16"``.

    Returns
    -------
    numpy.ndarray
        float64 [groups, m, n], numbers of `sums`; sums that are too large for f32 stay so.
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
    """`multiply_add` of f32 sums, in place, in the registers of warpgroups.

    Parameters
    ----------
    registers : numpy.ndarray
        float32 [register, lane].
    rows : numpy.ndarray of intp
        Which registers hold the sums, as `fragments.sums_to_rows` has them.
    lanes : numpy.ndarray of intp, [groups]
        The first of each warpgroup.
    b_of : numpy.ndarray of intp, [groups]
        Which of `b` each warpgroup takes.
    add : bool
        Whether the sums begin with the values in the registers.
    """
    left, right = np.ascontiguousarray(a), np.ascontiguousarray(b)
    add_to_fragments(left, right, b_of, registers, rows, lanes, add, *_precision(types, "f32"))


def multiply_add_as_f16(a: np.ndarray, b: np.ndarray, c: np.ndarray, sums: str) -> np.ndarray:
    """Multiply as `multiply_add`, for mma.sync of e4m3 and e5m2, which compute capability 9.0 does not have.

    ptxas (CUDA 13) converts to f16, multiplies the first two of every four elements, adds the product of the others to
    it, and C in the end as an instruction of its own, rounded to nearest.
    """
    first, f16 = np.arange(a.shape[-1]) % 4 < 2, ("f16", "f16")
    product = multiply_add(a[..., first], b[..., first], None, f16, sums)
    product = multiply_add(a[..., ~first], b[..., ~first], product, f16, sums)
    if sums == "f16":
        return FORMATS["f16"].round(product + c)
    return (product.astype(np.float32) + c.astype(np.float32)).astype(np.float64)


def _precision(types: tuple[str, str], sums: str) -> tuple[tuple[int, ...], int, int]:
    """The least exponents of three types; bits of a term below the largest exponent; bits of a sum after its first."""
    narrow = types[0] in NARROW
    least = tuple(FORMATS[each].least_exponent for each in (*types, sums))
    return least, 13 if narrow else 25, 52 if sums == "f16" else 13 if narrow else 23
