"""How the tensor cores of compute capability 9.0 add products, to the last bit.

The terms of an instruction, C among them, are cut toward zero to multiples of one unit: 25 bits below the largest
exponent, of 8-bit floating types 13. Their sum is exact, and is rounded once: toward zero to f32, of 8-bit types to its
first 13 bits, to nearest to f16. An exponent is that of the number's type, so that of a subnormal number is the type's
least; of a product, it is the sum of its factors'. Recorded on an H200 and found so in every bit: of wgmma, and of
mma.sync with 32 bytes of K (tests/data/wgmma_sm90.npz). Other shapes of mma.sync are taken to add alike.
"""

from __future__ import annotations

import numpy as np

from ..formats import FORMATS

NARROW = ("e4m3", "e5m2")
_NONE = -10_000  # exponent of zero: two of them fit int16
_ELEMENTS = 1 << 14  # of sums that are worked on at a time, so that they stay in the cache


def multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray | None, types: tuple[str, str], sums: str) -> np.ndarray:
    """A * B + C as wgmma and mma.sync have it, but for mma.sync of 8-bit floating types.

    Parameters
    ----------
    a, b : numpy.ndarray
        float64 [groups, m, k] and [groups, n, k], numbers of `types`.
    c : numpy.ndarray or None
        float64 [groups, m, n], numbers of `sums`; None if there is none.
    types : tuple of str
        ``"bf16"``, ``"e4m3"``, ... of A and B.
    sums : str
        ``"f32"`` or ``"f16"``.

    Returns
    -------
    numpy.ndarray
        float64 [groups, m, n], numbers of `sums`; what is too large for f32 is as it was added.
    """
    narrow = types[0] in NARROW
    total = _added(a, b, c, types, sums, 13 if narrow else 25)
    return FORMATS["f16"].round(total) if sums == "f16" else _toward_zero(total, 13 if narrow else 23)


def multiply_add_as_f16(a: np.ndarray, b: np.ndarray, c: np.ndarray, sums: str) -> np.ndarray:
    """As `multiply_add`, for mma.sync of e4m3 and e5m2: there is no such instruction on compute capability 9.0.

    ptxas (CUDA 13) converts to f16, multiplies the first two of every four elements, adds the product of the others to
    it, and C in the end as an instruction of its own, rounded to nearest.
    """
    first, f16 = np.arange(a.shape[-1]) % 4 < 2, ("f16", "f16")
    product = multiply_add(a[..., first], b[..., first], None, f16, sums)
    product = multiply_add(a[..., ~first], b[..., ~first], product, f16, sums)
    if sums == "f16":
        return FORMATS["f16"].round(product + c)
    return (product.astype(np.float32) + c.astype(np.float32)).astype(np.float64)


def _added(
    a: np.ndarray, b: np.ndarray, c: np.ndarray | None, types: tuple[str, str], sums: str, fraction_bits: int
) -> np.ndarray:
    groups, rows, columns = len(a), a.shape[1], b.shape[1]
    found = np.empty((groups, rows, columns))
    step = max(1, _ELEMENTS // (rows * columns))
    for first in range(0, groups, step):
        part = slice(first, first + step)
        found[part] = _sum_of_terms(a[part], b[part], None if c is None else c[part], types, sums, fraction_bits)
    return found


def _sum_of_terms(
    a: np.ndarray, b: np.ndarray, c: np.ndarray | None, types: tuple[str, str], sums: str, fraction_bits: int
) -> np.ndarray:
    """Exact in float64: a term has less than 27 bits, and there are at most 33."""
    of_a, of_b = (_exponents(values, type_) for values, type_ in zip((a, b), types, strict=True))
    shape = (len(a), a.shape[1], b.shape[1])
    largest = np.full(shape, _NONE, np.int16) if c is None else _exponents(c, sums)
    exponent = np.empty(shape, np.int16)
    for i in range(a.shape[-1]):
        np.add(of_a[:, :, None, i], of_b[:, None, :, i], out=exponent)
        np.maximum(largest, exponent, out=largest)
    last = np.where(largest > _NONE // 2, largest, 0).astype(np.int32) - fraction_bits
    per_unit = np.ldexp(1.0, -last)
    total = np.zeros(shape) if c is None else np.trunc(c * per_unit)
    term = np.empty(shape)
    for i in range(a.shape[-1]):
        np.multiply(a[:, :, None, i], b[:, None, :, i], out=term)
        np.multiply(term, per_unit, out=term)
        total += np.trunc(term, out=term)
    return np.ldexp(total, last) + 0.0  # no sum is -0


def _exponents(values: np.ndarray, type_: str) -> np.ndarray:
    _, exponent = np.frexp(values)
    return np.where(values == 0, _NONE, np.maximum(exponent - 1, FORMATS[type_].least_exponent)).astype(np.int16)


def _toward_zero(values: np.ndarray, fraction_bits: int) -> np.ndarray:
    """float64 as f32 with so many bits behind the first, but not yet infinite where it is too large."""
    _, exponent = np.frexp(values)
    unit = np.ldexp(1.0, np.maximum(exponent - 1 - fraction_bits, FORMATS["f32"].least_exponent - 23))
    return np.trunc(values / unit) * unit
