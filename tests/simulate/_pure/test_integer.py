"""Tests of integer instructions of the simulator, whose results equal results of Python's integers."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulate._pure._integer import fitted, number, width, wrapped
from tests.support.pure_instructions import as_bits, compute, entry_of, integers_of, rows, signed

TYPES = ("u16", "u32", "u64", "s16", "s32", "s64")
LIMITS = [0, 1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 1 << 31, (1 << 32) - 1]


def shift_count(random: Random) -> int:
    return random.choice(LIMITS) if random.random() < 1 / 2 else random.randint(0, 70)


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def check(text: str, sources: str, expected, data, count: int = 12):
    """Compare an instruction's results with a reference, on random lanes. The `sources` are types, or ``#`` for a shift
    count."""
    draws = (shift_count if name == "#" else integers_of(name) for name in sources.split())
    lanes = data.draw(rows(*draws, most=count))
    found = compute(text, *zip(*lanes, strict=True))
    wanted = [expected(*lane) for lane in lanes]
    if isinstance(wanted[0], tuple):
        found = list(zip(*found, strict=True))
    assert found == wanted, next(x for x in zip(lanes, found, wanted, strict=True) if x[1] != x[2])


ARITHMETIC = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "min": min,
    "max": max,
    "div": lambda a, b: truncated(a, b) if b else -1,
    "rem": lambda a, b: a - b * truncated(a, b) if b else a,
}


@pytest.mark.parametrize("name", ARITHMETIC)
@settings(max_examples=60)
@given(st.data(), st.sampled_from(TYPES))
def test_arithmetic(name, data, type_):
    function = ARITHMETIC[name]
    expected = lambda a, b: wrapped(function(number(a, type_), number(b, type_)), type_)  # noqa: E731
    check(f"{name}.{type_} d, a, b", f"{type_} {type_}", expected, data)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(TYPES))
def test_wide_and_high_products(data, type_):
    both = lambda a, b: number(a, type_) * number(b, type_)  # noqa: E731
    sources = f"{type_} {type_}"
    check(f"mul.hi.{type_} d, a, b", sources, lambda a, b: wrapped(both(a, b) >> width(type_), type_), data)
    check(f"mad.lo.{type_} d, a, b, c", f"{sources} {type_}", lambda a, b, c: wrapped(both(a, b) + c, type_), data)
    check(
        f"mad.hi.{type_} d, a, b, c", f"{sources} {type_}",
        lambda a, b, c: wrapped((both(a, b) >> width(type_)) + c, type_), data,
    )  # fmt: skip
    if width(type_) < 64:
        wide = f"{type_[0]}{2 * width(type_)}"
        check(f"mul.wide.{type_} d, a, b", sources, lambda a, b: wrapped(both(a, b), wide), data)
        check(f"mad.wide.{type_} d, a, b, c", f"{sources} {wide}", lambda a, b, c: wrapped(both(a, b) + c, wide), data)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["u32", "s32"]))
def test_24_bits(data, type_):
    def product(a, b):
        a, b = ((each & 0xFFFFFF) for each in (a, b))
        return signed(a, 24) * signed(b, 24) if type_ == "s32" else a * b

    sources = f"{type_} {type_}"
    check(f"mul24.lo.{type_} d, a, b", sources, lambda a, b: wrapped(product(a, b), type_), data)
    check(f"mul24.hi.{type_} d, a, b", sources, lambda a, b: wrapped(product(a, b) >> 16, type_), data)
    check(f"mad24.lo.{type_} d, a, b, c", f"{sources} {type_}", lambda a, b, c: wrapped(product(a, b) + c, type_), data)


@settings(max_examples=60)
@given(st.data())
def test_saturation(data):
    s32 = lambda bits: signed(bits, 32)  # noqa: E731
    check("add.sat.s32 d, a, b", "s32 s32", lambda a, b: fitted(s32(a) + s32(b), "s32"), data)
    check("sub.sat.s32 d, a, b", "s32 s32", lambda a, b: fitted(s32(a) - s32(b), "s32"), data)
    check(
        "mad.hi.sat.s32 d, a, b, c",
        "s32 s32 s32",
        lambda a, b, c: fitted((s32(a) * s32(b) >> 32) + s32(c), "s32"),
        data,
    )


def test_mad_hi_sat_as_ptxas_computes_it():
    """ptxas 13.0 adds the high half and the third source, and saturates by the signs of both and of their sum.

    For the first operands, an H200 computes 0x6ebe1be4, the sum without saturation, if a mul.lo of the same operands is
    next to the instruction. For both instructions, ptxas emits one IMAD.WIDE, which does not saturate
    (`scalar_open.loses_sat`). PTX requires saturation.
    """

    def by_signs(a, b, c):
        high = wrapped(signed(a, 32) * signed(b, 32) >> 32, "u32")
        total = wrapped(high + c, "u32")
        signs = (high >> 31, c >> 31, total >> 31)
        return {(0, 0, 1): 0x7FFFFFFF, (1, 1, 0): 0x80000000}.get(signs, total)

    ends = [0, 1, 2, 0x3FFFFFFF, 0x40000000, 0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xBFFFFFFF, 0xFFFFFFFF]
    lanes = [(0x80C000C1, 0x243A2121, 0x80C000C1), *product(ends, repeat=3)]
    found = compute("mad.hi.sat.s32 d, a, b, c", *zip(*lanes, strict=True))
    assert found == [by_signs(*lane) for lane in lanes] and found[0] == 0x80000000


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["u32", "s32", "u64", "s64"]), st.booleans())
def test_carries(data, type_, carry):
    size = 1 << width(type_)
    lanes = data.draw(rows(*[integers_of(type_)] * 3, most=8))
    a, b, c = zip(*lanes, strict=True)
    carries = [carry] * len(lanes)
    sums = [x + y for x, y, _ in lanes]
    assert compute_carrying(f"add.cc.{type_} d, a, b", a, b) == [[x % size for x in sums], [x // size for x in sums]]
    sums = [x + y + carry for x, y, _ in lanes]
    assert compute_carrying(f"addc.cc.{type_} d, a, b", a, b, carry=carries) == [
        [x % size for x in sums], [x // size for x in sums],
    ]  # fmt: skip
    rests = [x - y - carry for x, y, _ in lanes]
    assert compute_carrying(f"subc.cc.{type_} d, a, b", a, b, carry=carries) == [
        [x % size for x in rests], [int(x < 0) for x in rests],
    ]  # fmt: skip
    sums = [x * y % size + z + carry for x, y, z in lanes]
    assert compute_carrying(f"madc.lo.cc.{type_} d, a, b, c", a, b, c, carry=carries) == [
        [x % size for x in sums], [x // size for x in sums],
    ]  # fmt: skip


def compute_carrying(text, *sources, carry=None):
    entry = entry_of(text)
    assert (entry.carry_in, entry.carry_out) == (carry is not None, True)
    lanes = [
        np.array(each, f"u{dtype.itemsize}").view(dtype) for each, dtype in zip(sources, entry.sources, strict=True)
    ]
    value, out = entry.compute(*lanes, *([] if carry is None else [np.array(carry)]))
    return [as_bits(value, entry.results[0]), as_bits(out, np.dtype(bool))]


@settings(max_examples=60)
@given(st.data(), st.sampled_from(TYPES))
def test_sad(data, type_):
    expected = lambda a, b, c: wrapped(abs(number(a, type_) - number(b, type_)) + c, type_)  # noqa: E731
    check(f"sad.{type_} d, a, b, c", f"{type_} {type_} {type_}", expected, data)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["u32", "s32"]), st.sampled_from(["u32", "s32"]))
def test_dot_products(data, a_type, b_type):
    def pieces(word, count, type_):
        size = 32 // count
        found = [word >> size * place & (1 << size) - 1 for place in range(count)]
        return [signed(each, size) for each in found] if type_ == "s32" else found

    def dp4a(a, b, c):
        return wrapped(c + sum(x * y for x, y in zip(pieces(a, 4, a_type), pieces(b, 4, b_type), strict=True)), "u32")

    def dp2a(a, b, c, first):
        right = pieces(b, 4, b_type)[first : first + 2]
        return wrapped(c + sum(x * y for x, y in zip(pieces(a, 2, a_type), right, strict=True)), "u32")

    check(f"dp4a.{a_type}.{b_type} d, a, b, c", "u32 u32 u32", dp4a, data)
    check(f"dp2a.lo.{a_type}.{b_type} d, a, b, c", "u32 u32 u32", lambda a, b, c: dp2a(a, b, c, 0), data)
    check(f"dp2a.hi.{a_type}.{b_type} d, a, b, c", "u32 u32 u32", lambda a, b, c: dp2a(a, b, c, 2), data)


@settings(max_examples=40)
@given(st.data())
def test_differences_of_bytes(data):
    def sizes(a, b):
        return [abs((a >> at & 0xFF) - (b >> at & 0xFF)) for at in (0, 8, 16, 24)]

    joined = lambda a, b, c: sum(size << 8 * at for at, size in enumerate(sizes(a, b)))  # noqa: E731
    check("vabsdiff4.u32.u32.u32 d, a, b, c", "u32 u32 u32", joined, data)
    added = lambda a, b, c: wrapped(sum(sizes(a, b)) + c, "u32")  # noqa: E731
    check("vabsdiff4.u32.u32.u32.add d, a, b, c", "u32 u32 u32", added, data)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["u16x2", "s16x2"]), st.sampled_from(["add", "min", "max"]))
def test_pairs_of_integers(data, type_, name):
    half = type_[:3]

    def expected(a, b):
        function = ARITHMETIC[name]
        parts = [(a >> at & 0xFFFF, b >> at & 0xFFFF) for at in (0, 16)]
        low, high = (wrapped(function(number(x, half), number(y, half)), half) for x, y in parts)
        return high << 16 | low

    check(f"{name}.{type_} d, a, b", "u32 u32", expected, data)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["s16", "s32", "s64"]))
def test_one_operand(data, type_):
    check(f"abs.{type_} d, a", type_, lambda a: wrapped(abs(number(a, type_)), type_), data)
    check(f"neg.{type_} d, a", type_, lambda a: wrapped(-a, type_), data)


# ---- logic, shifts, fields ----


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["b16", "b32", "b64"]))
def test_logic_and_left_shifts(data, type_):
    pair = f"{type_} {type_}"
    check(f"and.{type_} d, a, b", pair, lambda a, b: a & b, data)
    check(f"or.{type_} d, a, b", pair, lambda a, b: a | b, data)
    check(f"xor.{type_} d, a, b", pair, lambda a, b: a ^ b, data)
    check(f"not.{type_} d, a", type_, lambda a: wrapped(~a, type_), data)
    check(f"cnot.{type_} d, a", type_, lambda a: int(a == 0), data)
    check(f"shl.{type_} d, a, b", f"{type_} #", lambda a, n: wrapped(a << min(n, 64), type_), data)
    check(f"shr.{type_} d, a, b", f"{type_} #", lambda a, n: a >> n, data)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(TYPES))
def test_right_shifts(data, type_):
    check(f"shr.{type_} d, a, b", f"{type_} #", lambda a, n: wrapped(number(a, type_) >> min(n, 64), type_), data)


@settings(max_examples=60)
@given(st.data())
def test_funnel_shifts(data):
    for mode, limit in (("clamp", lambda n: min(n, 32)), ("wrap", lambda n: n & 31)):
        check(
            f"shf.l.{mode}.b32 d, a, b, c", "b32 b32 #",
            lambda a, b, n, limit=limit: (b << 32 | a) << limit(n) >> 32 & 0xFFFFFFFF, data,
        )  # fmt: skip
        check(
            f"shf.r.{mode}.b32 d, a, b, c", "b32 b32 #",
            lambda a, b, n, limit=limit: (b << 32 | a) >> limit(n) & 0xFFFFFFFF, data,
        )  # fmt: skip


@settings(max_examples=100)
@given(st.data(), st.integers(0, 255))
def test_lop3(data, table):
    def expected(a, b, c):
        return sum((table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(32))

    lanes = data.draw(rows(*[integers_of("b32")] * 3, most=8))
    found = compute("lop3.b32 d, a, b, c, e", *zip(*lanes, strict=True), [table] * len(lanes))
    assert found == [expected(*lane) for lane in lanes]


@settings(max_examples=100)
@given(st.data(), st.sampled_from(["u32", "s32", "u64", "s64"]))
def test_fields(data, type_):
    bits = width(type_)

    def extracted(a, position, length):
        position, length = position & 255, length & 255
        sign = a >> min(position + length - 1, bits - 1) & 1 if type_[0] == "s" and length else 0
        chosen = [a >> position + i & 1 if i < length and position + i < bits else sign for i in range(bits)]
        return sum(bit << i for i, bit in enumerate(chosen))

    def inserted(a, b, position, length):
        position, length = position & 255, length & 255
        for i in range(length):
            if position + i < bits:
                b = b & ~(1 << position + i) | (a >> i & 1) << position + i
        return b

    check(f"bfe.{type_} d, a, b, c", f"{type_} # #", extracted, data)
    check(f"bfi.b{bits} d, a, b, c, e", f"b{bits} b{bits} # #", inserted, data)


@settings(max_examples=60)
@given(st.data())
def test_masks_and_extensions(data):
    def mask(position, length):
        return (1 << min(length, 32)) - 1 << min(position, 32) & 0xFFFFFFFF

    check("bmsk.clamp.b32 d, a, b", "# #", mask, data)
    check("bmsk.wrap.b32 d, a, b", "# #", lambda position, length: mask(position & 31, length & 31), data)

    def extended(a, count, signed_):
        if count == 0 or count >= 32:
            return 0 if count == 0 else a
        low = a & (1 << count) - 1
        return (signed(low, count) if signed_ else low) & 0xFFFFFFFF

    for type_ in ("u32", "s32"):
        is_signed = type_ == "s32"
        check(f"szext.clamp.{type_} d, a, b", "b32 #", lambda a, n, s=is_signed: extended(a, min(n, 32), s), data)
        check(f"szext.wrap.{type_} d, a, b", "b32 #", lambda a, n, s=is_signed: extended(a, n & 31, s), data)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["b32", "b64"]))
def test_counts(data, type_):
    bits = width(type_)
    check(f"popc.{type_} d, a", type_, int.bit_count, data)
    check(f"clz.{type_} d, a", type_, lambda a: bits - a.bit_length(), data)
    check(f"brev.{type_} d, a", type_, lambda a: int(f"{a:0{bits}b}"[::-1], 2), data)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["u32", "s32", "u64", "s64"]))
def test_bfind(data, type_):
    bits = width(type_)

    def found(a):
        if type_[0] == "s" and a >> bits - 1:
            a = wrapped(~a, type_)
        return a.bit_length() - 1 if a else 0xFFFFFFFF

    check(f"bfind.{type_} d, a", type_, found, data)
    shifted = lambda a: found(a) if found(a) == 0xFFFFFFFF else bits - 1 - found(a)  # noqa: E731
    check(f"bfind.shiftamt.{type_} d, a", type_, shifted, data)


@settings(max_examples=100)
@given(rows(integers_of("b32"), lambda random: random.randint(0, 31), lambda random: random.randint(-33, 33), most=8))
def test_fns(lanes):
    def expected(mask, base, offset):
        if offset == 0:
            return base if mask >> base & 1 else 0xFFFFFFFF
        places = range(base, 32) if offset > 0 else range(base, -1, -1)
        ones = [place for place in places if mask >> place & 1]
        return ones[abs(offset) - 1] if len(ones) >= abs(offset) else 0xFFFFFFFF

    masks, bases, offsets = zip(*lanes, strict=True)
    assert compute("fns.b32 d, a, b, c", masks, bases, [n & 0xFFFFFFFF for n in offsets]) == [
        expected(*x) for x in lanes
    ]


@settings(max_examples=60)
@given(st.data())
def test_prmt(data):
    def general(a, b, c):
        both = [(b << 32 | a) >> 8 * i & 0xFF for i in range(8)]
        found = 0
        for i in range(4):
            pick = c >> 4 * i & 15
            found |= (both[pick & 7] if pick < 8 else (0xFF if both[pick & 7] & 0x80 else 0)) << 8 * i
        return found

    check("prmt.b32 d, a, b, c", "b32 b32 b32", general, data)
    # The table contains the bytes of {b, a} by mode and selector, from the most significant byte on (PTX ISA, "prmt").
    a, b = [0x03020100] * 4, [0x07060504] * 4
    for mode, selected in {
        "f4e": "3210 4321 5432 6543", "b4e": "5670 6701 7012 0123", "rc8": "0000 1111 2222 3333",
        "ecl": "3210 3211 3222 3333", "ecr": "0000 1110 2210 3210", "rc16": "1010 3232 1010 3232",
    }.items():  # fmt: skip
        wanted = [int("0" + "0".join(row), 16) for row in selected.split()]
        assert compute(f"prmt.b32.{mode} d, a, b, c", a, b, [0, 1, 2, 7]) == wanted


def test_moves():
    assert compute("mov.b64 d, {a, b}", [1, 0xFFFFFFFF], [2, 3]) == [0x2_0000_0001, 0x3_FFFF_FFFF]
    assert compute("mov.b32 {a, b}, d", [0x12345678]) == [[0x5678], [0x1234]]
    assert compute("mov.b64 {a, b, c, e}, d", [0x0123456789ABCDEF]) == [[0xCDEF], [0x89AB], [0x4567], [0x0123]]
    assert compute("mov.b32 d, {a, b, c, e}", [1], [2], [3], [0xFF]) == [0xFF030201]
    assert compute("mov.f64 d, a", [7]) == [7]
