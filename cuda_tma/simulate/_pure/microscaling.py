"""Conversions to and from the microscaling formats e2m1, e2m3, e3m2 and ue8m0, from sm_100 on (PTX ISA, "cvt").

The formats e2m1, e2m3 and e3m2 have no NaN, so a NaN becomes the largest number. The conversion of a NaN is documented,
but not verified on hardware. The results of ue8m0 are those of the host functions in CUDA's ``cuda_fp8.hpp``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._matrix.formats import F32, FORMATS, Format
from .floating import clamped
from .table import DTYPES, Pure, Spelling, pure

__all__ = ["NARROW", "conversion"]

Array = Any  # The type Array includes NumPy arrays and NumPy scalars.

_SCALE = "ue8m0x2"


def _table(name: str, fraction_bits: int, bias: int, bits: int) -> Format:
    """Return a format without infinity and NaN, which is a table of its magnitudes."""
    codes = np.arange(1 << bits - 1)
    exponent, fraction = codes >> fraction_bits, codes & (1 << fraction_bits) - 1
    significand = fraction + np.where(exponent > 0, 1 << fraction_bits, 0)
    magnitudes = np.ldexp(significand.astype(np.float64), np.maximum(exponent, 1) - bias - fraction_bits)
    values, largest = np.concatenate([magnitudes, -magnitudes]), float(magnitudes[-1])

    def encode(value: Array) -> Array:
        code = np.searchsorted(magnitudes, np.abs(value)) | np.signbit(value) << bits - 1
        return np.where(np.isnan(value), len(codes) - 1, code).astype(np.uint8)

    return Format(name, fraction_bits + 1, 1 - bias, largest, len(codes) - 1, lambda code: values[code], encode)


#: The table maps a type to the bits of an element and the format of the element.
_FORMATS = {
    "e2m1x2": (4, _table("e2m1", 1, 1, 4)),
    "e2m3x2": (8, _table("e2m3", 3, 1, 6)),
    "e3m2x2": (8, _table("e3m2", 2, 3, 6)),
}
NARROW = (*_FORMATS, _SCALE)
DTYPES.update({"e2m1x2": np.dtype(np.uint8), **dict.fromkeys(("e2m3x2", "e3m2x2", _SCALE), np.dtype(np.uint16))})


def conversion(s: Spelling, result: str, source: str) -> Pure:
    """Return a conversion that converts to or from a microscaling format."""
    if _SCALE in (result, source):
        return _to_scales(s, source) if result == _SCALE else _from_scales(s, result)
    if result in _FORMATS:
        return _to_narrow(s, result, source)
    return _from_narrow(s, result, source)


def _to_narrow(s: Spelling, result: str, source: str) -> Pure:
    """Return ``cvt.rn.satfinite{.relu}`` from two f32 values or from a pair of 16-bit values.

    The first f32 value becomes the upper half of the result.
    """
    s.choice("rn")
    if source not in ("f32", "f16x2", "bf16x2") or not s.flag("satfinite"):
        s.unknown()
    relu, (bits, format), dtype = s.flag("relu"), _FORMATS[result], DTYPES[result]

    def packed(*values: Array) -> Array:
        upper, lower = (_nearest(format, value, relu).astype(dtype) for value in values)
        return upper << dtype.type(bits) | lower

    if source == "f32":
        return pure("cvt", result, "f32 f32", lambda a, b: packed(F32.decode(a), F32.decode(b)))
    decode = FORMATS[source.removesuffix("x2")].decode

    def of_pair(a: Array) -> Array:
        word = np.asarray(a).astype(np.uint32)
        return packed(*(decode((word >> shift).astype(np.uint16)) for shift in (np.uint32(16), np.uint32(0))))

    return pure("cvt", result, source, of_pair)


def _nearest(format: Format, value: Array, relu: bool) -> Array:
    rounded = np.clip(format.round(value), -format.largest, format.largest)
    return format.encode(clamped(rounded, False, relu))


def _from_narrow(s: Spelling, result: str, source: str) -> Pure:
    """Return ``cvt.rn{.relu}`` to f16x2 or bf16x2, both of which can represent every value of the narrow formats."""
    s.choice("rn")
    if result not in ("f16x2", "bf16x2"):
        s.unknown()
    relu, (bits, format), encode = s.flag("relu"), _FORMATS[source], FORMATS[result.removesuffix("x2")].encode

    def compute(a: Array) -> Array:
        code = np.asarray(a).astype(np.int64)
        halves = (clamped(format.decode(code >> shift & _code_mask(source)), False, relu) for shift in (bits, 0))
        upper, lower = (encode(half).astype(np.uint32) for half in halves)
        return upper << np.uint32(16) | lower

    return pure("cvt", result, source, compute)


def _code_mask(type_: str) -> int:
    return 0xF if type_ == "e2m1x2" else 0x3F


def _to_scales(s: Spelling, source: str) -> Pure:
    """Return ``cvt.{rz, rp}{.satfinite}``: the exponent of the magnitude, rounded down or up, or 0xff for NaN."""
    up, finite = s.choice("rz", "rp") == "rp", s.flag("satfinite")
    if source == "f32":

        def of_two(a: Array, b: Array) -> Array:
            upper, lower = (_scale(np.asarray(each).view(np.uint32), up, finite) for each in (a, b))
            return upper << np.uint16(8) | lower

        return pure("cvt", _SCALE, "f32 f32", of_two)
    if source != "bf16x2":
        s.unknown()

    def of_pair(a: Array) -> Array:
        word = np.asarray(a).astype(np.uint32)
        upper, lower = (_scale(each, up, finite) for each in (word & np.uint32(0xFFFF0000), word << np.uint32(16)))
        return upper << np.uint16(8) | lower

    return pure("cvt", _SCALE, "bf16x2", of_pair)


def _scale(bits: Array, up: bool, finite: bool) -> Array:
    """Return the exponent of the bits of an f32 as a ue8m0.

    A subnormal number becomes 2**-127. With rounding up, a number of more than half of 2**-126 becomes 2**-126.
    """
    exponent, fraction = bits >> np.uint32(23) & np.uint32(0xFF), bits & np.uint32(0x7FFFFF)
    more = (fraction > 0) & ((exponent > 0) | (fraction > 0x400000)) if up else np.zeros(np.shape(bits), bool)
    found = exponent + more
    is_nan = (exponent == 0xFF) & (fraction > 0)
    too_large = (found >= 0xFF) & ~is_nan
    return np.where(is_nan, 0xFF, np.where(too_large, 0xFE if finite else 0xFF, found)).astype(np.uint16)


def _from_scales(s: Spelling, result: str) -> Pure:
    """Return ``cvt.rn.bf16x2.ue8m0x2``: 2 to the power of the exponent; the least result is a subnormal bf16."""
    s.choice("rn")
    if result != "bf16x2":
        s.unknown()

    def compute(a: Array) -> Array:
        code = np.asarray(a).astype(np.uint32)
        upper, lower = (_bf16(code >> np.uint32(shift) & np.uint32(0xFF)) for shift in (8, 0))
        return upper << np.uint32(16) | lower

    return pure("cvt", "bf16x2", _SCALE, compute)


def _bf16(code: Array) -> Array:
    return np.where(code == 0xFF, 0x7FFF, np.where(code == 0, 0x40, code << np.uint32(7))).astype(np.uint32)
