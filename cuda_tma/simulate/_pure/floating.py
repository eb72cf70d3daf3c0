"""Floating-point arithmetic that is equal to hardware in every bit.

Source: PTX ISA, "Floating Point Instructions" and "Half Precision Floating Point Instructions". Comments mark results
that differ from PTX on hardware, or that PTX does not define.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from .._matrix.formats import F32, FORMATS, ROUNDINGS, Format, canonical_f32
from . import exact
from .integer import halves
from .table import DTYPES, Pure, Spelling, entry, pure

Array = Any  # The type Array includes NumPy arrays and NumPy scalars.
Function = Callable[..., Array]

FLOATS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")
ARITHMETIC = (*FLOATS, "f32x2")  # The instructions add, sub, mul and fma accept the type f32x2 from sm_100 on.
_HALF = ("f16", "f16x2", "bf16", "bf16x2")
# The NaN is the result of hardware for f64 arithmetic, although the PTX ISA does not define its bits ("Floating Point
# Instructions").
_NAN_F64 = np.uint64(0xFFF8000000000000).view(np.float64)


def narrow(
    format: Format, function: Function, mode: str = "rn", ftz: bool = False, sat: bool = False, relu: bool = False
) -> Function:
    """Convert a function of float64 values, exact or rounded to odd, to a function of values of a format.

    .ftz flushes the sources, and also subnormal results, as `Format.flush_result` defines.
    """

    def compute(*sources: Array) -> Array:
        values = [format.decode(source) for source in sources]
        if ftz:
            values = [format.flush(value) for value in values]
        found = function(*values)
        nearest = format.round(format.flush_result(found, mode) if ftz else found, mode)
        return format.encode(clamped(nearest, sat, relu))

    return compute


def clamped(value: Array, sat: bool, relu: bool) -> Array:
    """Return values that .sat clamps to 0 to 1, with 0 for NaN, and that .relu clamps to at least 0."""
    if sat:
        value = np.where(value > 0, np.minimum(value, 1), np.zeros_like(value))
    return np.where(value <= 0, np.zeros_like(value), value) if relu else value


def of_type(s: Spelling, section: str, type_: str, count: int, function: Callable[[Format], Function]) -> Pure:
    """Return an instruction for a narrow type, or for pairs of its values.

    `function` maps a format to the computation.
    """
    single = type_.removesuffix("x2")
    compute = function(FORMATS[single])
    if single != type_:
        compute = halves(compute, DTYPES[single])
    return pure(section, type_, " ".join([type_] * count), compute)


def _flags(s: Spelling, type_: str, relu: bool = False) -> dict[str, bool]:
    """Return the modifiers that are valid for a type."""
    found = {"ftz": type_ in ("f16", "f16x2", "f32", "f32x2") and s.flag("ftz")}
    found["sat"] = type_ in ("f16", "f16x2", "f32") and s.flag("sat")
    found["relu"] = relu and type_ in _HALF and not found["sat"] and s.flag("relu")
    return found


def _mode(s: Spelling, type_: str, default: str | None) -> str:
    among = ROUNDINGS if type_ in ("f32", "f32x2", "f64") else ("rn",)
    return s.choice(*among, default=default)


# ---- add, sub, mul, fma ----


def sums(s: Spelling) -> Pure:
    """Return the instruction add or sub for floating-point numbers."""
    type_ = s.type(*ARITHMETIC)
    mode = _mode(s, type_, "rn")
    sign = 1.0 if s.root == "add" else -1.0
    if type_ == "f64":
        return pure(s.root, "f64", "f64 f64", propagating(_wide_sum(mode, np.add if sign > 0 else np.subtract, sign)))
    flags = _flags(s, type_)
    if type_ == "f32" and mode == "rn" and not any(flags.values()):
        ufunc = np.add if sign > 0 else np.subtract
        return pure(s.root, "f32", "f32 f32", lambda a, b: canonical_f32(ufunc(a, b)))

    def function(a: Array, b: Array) -> Array:
        b = sign * b
        return exact.sum_of_zeros(exact.odd_sum(a, b), a, b, mode)

    return of_type(s, s.root, type_, 2, lambda format: narrow(format, function, mode, **flags))


def _wide_sum(mode: str, ufunc: np.ufunc, sign: float) -> Function:
    if mode == "rn":
        return ufunc

    def compute(a: Array, b: Array) -> Array:
        b = sign * b
        nearest, lost = exact.two_sum(a, b)
        nearest = exact.directed(nearest, exact.overflow(nearest, lost, a, b), mode)
        return exact.sum_of_zeros(nearest, a, b, mode)

    return compute


def products(s: Spelling) -> Pure:
    """Return the instruction mul for floating-point numbers."""
    type_ = s.type(*ARITHMETIC)
    mode = _mode(s, type_, "rn")
    if type_ == "f64":
        return pure("mul", "f64", "f64 f64", propagating(_by_fractions(np.multiply, lambda a, b: a * b, mode)))
    flags = _flags(s, type_)
    if type_ == "f32" and mode == "rn" and not any(flags.values()):
        return pure("mul", "f32", "f32 f32", lambda a, b: canonical_f32(np.multiply(a, b)))
    return of_type(s, "mul", type_, 2, lambda format: narrow(format, np.multiply, mode, **flags))


def sums_of_products(s: Spelling) -> Pure:
    """Return the instruction fma, or mad, which is equal to fma for every supported target."""
    type_ = s.type(*(ARITHMETIC if s.root == "fma" else ("f32", "f64")))
    mode = _mode(s, type_, None)
    if type_ == "f64":
        return pure(s.root, "f64", "f64 f64 f64", _canonical(_wide_fused(mode)))
    flags = _flags(s, type_, relu=True)

    def function(a: Array, b: Array, c: Array) -> Array:
        product = a * b
        return exact.sum_of_zeros(exact.odd_sum(product, c), product, c, mode)

    return of_type(s, s.root, type_, 3, lambda format: narrow(format, function, mode, **flags))


def _wide_fused(mode: str) -> Function:
    if mode == "rn":
        return exact.fused

    def compute(a: Array, b: Array, c: Array) -> Array:
        plain = a * b + c
        nearest, lost = exact.by_fractions(lambda x, y, z: x * y + z, plain, a, b, c)
        found = exact.directed(nearest, lost, mode)
        zero = (found == 0) & (lost == 0)
        return np.where(zero, exact.sum_of_zeros(found, a * b, c, mode), found)

    return compute


def _by_fractions(function: Function, exactly: Callable[..., Fraction], mode: str) -> Function:
    if mode == "rn":
        return function

    def compute(*sources: Array) -> Array:
        nearest, lost = exact.by_fractions(exactly, function(*sources), *sources)
        return exact.directed(nearest, lost, mode)

    return compute


def propagating(function: Function) -> Function:
    """Return an f64 function that returns the first NaN among its sources, as a quiet NaN."""

    def compute(*sources: Array) -> Array:
        found = np.asarray(function(*sources))
        if np.isnan(found).any():
            nan: Array = _NAN_F64
            for source in reversed(sources):
                nan = np.where(np.isnan(source), _quiet(source), nan)
            found = np.where(np.isnan(found), nan, found)
        return found

    return compute


def _quiet(value: Array) -> Array:
    return (np.asarray(value, np.float64).view(np.uint64) | np.uint64(1 << 51)).view(np.float64)


def _canonical(function: Function) -> Function:
    def compute(*sources: Array) -> Array:
        found = function(*sources)
        return np.where(np.isnan(found), _NAN_F64, found)

    return compute


# ---- div, rcp, sqrt, correctly rounded ----


def quotients(s: Spelling) -> Pure:
    """Return the instruction div for floating-point numbers."""
    return _rounded_division(s, 2, lambda a, b: a / b, _lost_by_division)


def reciprocals(s: Spelling) -> Pure:
    """Return the instruction rcp for floating-point numbers."""
    return _rounded_division(s, 1, lambda a: 1.0 / a, lambda found, a: _lost_by_division(found, np.ones_like(a), a))


def roots(s: Spelling) -> Pure:
    """Return the instruction sqrt for floating-point numbers."""
    return _rounded_division(s, 1, np.sqrt, lambda found, a: a - found * found)


def _lost_by_division(found: Array, a: Array, b: Array) -> Array:
    return (a - found * b) * np.copysign(1.0, b)


def _rounded_division(s: Spelling, count: int, function: Function, rest: Function) -> Pure:
    """Return a division or square root that is computed in float64.

    Double rounding is harmless, because float64 has more than twice the precision of f32. No quotient is so close below
    a normal number that it rounds to the normal number, so subnormal results are flushed before the rounding. `rest`
    has the sign of the rounding error of the nearest f32: a product of two f32 is exact in float64.
    """
    type_ = s.type("f32", "f64")
    mode = s.choice(*ROUNDINGS)
    sources = " ".join([type_] * count)
    if type_ == "f64":
        return pure(s.root, type_, sources, propagating(_wide_division(s.root, function, mode)))
    ftz = s.flag("ftz")

    def compute(*given: Array) -> Array:
        values = [F32.flush(F32.decode(value)) if ftz else F32.decode(value) for value in given]
        exactly = np.asarray(function(*values))
        nearest = exactly.astype(np.float32)
        if mode != "rn":
            long = nearest.astype(np.float64)
            plain = np.isfinite(long) & (long != 0)
            lost = np.where(plain, rest(long, *values), exactly - long)
            nearest = exact.directed(nearest, np.where(np.isnan(lost), 0, lost), mode)
        subnormal = ftz & (np.abs(exactly) < 2.0**F32.least_exponent)
        return F32.encode(np.where(subnormal, np.copysign(np.float32(0), nearest), nearest))

    return pure(s.root, type_, sources, compute)


_EXACT_QUOTIENTS: dict[str, Callable[..., Fraction]] = {"div": lambda a, b: a / b, "rcp": lambda a: 1 / a}


def _wide_division(root: str, function: Function, mode: str) -> Function:
    if mode == "rn" or root != "sqrt":
        return _by_fractions(function, _EXACT_QUOTIENTS.get(root, Fraction), mode)

    def compute(a: Array) -> Array:
        nearest = np.sqrt(a)
        # The function scales the operand by a power of two, so that no intermediate value is too small for float64.
        half = np.frexp(a)[1] >> 1
        root = np.ldexp(nearest, -half)
        lost = exact.fused(-root, root, np.ldexp(a, -2 * half))
        return exact.directed(nearest, np.where(np.isfinite(lost), lost, 0.0), mode)

    return compute


# ---- signs; minimum and maximum ----


def magnitudes(s: Spelling) -> Pure:
    """Return the instruction abs or neg, which changes only the sign.

    For a NaN, PTX defines only that the result is a NaN.
    """
    type_ = s.type(*FLOATS)
    ftz = type_ in ("f16", "f16x2", "f32") and s.flag("ftz")
    if type_ == "f64":
        return pure(s.root, "f64", "f64", {"abs": np.abs, "neg": np.negative}[s.root])
    if type_ == "f32" and not ftz:
        return pure(s.root, "f32", "f32", {"abs": np.abs, "neg": np.negative}[s.root])
    return of_type(
        s, s.root, type_, 1, lambda format: narrow(format, {"abs": np.abs, "neg": np.negative}[s.root], ftz=ftz)
    )


def extremes(s: Spelling) -> Pure:
    """Return the instruction min or max; -0 is less than +0.

    Without .NaN, the result for a NaN and a number is the number.
    """
    type_ = s.type(*FLOATS)
    if type_ == "f32" and len(s.layout) == 4:
        return _extremes_of_three(s)
    if type_ == "f64":
        return pure(s.root, "f64", "f64 f64", propagating(extreme(s.root, False, False)))
    ftz = type_ in ("f16", "f16x2", "f32") and s.flag("ftz")
    function = extreme(s.root, s.flag("NaN"), s.flag("xorsign") and (s.flag("abs") or s.unknown()))
    return of_type(s, s.root, type_, 2, lambda format: narrow(format, function, ftz=ftz))


def _extremes_of_three(s: Spelling) -> Pure:
    """Return the min or max of three f32, or with .abs of their magnitudes, which exists from sm_100 on."""
    ftz, magnitudes = s.flag("ftz"), s.flag("abs")
    of_two = extreme(s.root, s.flag("NaN"), False)

    def function(*sources: Array) -> Array:
        a, b, c = (np.abs(each) for each in sources) if magnitudes else sources
        return of_two(of_two(a, b), c)

    return of_type(s, s.root, "f32", 3, lambda format: narrow(format, function, ftz=ftz))


def extreme(root: str, nan: bool, xorsign: bool) -> Function:
    smaller = root == "min"
    before = np.less if smaller else np.greater
    either = np.logical_or if smaller else np.logical_and

    def compute(a: Array, b: Array) -> Array:
        sign = np.signbit(a) != np.signbit(b) if xorsign else None
        if xorsign:
            a, b = np.abs(a), np.abs(b)
        found: Array = np.where(before(a, b) | np.isnan(b), a, b)
        zeros = (a == 0) & (b == 0)
        if zeros.any():
            found = np.where(zeros, np.where(either(np.signbit(a), np.signbit(b)), -0.0, 0.0), found)
        if nan:
            found = np.where(np.isnan(a) | np.isnan(b), np.nan, found)
        return found if sign is None else np.copysign(found, np.where(sign, -1.0, 1.0))

    return compute


@entry("copysign")
def copy_sign(s: Spelling) -> Pure:
    """Return the instruction copysign, which returns the second source with the sign of the first source."""
    type_ = s.type("f32", "f64")
    return pure("copysign", type_, f"{type_} {type_}", lambda a, b: np.copysign(b, a))


@entry("testp")
def properties(s: Spelling) -> Pure:
    """Return the instruction testp, for which zero counts as normal."""
    asked = s.choice("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    type_ = s.type("f32", "f64")
    smallest = float(np.finfo(type_.replace("f", "float")).smallest_normal)

    def subnormal(a: Array) -> Array:
        return (a != 0) & (np.abs(a) < smallest)

    functions: dict[str, Function] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & ~subnormal(a),
        "subnormal": subnormal,
    }
    return pure("testp", "pred", type_, functions[asked])
