"""Integer arithmetic.

Source: PTX ISA, "Integer Arithmetic Instructions" and "Extended-Precision Integer Arithmetic Instructions".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .table import DTYPES, Pure, Spelling, entry, pure

INTEGERS = ("u16", "u32", "u64", "s16", "s32", "s64")
WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
_CARRYING = ("u32", "s32", "u64", "s64", "b32", "b64")
Array = Any  # The type Array includes NumPy arrays and NumPy scalars.


def wide(value: Array, dtype: DTypeLike) -> Array:
    return np.asarray(value).astype(dtype)


# ---- sums ----


def sums(s: Spelling) -> Pure:
    """Return the instruction add or sub for integers, including packed integers and sums with a carry."""
    ufunc = {"add": np.add, "sub": np.subtract}[s.root]
    if s.flag("cc"):
        return _with_carry(s, carry_in=False, carry_out=True)
    if s.flag("sat"):
        type_ = s.type("s32")
        return pure(s.root, type_, "s32 s32", lambda a, b: _saturated(ufunc(wide(a, np.int64), wide(b, np.int64))))
    type_ = s.type(*INTEGERS, *(("u16x2", "s16x2") if s.root == "add" else ()))
    if type_.endswith("x2"):
        return pure(s.root, type_, f"{type_} {type_}", halves(ufunc, np.dtype(np.uint16)))
    return pure(s.root, type_, f"{type_} {type_}", ufunc)


def _saturated(value: Array) -> Array:
    return np.clip(value, -(1 << 31), (1 << 31) - 1).astype(np.int32)


def halves(function: Callable[..., Array], dtype: np.dtype) -> Callable[..., Array]:
    """Return a function that applies the given function to both halves of a word."""

    def compute(*words: Array) -> Array:
        arrays = np.broadcast_arrays(*words)
        found = function(*(np.ascontiguousarray(each).view(dtype) for each in arrays))
        return found.view(arrays[0].dtype).reshape(arrays[0].shape)

    return compute


@entry("addc", "subc")
def extended(s: Spelling) -> Pure:
    return _with_carry(s, carry_in=True, carry_out=s.flag("cc"))


def _with_carry(s: Spelling, carry_in: bool, carry_out: bool) -> Pure:
    """Return an addition or subtraction that uses CC.CF, the carry of a sum or the borrow of a difference."""
    type_ = s.type(*_CARRYING)
    unsigned = "u" + type_[1:]
    step = _carried if s.root.startswith("add") else _borrowed

    def compute(a: Array, b: Array, carry: Array = False) -> Any:
        value, out = step(a, b, carry)
        return (value, out) if carry_out else value

    return pure(s.root.rstrip("c"), unsigned, f"{unsigned} {unsigned}", compute, carry_in=carry_in, carry_out=carry_out)


def _carried(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    first = a + b
    value = first + np.asarray(carry).astype(first.dtype)
    return value, (first < a) | (value < first)


def _borrowed(a: Array, b: Array, borrow: Array) -> tuple[Array, Array]:
    first = a - b
    value = first - np.asarray(borrow).astype(first.dtype)
    return value, (a < b) | (value > first)


# ---- products ----


def products(s: Spelling) -> Pure:
    """Return the instruction mul for integers."""
    part = s.choice("lo", "hi", "wide")
    type_ = s.type(*(WIDER if part == "wide" else INTEGERS))
    result = WIDER[type_] if part == "wide" else type_
    return pure("mul", result, f"{type_} {type_}", _product(part, type_))


def sums_of_products(s: Spelling) -> Pure:
    """Return the instruction mad for integers, which is a multiplication followed by an addition."""
    part = s.choice("lo", "hi", "wide")
    saturated, carry_out = s.flag("sat"), s.flag("cc")
    return _multiply_add(s, part, saturated, False, carry_out)


@entry("madc")
def extended_products(s: Spelling) -> Pure:
    return _multiply_add(s, s.choice("lo", "hi"), False, True, s.flag("cc"))


def _multiply_add(s: Spelling, part: str, saturated: bool, carry_in: bool, carry_out: bool) -> Pure:
    type_ = s.type(*(WIDER if part == "wide" else INTEGERS))
    result = WIDER[type_] if part == "wide" else type_
    product = _product(part, type_)
    sources = f"{type_} {type_} {result}"
    if saturated:
        if (part, type_) != ("hi", "s32"):
            s.unknown()
        return pure("mad", type_, sources, lambda a, b, c: _saturated(wide(product(a, b), np.int64) + c))
    if not (carry_in or carry_out):
        return pure("mad", result, sources, lambda a, b, c: product(a, b) + c)
    if part == "wide" or type_.endswith("16"):
        s.unknown()
    unsigned = DTYPES["u" + type_[1:]]

    def compute(a: Array, b: Array, c: Array, carry: Array = False) -> Any:
        value, out = _carried(wide(product(a, b), unsigned), wide(c, unsigned), carry)
        return (value, out) if carry_out else value

    return pure(
        "madc" if carry_in else "mad.cc", "u" + type_[1:], sources, compute, carry_in=carry_in, carry_out=carry_out
    )


def _product(part: str, type_: str) -> Callable[[Array, Array], Array]:
    """Return a function that computes the low half, the high half, or all bits of a product."""
    dtype = DTYPES[type_]
    if part == "lo":
        return np.multiply
    if type_ in WIDER:
        both = DTYPES[WIDER[type_]]
        whole = lambda a, b: np.multiply(a, b, dtype=both)  # noqa: E731
        return whole if part == "wide" else lambda a, b: (whole(a, b) >> (8 * dtype.itemsize)).astype(dtype)
    return _high_unsigned if type_ == "u64" else _high_signed


def _high_unsigned(a: Array, b: Array) -> Array:
    """Return bits 64 to 127 of a product, computed from four products of 32-bit halves."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a_low, a_high, b_low, b_high = a & low, a >> half, b & low, b >> half
    middle = a_high * b_low + (a_low * b_low >> half)
    other = a_low * b_high + (middle & low)
    return a_high * b_high + (middle >> half) + (other >> half)


def _high_signed(a: Array, b: Array) -> Array:
    unsigned = np.uint64
    high = _high_unsigned(wide(a, unsigned), wide(b, unsigned)).view(np.int64)
    return high - np.where(a < 0, b, 0) - np.where(b < 0, a, 0)


@entry("mul24", "mad24")
def of_24_bits(s: Spelling) -> Pure:
    part = s.choice("lo", "hi")
    saturated = s.root == "mad24" and part == "hi" and s.flag("sat")
    type_ = s.type("s32") if saturated else s.type("u32", "s32")
    dtype, long = DTYPES[type_], DTYPES[WIDER[type_]]

    def product(a: Array, b: Array) -> Array:
        a, b = ((np.asarray(each) << 8 >> 8).astype(long) for each in (a, b))
        return (a * b >> (0 if part == "lo" else 16)).astype(dtype)

    if s.root == "mul24":
        return pure("mul24", type_, f"{type_} {type_}", product)
    if saturated:
        return pure("mad24", type_, "s32 s32 s32", lambda a, b, c: _saturated(wide(product(a, b), np.int64) + c))
    return pure("mad24", type_, f"{type_} {type_} {type_}", lambda a, b, c: product(a, b) + c)


@entry("sad")
def sum_of_differences(s: Spelling) -> Pure:
    type_ = s.type(*INTEGERS)
    return pure("sad", type_, f"{type_} {type_} {type_}", lambda a, b, c: c + np.where(a < b, b - a, a - b))


@entry("dp4a", "dp2a")
def dot_products(s: Spelling) -> Pure:
    """Return the instruction dp4a or dp2a, whose sums wrap.

    dp4a multiplies four bytes by four bytes. dp2a multiplies two 16-bit values by the lower or upper two bytes.
    """
    high = s.root == "dp2a" and s.choice("lo", "hi") == "hi"
    b_type, a_type = s.type("u32", "s32"), s.type("u32", "s32")
    result = "u32" if a_type == b_type == "u32" else "s32"
    size = 1 if s.root == "dp4a" else 2
    first = 2 * high

    def compute(a: Array, b: Array, c: Array) -> Array:
        a, b, c = np.broadcast_arrays(a, b, c)
        left = _pieces(a, f"{DTYPES[a_type].kind}{size}")
        right = _pieces(b, f"{DTYPES[b_type].kind}1")[..., first : first + 4 // size]
        return c + (left * right).sum(-1).astype(c.dtype)

    return pure(s.root, result, f"{a_type} {b_type} {result}", compute)


def _pieces(words: Array, dtype: str) -> Array:
    return np.ascontiguousarray(words)[..., None].view(dtype).astype(np.int64)


@entry("vabsdiff4")
def byte_differences(s: Spelling) -> Pure:
    """Return the instruction vabsdiff4, which computes the differences of four bytes, or c plus their sum.

    Compilers emit no other SIMD video instruction.
    """
    total = s.flag("add")
    for _ in range(3):
        s.type("u32")

    def compute(a: Array, b: Array, c: Array) -> Array:
        left, right, c = (np.asarray(each) for each in np.broadcast_arrays(a, b, c))
        size = np.abs(_pieces(left, "u1") - _pieces(right, "u1"))
        return c + size.sum(-1).astype(np.uint32) if total else size.astype(np.uint8).view(np.uint32)[..., 0]

    return pure("vabsdiff4", "u32", "u32 u32 u32", compute)


# ---- quotients ----


@entry("rem")
def remainders(s: Spelling) -> Pure:
    type_ = s.type(*INTEGERS)
    return pure("rem", type_, f"{type_} {type_}", lambda a, b: a - b * _quotient(a, b))


def quotients(s: Spelling) -> Pure:
    """Return the instruction div for integers, which rounds toward zero."""
    type_ = s.type(*INTEGERS)
    return pure("div", type_, f"{type_} {type_}", _quotient)


def _quotient(a: Array, b: Array) -> Array:
    """Return a quotient, which is all ones for a division by zero; a - b * q is then a.

    PTX does not define the result of a division by zero.
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind == "u":
        return np.where(b == 0, ~np.zeros_like(a), a // np.where(b == 0, 1, b).astype(b.dtype))
    unsigned = f"u{a.dtype.itemsize}"
    divisor = np.where(b == 0, 1, np.abs(b).astype(unsigned)).astype(unsigned)
    size = (np.abs(a).astype(unsigned) // divisor).astype(a.dtype)
    return np.where(b == 0, -1, np.where((a < 0) != (b < 0), -size, size)).astype(a.dtype)


# ---- one operand; minimum and maximum ----


def magnitudes(s: Spelling) -> Pure:
    """Return the instruction abs or neg for integers, which maps the least value to itself."""
    type_ = s.type("s16", "s32", "s64")
    return pure(s.root, type_, type_, {"abs": np.abs, "neg": np.negative}[s.root])


def extremes(s: Spelling) -> Pure:
    """Return the instruction min or max for integers."""
    ufunc = {"min": np.minimum, "max": np.maximum}[s.root]
    relu = s.flag("relu")
    type_ = s.type("s32", "s16x2") if relu else s.type(*INTEGERS, "u16x2", "s16x2")
    function = (lambda a, b: np.maximum(ufunc(a, b), 0)) if relu else ufunc
    if type_.endswith("x2"):
        function = halves(function, np.dtype(np.int16 if type_[0] == "s" else np.uint16))
    return pure(s.root, type_, f"{type_} {type_}", function)
