"""Floating-point formats, which give a meaning to bits and round exact values.

Operations on narrow formats compute in float64, which contains every value of these formats. If float64 cannot contain
an exact sum, the sum is rounded to odd: the sum is truncated, and its last bit is set if bits were lost. A second
rounding to a precision that is at least two bits smaller then gives the same result as one rounding of the exact sum
(Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = Any  # The type Array includes NumPy arrays and NumPy scalars.

ROUNDINGS = ("rn", "rz", "rm", "rp")
_TO_INTEGER: dict[str, Callable[[Array], Array]] = {
    "rn": np.rint,
    "rz": np.trunc,
    "rm": np.floor,
    "rp": np.ceil,
    "rna": lambda value: np.trunc(value + np.copysign(0.5, value)),
}
# The first flag of a rounding mode is true if positive overflow gives infinity, and the second flag is true if negative
# overflow gives negative infinity.
_OVERFLOWS = {"rn": (True, True), "rna": (True, True), "rz": (False, False), "rm": (False, True), "rp": (True, False)}


@dataclass(frozen=True)
class Format:
    """A binary floating-point format narrower than f64.

    Attributes
    ----------
    precision : int
        The number of bits of the significand, including the hidden bit.
    least_exponent : int
        The exponent of the smallest normal number, which is a power of 2.
    largest : float
        The largest finite number.
    nan : int
        The bits of the NaN that instructions return (PTX ISA): 0x7fffffff for f32, 0x7fff for f16 and bf16, and the NaN
        of "cvt" for fp8.
    decode, encode : callable
        Functions that convert the NumPy type of the format to float64, and values of the format and NaN back.
    nearest : callable or None
        A function that rounds to nearest faster than `round`.
    """

    name: str
    precision: int
    least_exponent: int
    largest: float
    nan: int
    decode: Callable[[Array], Array]
    encode: Callable[[Array], Array]
    nearest: Callable[[Array], Array] | None = None

    def round(self, value: Array, mode: str = "rn") -> Array:
        """Return float64 values rounded to the format.

        A value that is too large becomes infinite or the largest finite number.
        """
        if mode == "rn" and self.nearest is not None:
            return self.nearest(value)
        _, exponent = np.frexp(value)
        unit = np.ldexp(1.0, np.maximum(exponent, self.least_exponent + 1) - self.precision)
        found = _TO_INTEGER[mode](value / unit) * unit
        too_large = np.abs(found) > self.largest
        if too_large.any():
            positive, negative = (np.inf if becomes else self.largest for becomes in _OVERFLOWS[mode])
            beyond = np.where(found > 0, positive, -negative)
            found = np.where(too_large & ~np.isinf(value), beyond, found)
        return found

    def flush(self, value: Array) -> Array:
        """Return values for the modifier .ftz, which replaces subnormal values by zeros of the same sign."""
        size = np.abs(value)
        subnormal = (size < 2.0**self.least_exponent) & (size > 0)
        return np.where(subnormal, np.copysign(np.zeros_like(value), value), value) if subnormal.any() else value

    def flush_result(self, value: Array, mode: str = "rn") -> Array:
        """Flush values before they are rounded, except values that are normal after a rounding to this precision.

        The rounding before the flush has an unlimited range of exponents. For f32, 2**-126 * (1 - 2**-24) therefore
        remains subnormal and is flushed, but 2**-126 * (1 - 2**-27) becomes 2**-126 (both observed for mul and mad:
        driver 580, sm_90).
        """
        subnormal = np.abs(value) < 2.0**self.least_exponent
        if not subnormal.any():
            return value
        # A subnormal value is flushed to zero, unless rounding makes the value normal.
        twice = self.round(np.where(subnormal, 2 * value, 0.0), mode)
        flushed = subnormal & (np.abs(twice) < 2.0 ** (self.least_exponent + 1))
        return np.where(flushed, np.copysign(np.zeros_like(value), value), value)


def _encode_f32(value: Array) -> Array:
    return canonical_f32(np.asarray(value).astype(np.float32, copy=False))


def canonical_f32(value: Array) -> Array:
    """Return float32 values with every NaN replaced by the NaN of the GPU."""
    nan = value != value
    return np.where(nan, NAN_F32, value) if nan.any() else value


def _encode_f16(value: Array) -> Array:
    bits = np.asarray(value).astype(np.float16, copy=False).view(np.uint16)
    return np.where(np.isnan(value), np.uint16(0x7FFF), bits)


def _encode_bf16(value: Array) -> Array:
    bits = (np.asarray(value).astype(np.float32, copy=False).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(value), np.uint16(0x7FFF), bits)


def _encode_tf32(value: Array) -> Array:
    return np.where(np.isnan(value), np.uint32(0x7FFFFFFF), np.asarray(value).astype(np.float32).view(np.uint32))


def _nearest_bf16(value: Array) -> Array:
    """Round values to bf16 through float32, except values for which the rounding to float32 would create a tie."""
    single = np.asarray(value).astype(np.float32)
    bits = single.view(np.uint32)
    tie = (bits & np.uint32(0xFFFF) == 0x8000) & (single != value)
    if tie.any():
        return replace(BF16, nearest=None).round(value)
    rounded = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1)) & np.uint32(0xFFFF0000)
    return np.where(single != single, bits, rounded).view(np.float32)


def _decode_bf16(bits: Array) -> Array:
    return (np.asarray(bits).astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


def _fp8(name: str, fraction_bits: int, bias: int, largest: float, nan: int) -> Format:
    """Return a format of 8 bits, which is a table of its 128 magnitudes."""
    codes = np.arange(128)
    exponent, fraction = codes >> fraction_bits, codes & (1 << fraction_bits) - 1
    significand = fraction + np.where(exponent > 0, 1 << fraction_bits, 0)
    magnitudes = np.ldexp(significand.astype(np.float64), np.maximum(exponent, 1) - bias - fraction_bits)
    finite = int(np.searchsorted(magnitudes, largest)) + 1
    if name == "e5m2":
        magnitudes[finite] = np.inf
        magnitudes[finite + 1 :] = np.nan
    else:
        magnitudes[finite:] = np.nan
    values = np.concatenate([magnitudes, -magnitudes])

    def encode(value: Array) -> Array:
        code = np.searchsorted(magnitudes[: finite + 1], np.abs(value)) | np.signbit(value) * 0x80
        return np.where(np.isnan(value), nan, code).astype(np.uint8)

    return Format(name, fraction_bits + 1, 1 - bias, largest, nan, lambda bits: values[bits], encode)


NAN_F32 = np.uint32(0x7FFFFFFF).view(np.float32)
F32 = Format(
    "f32",
    24,
    -126,
    float(np.finfo(np.float32).max),
    0x7FFFFFFF,
    lambda value: np.asarray(value).astype(np.float64),
    _encode_f32,
    lambda value: np.asarray(value).astype(np.float32),
)
F16 = Format(
    "f16",
    11,
    -14,
    65504.0,
    0x7FFF,
    lambda bits: np.asarray(bits).view(np.float16).astype(np.float64),
    _encode_f16,
    lambda value: np.asarray(value).astype(np.float16),
)
BF16 = Format("bf16", 8, -126, float.fromhex("0x1.fep127"), 0x7FFF, _decode_bf16, _encode_bf16, _nearest_bf16)
TF32 = Format(
    "tf32",
    11,
    -126,
    float.fromhex("0x1.ffcp127"),
    0x7FFFFFFF,
    lambda bits: (np.asarray(bits) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64),
    _encode_tf32,
)
E4M3 = _fp8("e4m3", 3, 7, 448.0, 0x7F)
E5M2 = _fp8("e5m2", 2, 15, 57344.0, 0x7F)
FORMATS = {each.name: each for each in (F32, F16, BF16, TF32, E4M3, E5M2)}
