"""A model of the sums of tensor cores of compute capability 9.0, which is exact to the last bit.

The terms of one instruction, including C, are aligned to the largest exponent. The exponent of a product is the sum of
its factors' exponents. The terms are truncated toward zero at 25 bits below the largest exponent (13 bits for 8-bit
types). The sum of the truncated terms is exact. The sum is rounded toward zero to f32 (to its first 13 bits for 8-bit
types), and to nearest to f16. Integers are added exactly. This holds for wgmma, and for mma.sync except with 8-bit
floating-point types. With these types, mma.sync converts the elements to f16, multiplies in two halves, and then adds C
as any other number.

The literature describes the model of wgmma (Xie et al., "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and
Matrix Cores", arXiv:2511.10909; Khattak and Mikaitis, "Accurate Models of NVIDIA Tensor Cores", arXiv:2512.07004). All
106,496 results in tests/data/wgmma_sm90.npz equal the model's results (one H200; ptxas of CUDA 13 splits mma.sync into
the two halves). No result changed with A in registers, with N, or with two instructions in one group.

This model computes with integers, and each of its parameters can vary to fit a recording. The simulator's model,
``cuda_tma/simulate/_matrix/adder.py``, computes with float64. Tests compare both models with the recording.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from wgmma_cases import FORMATS, Form, Format


@dataclasses.dataclass(frozen=True)
class Adder:
    """The rules by which tensor cores add the terms of one instruction.

    Parameters
    ----------
    fraction_bits
        The number of bits of each term that are kept below the largest exponent.
    group
        The number of elements of k that are added at once. Their rounded sum is the C of the next group.
    result_bits
        The number of mantissa bits of the rounded sum.
    nearest
        Whether the sum is rounded to nearest, with ties to even, or toward zero.
    floor
        Whether terms are cut toward minus infinity, as numbers in two's complement, or toward zero.
    """

    fraction_bits: int
    group: int
    result_bits: int
    nearest: bool = False
    floor: bool = False


def adder_of(form: Form) -> Adder:
    """Return the adder of wgmma, which mma.sync of 16 bits and tf32 also uses."""
    eight_bits = FORMATS[form.a].itemsize == 1
    fraction_bits = 13 if eight_bits else 25
    if form.sums == "f16":
        return Adder(fraction_bits, form.k, 10, nearest=True)
    return Adder(fraction_bits, form.k, 13 if eight_bits else 23)


@dataclasses.dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers significand * 2**last, with a sign, infinite numbers, and NaNs.

    `exponent` is the exponent of the bit before the point.
    """

    negative: np.ndarray
    significand: np.ndarray
    last: np.ndarray
    exponent: np.ndarray
    infinite: np.ndarray
    nan: np.ndarray


def numbers(format: Format, bits: np.ndarray) -> Numbers:
    """Return the values of the bits of a format."""
    whole = bits.astype(np.int64) >> format.padding_bits
    mantissa = whole & (2**format.mantissa_bits - 1)
    field = whole >> format.mantissa_bits & (2**format.exponent_bits - 1)
    negative = (whole >> (format.mantissa_bits + format.exponent_bits)).astype(bool)
    exponent = np.maximum(field, 1) - format.bias
    significand = np.where(field > 0, mantissa | 2**format.mantissa_bits, mantissa)
    top = field == 2**format.exponent_bits - 1
    if format.infinities:
        infinite, nan = top & (mantissa == 0), top & (mantissa != 0)
    else:
        infinite, nan = np.zeros_like(top), top & (mantissa == 2**format.mantissa_bits - 1)
    return Numbers(negative, significand, exponent - format.mantissa_bits, exponent, infinite, nan)


def rounded(format: Format, whole: np.ndarray, last: np.ndarray, kept_bits: int, nearest: bool) -> np.ndarray:
    """Return the bits of whole * 2**last in a format, with `kept_bits` of the mantissa. |whole| is below 2**53."""
    magnitude = np.abs(whole)
    exponent = np.frexp(magnitude.astype(np.float64))[1] - 1 + last
    least_last = format.least - format.mantissa_bits
    to = np.maximum(exponent - kept_bits, least_last)
    down = np.clip(to - last, 0, 62)
    kept = np.where(to < last, magnitude << np.clip(last - to, 0, 62), magnitude >> down)
    if nearest:
        rest, half = magnitude & ((1 << down) - 1), (1 << down) >> 1
        kept = kept + ((down > 0) & ((rest > half) | ((rest == half) & (kept & 1 == 1))))
    finest = np.maximum(exponent - format.mantissa_bits, least_last)
    kept = kept << np.clip(to - finest, 0, 62)
    bits = np.where(
        kept >= 2**format.mantissa_bits,
        (finest - least_last + 1 << format.mantissa_bits) + kept - 2**format.mantissa_bits,
        kept,
    )
    infinity = (2**format.exponent_bits - 1) << format.mantissa_bits
    sign = 1 << (format.exponent_bits + format.mantissa_bits)
    return (np.minimum(bits, infinity) | np.where(whole < 0, sign, 0)).astype(np.uint32)


def multiply(
    form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray, instruction: str = "wgmma", adder: Adder | None = None
) -> np.ndarray:
    """Return D of one instruction, wgmma or mma, as bits.

    The shapes are A (..., m, k), B (..., n, k) and C (..., m, n).
    """
    if form.sums == "s32":
        return _multiply_integers(form, a, b, c)
    c = c.astype(np.uint16 if form.sums == "f16" else np.uint32)
    with np.errstate(all="ignore"):
        if adder is None and instruction == "mma" and FORMATS[form.a].itemsize == 1:
            return _multiply_as_f16(form, a, b, c)
        return _multiply(form, a, b, c, adder or adder_of(form))


def _multiply(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray, adder: Adder) -> np.ndarray:
    d = c.astype(np.uint32)
    for first in range(0, form.k, adder.group):
        part = slice(first, first + adder.group)
        d = _add(form, a[..., None, part], b[..., None, :, part], d, adder, FORMATS[form.sums])
    return d.astype(c.dtype)


def _multiply_as_f16(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Multiply the first two of every four elements (the lower half of a register), then the other two, and add C."""
    halves = np.argsort(np.arange(form.k) % 4 // 2, kind="stable")
    adder = Adder(25, 16, FORMATS[form.sums].mantissa_bits, nearest=form.sums == "f16")
    product = _multiply(form, a[..., halves], b[..., halves], np.zeros_like(c), adder)
    dtype = np.float16 if form.sums == "f16" else np.float32
    total = product.view(dtype) + c.view(dtype)
    return np.where(np.isnan(total), np.iinfo(c.dtype).max // 2, total.view(c.dtype)).astype(c.dtype)


def _add(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray, adder: Adder, sums: Format) -> np.ndarray:
    x, y, z = numbers(FORMATS[form.a], a), numbers(FORMATS[form.b], b), numbers(sums, c)
    negative = np.concatenate([x.negative ^ y.negative, z.negative[..., None]], -1)
    significand = np.concatenate([x.significand * y.significand, z.significand[..., None]], -1)
    last = np.concatenate([x.last + y.last, z.last[..., None]], -1)
    exponent = np.concatenate([x.exponent + y.exponent, z.exponent[..., None]], -1)

    largest = np.where(significand > 0, exponent, -(10**6)).max(-1)
    unit = np.where(largest > -(10**6), largest, 0) - adder.fraction_bits
    shift = last - unit[..., None]
    cut = np.where(adder.floor & negative, -significand, significand)
    terms = np.where(shift >= 0, cut << np.clip(shift, 0, 62), cut >> np.clip(-shift, 0, 62))
    whole = np.where(negative & (not adder.floor), -terms, terms).sum(-1)
    bits = rounded(sums, whole, unit, adder.result_bits, adder.nearest)

    infinite = np.concatenate([(x.infinite | y.infinite) & np.ones_like(negative[..., 1:]), z.infinite[..., None]], -1)
    zero_times_infinity = (x.infinite & (y.significand == 0)) | (y.infinite & (x.significand == 0))
    nan = (x.nan | y.nan | zero_times_infinity).any(-1) | z.nan
    plus, minus = (infinite & ~negative).any(-1), (infinite & negative).any(-1)
    top = (2**sums.exponent_bits - 1) << sums.mantissa_bits
    sign = 1 << (sums.exponent_bits + sums.mantissa_bits)
    bits = np.where(plus, top, np.where(minus, sign | top, bits))
    # Every NaN in the result has all bits set except the sign.
    return np.where(nan | (plus & minus), sign - 1, bits).astype(np.uint32)


def _multiply_integers(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    x, y = (
        (array.astype(np.uint8).view(np.int8) if element == "s8" else array.astype(np.uint8)).astype(np.int64)
        for array, element in ((a, form.a), (b, form.b))
    )
    whole = c.view(np.int32).astype(np.int64) + np.einsum("...mk,...nk->...mn", x, y)
    if form.satfinite:
        whole = np.clip(whole, -(2**31), 2**31 - 1)
    return (whole % 2**32).astype(np.uint32)
