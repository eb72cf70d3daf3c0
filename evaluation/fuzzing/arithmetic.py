"""Scalar instructions of PTX, each with its result, which Python computes from the text of the PTX ISA.

A value is the bits of a register as an int. The sources are PTX ISA 9.0, "Integer Arithmetic Instructions", "Floating
Point Instructions", "Logic and Shift Instructions", "Comparison and Selection Instructions", and ``cvt``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from fractions import Fraction
from math import isnan, isqrt
from random import Random
from typing import NamedTuple

__all__ = ["OPERATIONS", "Operation", "edge_value"]

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
NAN = 0x7FFFFFFF  # Every NaN that an f32 instruction returns has the bits 0x7FFFFFFF.


class Operation(NamedTuple):
    """An instruction: its text with places for registers, the pools of its sources, the pool of its target, and its
    result.
    """

    text: str
    sources: str
    target: str
    compute: Callable[..., int]


def edge_value(draw: Random, pool: str) -> int:
    """Return random bits, which are often an extreme value of their type."""
    bits = 64 if pool == "d" else 32
    kind = draw.randrange(4)
    if kind == 0:
        return draw.getrandbits(bits)
    if kind == 1:
        return draw.choice((0, 1, 2, 31, 32, 33, (1 << bits) - 1, 1 << bits - 1, (1 << bits - 1) - 1))
    if pool == "f":
        return draw.choice((0x3F800000, 0x80000000, 0x7F800000, 0xFF800000, NAN, 1, 0x007FFFFF, 0x7F7FFFFF, 0xC0490FDB,
                            0x3F000000, 0x4F000000, 0xCF000001, 0x34000000))  # fmt: skip
    return draw.getrandbits(draw.randrange(1, bits))


def signed(value: int, bits: int = 32) -> int:
    """Return bits as a number in two's complement."""
    return value - (1 << bits) if value >> (bits - 1) else value


# ---- f32 ----


def number(bits: int) -> float:
    """Return the value of the bits of an f32."""
    return struct.unpack("f", struct.pack("I", bits))[0]


def rounded(value: Fraction, zero: int = 0) -> int:
    """Return the nearest f32 to a value, with ties to even. `zero` is the result for a value that is exactly zero."""
    if value == 0:
        return zero
    sign, value = (1 << 31, -value) if value < 0 else (0, value)
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > value
    step = Fraction(2) ** (max(exponent, -126) - 23)
    whole = round(value / step)  # Python's round() rounds a half to the nearest even integer.
    bits = whole if exponent < -126 else whole + ((exponent + 126) << 23)
    return sign | min(bits, 0x7F800000)


def _exact(operation: Callable[..., Fraction], zero: Callable[..., int]) -> Callable[..., int]:
    """Return an f32 operation from an operation on fractions. Special values use the floats of Python."""

    def compute(*given: int) -> int:
        values = [number(each) for each in given]
        if any(isnan(value) or value in (float("inf"), float("-inf")) for value in values):
            return _special(operation, values)
        fractions = [Fraction(value) for value in values]
        return rounded(operation(*fractions), zero(*given))

    return compute


def _special(operation: Callable[..., Fraction], values: list[float]) -> int:
    """Return the result if a value is infinite or a NaN. Only the signs of finite values matter."""
    if any(isnan(value) for value in values):
        return NAN
    found = operation(*values)
    return NAN if isnan(found) else struct.unpack("I", struct.pack("f", found))[0]


def _zero_of_sum(a: int, b: int) -> int:
    return a & b & 1 << 31 if not (a | b) & M32 >> 1 else 0


def _zero_of_product(a: int, b: int) -> int:
    return (a ^ b) & 1 << 31


def _fma(a: int, b: int, c: int) -> int:
    values = [number(each) for each in (a, b, c)]
    if any(isnan(value) for value in values):
        return NAN
    if any(abs(value) == float("inf") for value in values[:2]):
        return _special(lambda x, y, z: x * y + z, values)
    if abs(values[2]) == float("inf"):
        return c
    product_sign = (a ^ b) & 1 << 31
    x, y, z = (Fraction(value) for value in values)
    zero = product_sign & c if x * y == 0 and z == 0 else 0
    return rounded(x * y + z, zero)


def _divided(a: int, b: int) -> int:
    x, y, sign = number(a), number(b), (a ^ b) & 1 << 31
    if isnan(x) or isnan(y) or (x == 0 and y == 0) or (abs(x) == abs(y) == float("inf")):
        return NAN
    if y == 0 or abs(x) == float("inf"):
        return sign | 0x7F800000
    if x == 0 or abs(y) == float("inf"):
        return sign
    return rounded(Fraction(x) / Fraction(y))


def _root(a: int) -> int:
    x = number(a)
    if isnan(x) or x < 0:
        return NAN
    if x == 0 or x == float("inf"):
        return a
    # The scale is an even power of two, so that the root is exact to more than twice the digits of an f32.
    value = Fraction(x) * (1 << 300)
    root = isqrt(int(value))
    more = Fraction(1, 2) if root * root < value else 0
    return rounded((root + more) / Fraction(1 << 150))


def _least(a: int, b: int, sign: int) -> int:
    x, y = number(a), number(b)
    if isnan(x) or isnan(y):
        return NAN if isnan(x) and isnan(y) else b if isnan(x) else a
    if x == y:
        return (a | b if sign < 0 else a & b) if x == 0 else a
    return a if (x < y) == (sign < 0) else b


def _integer(a: int, low: int, high: int) -> int:
    x = number(a)
    if isnan(x):
        return 0
    return (max(low, min(high, int(x))) if abs(x) != float("inf") else high if x > 0 else low) & M32


# ---- integers ----


def _prmt(a: int, b: int, selector: int) -> int:
    source, found = a | b << 32, 0
    for i in range(4):
        picked = selector >> 4 * i & 15
        byte = source >> 8 * (picked & 7) & 255
        found |= ((255 if byte >> 7 else 0) if picked & 8 else byte) << 8 * i
    return found


def _lop3(table: int) -> Callable[..., int]:
    def compute(a: int, b: int, c: int) -> int:
        bits = ((table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1) << i for i in range(32))
        return sum(bits)

    return compute


def _bfe(a: int, start: int, length: int) -> int:
    start, length = start & 255, length & 255
    return a >> start & (1 << length) - 1


def _bfi(a: int, b: int, start: int, length: int) -> int:
    start, length = start & 255, length & 255
    mask = ((1 << length) - 1) << start & M32 if start < 32 else 0
    return b & ~mask | a << start & mask


def _bytes(a: int) -> list[int]:
    return [a >> 8 * i & 255 for i in range(4)]


def _shift(bits: int, left: bool) -> Callable[..., int]:
    mask = (1 << bits) - 1
    return lambda a, b: a << min(b, bits) & mask if left else a >> min(b, bits)


_R, _S = M32, signed
OPERATIONS = (
    Operation("add.u32 {0}, {1}, {2};", "rr", "r", lambda a, b: a + b & _R),
    Operation("sub.u32 {0}, {1}, {2};", "rr", "r", lambda a, b: a - b & _R),
    Operation("mul.lo.u32 {0}, {1}, {2};", "rr", "r", lambda a, b: a * b & _R),
    Operation("mul.hi.u32 {0}, {1}, {2};", "rr", "r", lambda a, b: a * b >> 32),
    Operation("mul.hi.s32 {0}, {1}, {2};", "rr", "r", lambda a, b: _S(a) * _S(b) >> 32 & _R),
    Operation("mul.wide.u32 {0}, {1}, {2};", "rr", "d", lambda a, b: a * b),
    Operation("mul.wide.s32 {0}, {1}, {2};", "rr", "d", lambda a, b: _S(a) * _S(b) & M64),
    Operation("mad.lo.u32 {0}, {1}, {2}, {3};", "rrr", "r", lambda a, b, c: a * b + c & _R),
    Operation("mad.hi.s32 {0}, {1}, {2}, {3};", "rrr", "r", lambda a, b, c: (_S(a) * _S(b) >> 32) + c & _R),
    Operation("and.b32 {0}, {1}, {2};", "rr", "r", lambda a, b: a & b),
    Operation("or.b32 {0}, {1}, {2};", "rr", "r", lambda a, b: a | b),
    Operation("xor.b32 {0}, {1}, {2};", "rr", "r", lambda a, b: a ^ b),
    Operation("not.b32 {0}, {1};", "r", "r", lambda a: a ^ _R),
    Operation("cnot.b32 {0}, {1};", "r", "r", lambda a: int(a == 0)),
    Operation("shl.b32 {0}, {1}, {2};", "rr", "r", _shift(32, True)),
    Operation("shr.u32 {0}, {1}, {2};", "rr", "r", _shift(32, False)),
    Operation("shr.s32 {0}, {1}, {2};", "rr", "r", lambda a, b: _S(a) >> min(b, 31) & _R),
    Operation("shl.b64 {0}, {1}, {2};", "dr", "d", _shift(64, True)),
    Operation("shr.u64 {0}, {1}, {2};", "dr", "d", _shift(64, False)),
    Operation("shr.s64 {0}, {1}, {2};", "dr", "d", lambda a, b: _S(a, 64) >> min(b, 63) & M64),
    Operation("min.s32 {0}, {1}, {2};", "rr", "r", lambda a, b: min(a, b, key=_S)),
    Operation("max.u32 {0}, {1}, {2};", "rr", "r", max),
    Operation("abs.s32 {0}, {1};", "r", "r", lambda a: abs(_S(a)) & _R),
    Operation("neg.s32 {0}, {1};", "r", "r", lambda a: -a & _R),
    Operation("popc.b32 {0}, {1};", "r", "r", lambda a: a.bit_count()),
    Operation("popc.b64 {0}, {1};", "d", "r", lambda a: a.bit_count()),
    Operation("clz.b32 {0}, {1};", "r", "r", lambda a: 32 - a.bit_length()),
    Operation("clz.b64 {0}, {1};", "d", "r", lambda a: 64 - a.bit_length()),
    Operation("brev.b32 {0}, {1};", "r", "r", lambda a: int(f"{a:032b}"[::-1], 2)),
    Operation("bfind.u32 {0}, {1};", "r", "r", lambda a: a.bit_length() - 1 & _R),
    Operation("sad.u32 {0}, {1}, {2}, {3};", "rrr", "r", lambda a, b, c: abs(a - b) + c & _R),
    Operation("dp4a.u32.u32 {0}, {1}, {2}, {3};", "rrr", "r",
              lambda a, b, c: sum(x * y for x, y in zip(_bytes(a), _bytes(b), strict=True)) + c & _R),
    Operation("prmt.b32 {0}, {1}, {2}, {3};", "rrr", "r", _prmt),
    Operation("lop3.b32 {0}, {1}, {2}, {3}, 0x96;", "rrr", "r", _lop3(0x96)),
    Operation("lop3.b32 {0}, {1}, {2}, {3}, 0x1d;", "rrr", "r", _lop3(0x1D)),
    Operation("bfe.u32 {0}, {1}, {2}, {3};", "rrr", "r", _bfe),
    Operation("bfi.b32 {0}, {1}, {2}, {3}, {4};", "rrrr", "r", _bfi),
    Operation("shf.l.wrap.b32 {0}, {1}, {2}, {3};", "rrr", "r", lambda a, b, c: (b << 32 | a) << (c & 31) >> 32 & _R),
    Operation("shf.r.clamp.b32 {0}, {1}, {2}, {3};", "rrr", "r", lambda a, b, c: (b << 32 | a) >> min(c, 32) & _R),
    Operation("setp.lt.s32 %p, {1}, {2}; selp.b32 {0}, {1}, {2}, %p;", "rr", "r", lambda a, b: min(a, b, key=_S)),
    Operation("setp.ge.u64 %p, {1}, {2}; selp.b64 {0}, {1}, {2}, %p;", "dd", "d", max),
    Operation("add.u64 {0}, {1}, {2};", "dd", "d", lambda a, b: a + b & M64),
    Operation("sub.s64 {0}, {1}, {2};", "dd", "d", lambda a, b: a - b & M64),
    Operation("mul.lo.u64 {0}, {1}, {2};", "dd", "d", lambda a, b: a * b & M64),
    Operation("mul.hi.u64 {0}, {1}, {2};", "dd", "d", lambda a, b: a * b >> 64),
    Operation("cvt.u64.u32 {0}, {1};", "r", "d", lambda a: a),
    Operation("cvt.s64.s32 {0}, {1};", "r", "d", lambda a: _S(a) & M64),
    Operation("cvt.u32.u64 {0}, {1};", "d", "r", lambda a: a & _R),
    Operation("cvt.rn.f32.s32 {0}, {1};", "r", "f", lambda a: rounded(Fraction(_S(a)))),
    Operation("cvt.rn.f32.u64 {0}, {1};", "d", "f", lambda a: rounded(Fraction(a))),
    Operation("cvt.rzi.s32.f32 {0}, {1};", "f", "r", lambda a: _integer(a, -(1 << 31), (1 << 31) - 1)),
    Operation("cvt.rzi.u32.f32 {0}, {1};", "f", "r", lambda a: _integer(a, 0, _R)),
    Operation("add.rn.f32 {0}, {1}, {2};", "ff", "f", _exact(lambda a, b: a + b, _zero_of_sum)),
    Operation("mul.rn.f32 {0}, {1}, {2};", "ff", "f", _exact(lambda a, b: a * b, _zero_of_product)),
    Operation("fma.rn.f32 {0}, {1}, {2}, {3};", "fff", "f", _fma),
    Operation("div.rn.f32 {0}, {1}, {2};", "ff", "f", _divided),
    Operation("sqrt.rn.f32 {0}, {1};", "f", "f", _root),
    Operation("min.f32 {0}, {1}, {2};", "ff", "f", lambda a, b: _least(a, b, -1)),
    Operation("max.f32 {0}, {1}, {2};", "ff", "f", lambda a, b: _least(a, b, 1)),
    Operation("mov.b32 {0}, {1};", "r", "f", lambda a: a),
    Operation("mov.b32 {0}, {1};", "f", "r", lambda a: a),
)  # fmt: skip
