"""Exact sums and products, as float64 values rounded to odd for narrow formats, or as f64 with the rounding error."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf, isfinite, isnan
from typing import Any

import numpy as np

Array = Any  # The type Array includes NumPy arrays and NumPy scalars.


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the float64 sum and its rounding error, which is exact if nothing overflows (Knuth)."""
    total = a + b
    b_part = total - a
    return total, (a - (total - b_part)) + (b - b_part)


def odd_sum(a: Array, b: Array) -> Array:
    """Return a + b as a float64 that is rounded to odd."""
    total, lost = two_sum(a, b)
    total = np.asarray(total)
    inexact = np.abs(lost) > 0  # If the sum is infinite, the error is NaN, and the comparison treats the sum as exact.
    if not inexact.any():
        return total
    bits = total.view(np.int64)
    step = np.where((lost > 0) == (total > 0), 1, -1)
    return np.where(inexact & (bits & 1 == 0), bits + step, bits).view(np.float64)


def sum_of_zeros(total: Array, a: Array, b: Array, mode: str) -> Array:
    """Return a + b with the correct sign of a zero sum (IEEE 754, "The sign bit").

    A zero sum is +0, except if both a and b are -0. With rounding down, a zero sum is -0, except if both a and b are
    +0.
    """
    if mode != "rm":
        return total
    return np.where((total == 0) & (np.signbit(a) | np.signbit(b)), -0.0, total)


def directed(nearest: Array, lost: Array, mode: str) -> Array:
    """Return a result in another rounding mode; `lost` has the sign of the exact result minus the nearest result."""
    if mode == "rn":
        return nearest
    towards = {"rz": np.zeros_like(nearest), "rm": np.full_like(nearest, -np.inf), "rp": np.full_like(nearest, np.inf)}[
        mode
    ]
    wrong = {"rz": lost * np.copysign(1, nearest) < 0, "rm": lost < 0, "rp": lost > 0}[mode]
    return np.where(wrong, np.nextafter(nearest, towards), nearest)


def overflow(nearest: Array, lost: Array, *sources: Array) -> Array:
    """Return the rounding error; if finite sources have an infinite result, the error points toward zero."""
    finite = np.isfinite(sources[0])
    for source in sources[1:]:
        finite = finite & np.isfinite(source)
    return np.where(np.isinf(nearest), np.where(finite, -np.copysign(1.0, nearest), 0.0), lost)


# ---- f64 ----


def by_fractions(exact: Callable[..., Fraction], nearest: Array, *sources: Array) -> tuple[Array, Array]:
    """Return the nearest float64 of `exact` for finite sources, and the sign of the rounding error.

    `nearest` is the result of float64 arithmetic. This result is already correct if a source is infinite or NaN, or if
    the exact result is zero.
    """
    arrays = np.broadcast_arrays(nearest, *sources)
    results = np.array(arrays[0], np.float64)
    lost = np.zeros(results.shape)
    for place, (given, *numbers) in enumerate(zip(*(each.ravel().tolist() for each in arrays), strict=True)):
        if isnan(given) or not all(map(isfinite, numbers)):
            continue
        try:
            value = exact(*map(Fraction, numbers))
        except ZeroDivisionError:
            continue
        if value:
            results.flat[place], lost.flat[place] = _nearest(value)
    return results, lost


def _nearest(value: Fraction) -> tuple[float, int]:
    try:
        found = value.numerator / value.denominator
    except OverflowError:
        return (inf, -1) if value > 0 else (-inf, 1)
    if found == 0.0 and value < 0:
        found = -0.0
    rest = value - Fraction(found)
    return found, (rest > 0) - (rest < 0)


def fused(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c of float64 values, rounded once to nearest."""
    a, b, c = np.broadcast_arrays(a, b, c)
    with_plain = a * b + c
    result, safe = _fused_by_parts(a, b, c)
    safe &= np.isfinite(with_plain)
    if safe.all():
        return result
    slow = ~safe
    found = np.where(safe, result, with_plain)
    found[slow], _ = by_fractions(lambda x, y, z: x * y + z, with_plain[slow], a[slow], b[slow], c[slow])
    return found


def _fused_by_parts(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """Return a * b + c, and whether all intermediate values are in the range of float64 (Boldo and Melquiond)."""
    product, product_rest = _two_product(a, b)
    small, small_rest = two_sum(c, product_rest)
    large, large_rest = two_sum(product, small)
    result = large + odd_sum(large_rest, small_rest)
    sizes = np.abs(np.stack(np.broadcast_arrays(a, b, product, c, result)))
    safe = (sizes > 2.0**-450) & (sizes < 2.0**450)
    safe[3] |= c == 0
    return result, safe.all(0)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the float64 product and its rounding error (Dekker)."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _split(value: Array) -> tuple[Array, Array]:
    scaled = value * 134217729.0
    high = scaled - (scaled - value)
    return high, value - high
