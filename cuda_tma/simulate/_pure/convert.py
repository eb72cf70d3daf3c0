"""The instruction cvt, which converts a value of any type to any other type (PTX ISA, "cvt" and "cvt.pack")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._matrix.formats import E4M3, E5M2, F16, F32, FORMATS, ROUNDINGS, Format
from . import exact
from .floating import clamped, propagating
from .microscaling import NARROW, conversion
from .table import DTYPES, Pure, Spelling, entry, pure

Array = Any  # The type Array includes NumPy arrays and NumPy scalars.
Function = Callable[..., Array]

_INTEGERS = tuple(f"{kind}{width}" for kind in "us" for width in (8, 16, 32, 64))
_FLOATS = ("f16", "bf16", "f32", "f64")
_PAIRS = {"f16x2": F16, "bf16x2": FORMATS["bf16"], "e4m3x2": E4M3, "e5m2x2": E5M2}
_INTEGRAL: dict[str, Function] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@entry("cvt")
def conversions(s: Spelling) -> Pure:
    if s.flag("pack"):
        return _packed(s)
    source = s.type(*_INTEGERS, *_FLOATS, *_PAIRS, *NARROW)
    result = s.type(*_INTEGERS, *_FLOATS, "tf32", *_PAIRS, *NARROW)
    if result in NARROW or source in NARROW:
        return conversion(s, result, source)
    if result in _PAIRS or source in _PAIRS:
        return _pairs(s, result, source)
    if result == "tf32":
        return _to_tf32(s, source)
    if source in _INTEGERS:
        return (_integer_to_integer if result in _INTEGERS else _integer_to_float)(s, result, source)
    return (_float_to_integer if result in _INTEGERS else _float_to_float)(s, result, source)


# ---- integers ----


def _integer_to_integer(s: Spelling, result: str, source: str) -> Pure:
    """Return a conversion to the low bits of an integer; with .sat, to the nearest value of the type."""
    dtype = DTYPES[result]
    if not s.flag("sat"):
        return pure("cvt", result, source, lambda a: a.astype(dtype))
    return pure("cvt", result, source, lambda a: _fitted(a, dtype))


def _fitted(value: Array, dtype: np.dtype) -> Array:
    """Return integers clamped to the range of a dtype, which may be wider or narrower, signed or unsigned."""
    own, limits = np.iinfo(value.dtype), np.iinfo(dtype)
    return np.clip(value, max(own.min, limits.min), min(own.max, limits.max)).astype(dtype)


def _integer_to_float(s: Spelling, result: str, source: str) -> Pure:
    mode = s.choice(*ROUNDINGS)
    sat = s.flag("sat")
    if mode == "rn" and result in ("f32", "f64") and not sat:
        return pure("cvt", result, source, lambda a: np.asarray(a).astype(DTYPES[result]))

    def compute(a: Array) -> Array:
        value = np.asarray(a)
        high = (value >> value.dtype.type(8 * value.dtype.itemsize // 2)).astype(np.float64)
        high = high * 2.0 ** (8 * value.dtype.itemsize // 2)
        low = (value & value.dtype.type((1 << 8 * value.dtype.itemsize // 2) - 1)).astype(np.float64)
        if result == "f64":
            nearest, lost = exact.two_sum(high, low)
            return clamped(exact.directed(nearest, lost, mode), sat, False)
        format = FORMATS[result]
        return format.encode(clamped(format.round(exact.odd_sum(high, low), mode), sat, False))

    return pure("cvt", result, source, compute)


def _packed(s: Spelling) -> Pure:
    """Return the instruction cvt.pack, which saturates two integers and appends the low part of a third integer.

    The integer b is in the lowest bits of the result.
    """
    if not s.flag("sat"):
        s.unknown()
    third = s.type("b32") if s.words and s.words[-1] == "b32" else ""
    s.type("s32")
    result = s.type(*(("u8", "s8", "u4", "s4", "u2", "s2") if third else ("u16", "s16")))
    bits = int(result[1:])
    least, largest = (0, (1 << bits) - 1) if result[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)

    def compute(a: Array, b: Array, c: Array = 0) -> Array:
        a, b = ((np.clip(each, least, largest) & (1 << bits) - 1).astype(np.uint32) for each in (a, b))
        both = a << np.uint32(bits) | b
        return np.asarray(c, np.uint32) << np.uint32(2 * bits) | both

    return pure("cvt.pack", "b32", "s32 s32 b32" if third else "s32 s32", compute)


# ---- floating-point to integers ----


def _float_to_integer(s: Spelling, result: str, source: str) -> Pure:
    """Return a conversion to the nearest integer.

    A NaN becomes 0, or 1 << (bits - 1) if one of the two types has 64 bits.
    """
    integral = _INTEGRAL[s.choice(*_INTEGRAL)]
    ftz = source == "f32" and s.flag("ftz")
    s.flag("sat")  # A conversion to integers saturates with and without the modifier .sat.
    dtype = DTYPES[result]
    limits = np.iinfo(dtype)
    of_nan = 1 << 8 * dtype.itemsize - 1 if source == "f64" or dtype.itemsize == 8 else 0
    nan = np.array(of_nan, f"u{dtype.itemsize}").view(dtype)

    def compute(a: Array) -> Array:
        value = _decoded(a, source)
        whole = integral(F32.flush(value) if ftz else value)
        above, below = whole >= 2.0 ** limits.max.bit_length(), whole < float(limits.min)
        inside = np.where(above | below | np.isnan(whole), 0.0, whole)
        found = inside.astype(dtype)
        found = np.where(above, dtype.type(limits.max), np.where(below, dtype.type(limits.min), found))
        return np.where(np.isnan(whole), nan, found)

    return pure("cvt", result, source, compute)


def _decoded(value: Array, type_: str) -> Array:
    return np.asarray(value) if type_ == "f64" else FORMATS[type_].decode(value)


# ---- floating-point to floating-point ----


def _float_to_float(s: Spelling, result: str, source: str) -> Pure:
    """Return a conversion that rounds if bits may be lost; with equal types, it rounds to an integral value."""
    integral = s.choice(*_INTEGRAL, default="") if result == source or (result, source) == ("f64", "f32") else ""
    narrowing = not integral and result != source and (_bits(result) <= _bits(source))
    # Without a rounding modifier, ptxas generates the same machine code as for .rn.
    between_halves = {result, source} == {"f16", "bf16"}
    mode = s.choice(*ROUNDINGS, default="rn" if between_halves else None) if narrowing else "rn"
    ftz = "f32" in (result, source) and s.flag("ftz")
    # The modifier .ftz does not change conversions to f16 and bf16 (observed for .rp: driver 580, sm_90).
    narrower = result in ("f16", "bf16")
    sat = s.flag("sat")
    finite, relu = (result in ("f16", "bf16") and source == "f32" and s.flag(word) for word in ("satfinite", "relu"))
    if not (integral or narrowing or ftz or sat) and result == source:
        return pure("cvt", result, source, lambda a: a)

    def compute(a: Array) -> Array:
        value = _decoded(a, source)
        if ftz and not narrower:
            value = F32.flush_result(value, mode) if source == "f64" else F32.flush(value)
        if integral:
            value = _INTEGRAL[integral](value)
        if result != "f64":
            value = FORMATS[result].round(value, mode)
        if finite:
            value = np.where(np.isinf(value), np.copysign(FORMATS[result].largest, value), value)
        value = clamped(value, sat, relu)
        return value if result == "f64" else FORMATS[result].encode(value)

    return pure("cvt", result, source, propagating(compute) if result == source == "f64" else compute)


def _bits(type_: str) -> int:
    return 8 * DTYPES[type_].itemsize


_NAN_OF_RNA = np.uint32(0x7FC00000)  # Conversions with .rna return the NaN 0x7FC00000 (observed: driver 580, sm_90).


def _to_tf32(s: Spelling, source: str) -> Pure:
    """Return a conversion to tf32, whose result is an f32 with zeros in its last 13 bits."""
    if source != "f32":
        s.unknown()
    mode = s.choice("rna", "rn", "rz")
    relu, finite = mode != "rna" and s.flag("relu"), s.flag("satfinite")

    def compute(a: Array) -> Array:
        value = F32.decode(a)
        # A NaN counts as infinite if only its last 12 fraction bits are set (observed: driver 580, sm_90).
        if mode == "rna":
            bits = np.asarray(a).view(np.uint32)
            value = np.where(bits & np.uint32(0x7FFFF000) == 0x7F800000, np.copysign(np.inf, np.asarray(a)), value)
        found = _rounded(value, FORMATS["tf32"], mode, finite, relu)
        return np.where(np.isnan(value), _NAN_OF_RNA, found) if mode == "rna" else found

    return pure("cvt", "tf32", "f32", compute)


# ---- pairs ----


def _pairs(s: Spelling, result: str, source: str) -> Pure:
    """Return a conversion to a pair, from another pair or from two f32 values.

    The first f32 value becomes the upper half of the result.
    """
    if result not in _PAIRS:
        s.unknown()
    to, narrow = _PAIRS[result], result in ("e4m3x2", "e5m2x2")
    mode = s.choice("rn") if narrow or source != "f32" else s.choice("rn", "rz")
    finite, relu = s.flag("satfinite"), s.flag("relu")
    if narrow and not finite:
        s.unknown()
    if source == "f32":

        def compute(a: Array, b: Array) -> Array:
            upper, lower = (_rounded(F32.decode(each), to, mode, finite, relu) for each in (a, b))
            return upper.astype(DTYPES[result]) << DTYPES[result].type(_bits(result) // 2) | lower

        return pure("cvt", result, "f32 f32", compute)
    if (source in ("f16x2", "bf16x2")) != narrow or (finite and result == "f16x2"):
        s.unknown()
    return pure("cvt", result, source, _halves(_PAIRS[source], to, finite, relu, result, source))


def _rounded(value: Array, to: Format, mode: str, finite: bool, relu: bool) -> Array:
    """Return rounded values; with .satfinite, the largest finite number replaces infinity."""
    rounded = to.round(value, mode)
    if finite:
        rounded = np.where(np.isinf(rounded), np.copysign(to.largest, rounded), rounded)
    return to.encode(clamped(rounded, False, relu))


def _halves(source: Format, to: Format, finite: bool, relu: bool, result: str, source_type: str) -> Function:
    part = np.dtype(f"u{_bits(source_type) // 16}")

    def compute(a: Array) -> Array:
        words = np.ascontiguousarray(a)
        found = _rounded(source.decode(words[..., None].view(part)), to, "rn", finite, relu)
        return np.ascontiguousarray(found).view(DTYPES[result])[..., 0].reshape(np.shape(a))

    return compute
