"""Tests of floating-point instructions, whose results equal exact fractions that are rounded once."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import inf, isqrt, nan
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_tma.simulate._pure import lookup
from tests.support.pure_instructions import (
    LAYOUT,
    SEEDS,
    bits_of,
    column,
    compute,
    floats_of,
    flushed,
    flushed_result,
    instruction,
    rows,
    value_of,
)

DIRECTIONS = ("rn", "rz", "rm", "rp")
TYPES = ("f16", "bf16", "f32", "f64")


def isnan(value) -> bool:
    return isinstance(value, float) and value != value


def isinf(value) -> bool:
    return isinstance(value, float) and abs(value) == inf


def negative(value) -> bool:
    return str(value)[0] == "-"


def negated(value):
    return -value if value or isinstance(value, float) else -0.0


def total(a, b, mode):
    """Return a + b, where a and b are fractions, infinities, NaN or -0.0."""
    if a == b == 0 and negative(a) and negative(b):
        return -0.0
    if isnan(a) or isnan(b) or isinf(a) or isinf(b):
        return sum(float(each) if isinstance(each, float) else 0.0 for each in (a, b))
    found = Fraction(a) + Fraction(b)
    if found == 0:
        return -0.0 if mode == "rm" and (negative(a) or negative(b)) else Fraction(0)
    return found


def times(a, b):
    if isnan(a) or isnan(b):
        return nan
    if isinf(a) or isinf(b):
        return nan if a == 0 or b == 0 else -inf if negative(a) != negative(b) else inf
    if a == 0 or b == 0:
        return -0.0 if negative(a) != negative(b) else Fraction(0)
    return a * b


def over(a, b):
    if isnan(a) or isnan(b) or (isinf(a) and isinf(b)) or (a == 0 and b == 0):
        return nan
    sign = negative(a) != negative(b)
    if isinf(a) or b == 0:
        return -inf if sign else inf
    if a == 0 or isinf(b):
        return -0.0 if sign else Fraction(0)
    return a / b


def fused(a, b, c, mode):
    return total(times(a, b), c, mode)


def encoded(value, type_, mode="rn", ftz=False, sat=False, relu=False):
    """Return the bits of a value, or None for a NaN of f64, whose bits PTX leaves open."""
    if isnan(value) and type_ == "f64":
        return None
    bits = bits_of(flushed_result(value, type_, mode) if ftz else value, type_, mode)
    width = sum(LAYOUT[type_])
    if sat:
        one = ((1 << LAYOUT[type_][0] - 1) - 1) << LAYOUT[type_][1]
        bits = 0 if isnan(value) or bits >> width else min(bits, one)
    return 0 if relu and bits >> width and not isnan(value) else bits


def same(found: list[int], wanted: list[int | None], type_: str) -> list[bool]:
    return [f == w if w is not None else isnan(value_of(f, type_)) for f, w in zip(found, wanted, strict=True)]


def check(text: str, type_: str, count: int, expected, data, ftz=False, result="", **flags):
    lanes = data.draw(rows(*[floats_of(type_)] * count))
    found = compute(text, *zip(*lanes, strict=True))
    wanted = []
    for lane in lanes:
        values = [value_of(bits, type_) for bits in lane]
        values = [flushed(value, type_) for value in values] if ftz else values
        wanted.append(encoded(expected(*values), result or type_, ftz=ftz, **flags))
    right = same(found, wanted, result or type_)
    place = right.index(False) if False in right else 0
    assert all(right), (text, [hex(b) for b in lanes[place]], hex(found[place]), wanted[place] and hex(wanted[place]))


@settings(max_examples=50)
@given(st.data(), st.sampled_from(TYPES))
def test_sums_and_products(data, type_):
    for mode in DIRECTIONS if type_ in ("f32", "f64") else ("rn",):
        check(f"add.{mode}.{type_} d, a, b", type_, 2, lambda a, b, m=mode: total(a, b, m), data, mode=mode)
        check(f"sub.{mode}.{type_} d, a, b", type_, 2, lambda a, b, m=mode: total(a, negated(b), m), data, mode=mode)
        check(f"mul.{mode}.{type_} d, a, b", type_, 2, times, data, mode=mode)


@settings(max_examples=50)
@given(st.data(), st.sampled_from(TYPES))
def test_fused(data, type_):
    for mode in DIRECTIONS if type_ in ("f32", "f64") else ("rn",):
        check(f"fma.{mode}.{type_} d, a, b, c", type_, 3, lambda a, b, c, m=mode: fused(a, b, c, m), data, mode=mode)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["add", "sub", "mul", "fma"]), st.sampled_from(DIRECTIONS), st.booleans())
def test_pairs_of_f32(data, name, mode, ftz):
    """For a pair of f32 values, both halves of the 64 result bits equal the results of the instruction for one f32."""
    operands = ["a", "b", "c"][: 3 if name == "fma" else 2]
    lower, upper = (data.draw(rows(*[floats_of("f32")] * len(operands), least=5, most=5)) for _ in range(2))
    words = [[u << 32 | v for u, v in zip(*pair, strict=True)] for pair in zip(upper, lower, strict=True)]
    opcode, ends = f"{name}.{mode}{'.ftz' * ftz}", f"d, {', '.join(operands)}"
    below, above = (compute(f"{opcode}.f32 {ends}", *zip(*half, strict=True)) for half in (lower, upper))
    found = compute(f"{opcode}.f32x2 {ends}", *zip(*words, strict=True))
    assert found == [u << 32 | v for u, v in zip(above, below, strict=True)]


def test_a_scalar_operand_of_a_pair_of_f32():
    """In the test, the instruction adds the pair of 3.0 and 1.0 to each lane's pair of 1.0 and 2.0."""
    entry = lookup(instruction("add.f32x2 d, a, b"))
    found = entry.compute(np.array([0x3F80000040000000] * 2, np.uint64), np.uint64(0x404000003F800000))
    assert found.tolist() == [0x4080000040400000] * 2
    for text in ("add.rn.sat.f32x2 d, a, b", "min.f32x2 d, a, b", "fma.f32x2 d, a, b, c"):
        assert lookup(instruction(text)) is None, text


@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize("flags", ["", ".NaN", ".ftz"])
@settings(max_examples=30)
@given(data=st.data())
def test_extremes_of_three(name, flags, data):
    """The minimum or maximum of three values equals two successive instructions of two values. With .abs, the
    instruction compares magnitudes."""
    lanes = data.draw(rows(*[floats_of("f32")] * 3))
    a, b, c = zip(*lanes, strict=True)
    of_two = compute(f"{name}{flags}.f32 d, a, b", compute(f"{name}{flags}.f32 d, a, b", a, b), c)
    assert compute(f"{name}{flags}.f32 d, a, b, c", a, b, c) == of_two
    magnitudes = [[bits & 0x7FFFFFFF for bits in each] for each in (a, b, c)]
    expected = compute(f"{name}{flags}.f32 d, a, b, c", *magnitudes)
    assert compute(f"{name}{flags}.abs.f32 d, a, b, c", a, b, c) == expected
    assert lookup(instruction(f"{name}.xorsign.abs.f32 d, a, b, c")) is None


@settings(max_examples=200)
@given(SEEDS, st.sampled_from(TYPES), st.sampled_from(DIRECTIONS))
def test_fused_near_a_tie(seed, type_, mode):
    """In the test of fma, the product a * b is about half a unit of c, so that double rounding would be wrong."""
    mode = mode if type_ in ("f32", "f64") else "rn"
    exponent_bits, fraction_bits = LAYOUT[type_]
    bias = (1 << exponent_bits - 1) - 1
    lanes, random = [], Random(seed)
    for _ in range(8):
        place = random.randint(1, 2 * bias - 1)
        c = place << fraction_bits | random.randint(0, 3) | random.getrandbits(1) << exponent_bits + fraction_bits
        split = random.randint(-8, 8)
        half = max(min(place - fraction_bits - 1 - split, 2 * bias), 1)
        a = half << fraction_bits | random.getrandbits(1)
        b = max(min(bias + split, 2 * bias), 1) << fraction_bits | random.getrandbits(1)
        lanes.append((a, b | random.getrandbits(1) << exponent_bits + fraction_bits, c))
    found = compute(f"fma.{mode}.{type_} d, a, b, c", *zip(*lanes, strict=True))
    wanted = [encoded(fused(*(value_of(bits, type_) for bits in lane), mode), type_, mode) for lane in lanes]
    assert all(same(found, wanted, type_)), next(x for x in zip(lanes, found, wanted, strict=True) if x[1] != x[2])


@settings(max_examples=80)
@given(
    st.data(),
    st.sampled_from([("f32", "rn"), ("f32", "rp"), ("f32", "rz"), ("f16", "rn")]),
    st.sampled_from([(True, False), (False, True), (True, True)]),
)
def test_flushing_and_saturation(data, kind, flags):
    (type_, mode), (ftz, sat) = kind, flags
    spelled = f"{mode}{'.ftz' * ftz}{'.sat' * sat}.{type_}"
    wanted = {"mode": mode, "ftz": ftz, "sat": sat}
    check(f"add.{spelled} d, a, b", type_, 2, lambda a, b: total(a, b, mode), data, **wanted)
    check(f"mul.{spelled} d, a, b", type_, 2, times, data, **wanted)
    check(f"fma.{spelled} d, a, b, c", type_, 3, lambda a, b, c: fused(a, b, c, mode), data, **wanted)


@pytest.mark.parametrize(("type_", "sat"), list(product(("f32", "f16"), (False, True))))
def test_flushing_just_below_the_least_normal_number(type_, sat):
    """In each rounding mode, a result that rounds to the least normal number is not flushed. A result that is half a
    unit below the least normal number is a tie."""
    exponent_bits, fraction_bits = LAYOUT[type_]
    one, least = (1 << exponent_bits - 1) - 1 << fraction_bits, 1 << fraction_bits
    minus = 1 << exponent_bits + fraction_bits
    below = [one - (places << fraction_bits) for places in range(fraction_bits, fraction_bits + 6)]
    lanes = [(a | minus, least, least) for a in below] + [(a, least, least | minus) for a in below]
    lanes += [(a | minus | 1, least, least) for a in below] + [(one - 1, least, 0), (one - 1, least | minus, minus)]
    for mode in DIRECTIONS if type_ == "f32" else ("rn",):
        spelled = f"{mode}.ftz{'.sat' * sat}.{type_}"
        wanted = [
            encoded(fused(*(value_of(x, type_) for x in lane), mode), type_, mode, ftz=True, sat=sat) for lane in lanes
        ]
        assert compute(f"fma.{spelled} d, a, b, c", *zip(*lanes, strict=True)) == wanted
        kept = [bits & ~minus for bits in wanted[: len(below)]]
        assert kept == [0, 0, *[least if mode in ("rn", "rp") else 0] * 4], mode


def test_observations_just_below_the_least_normal_number():
    """On an H200, a value that rounds to 2**-126 is not flushed. A value that is less than 2**-126 and exact with
    unlimited exponents is flushed."""
    for text in ("mad.rn.ftz.sat.f32", "fma.rn.ftz.f32"):
        assert compute(f"{text} d, a, b, c", [0xB1D5D18A], [0x00800000], [0x00800000]) == [0x00800000]
        assert compute(f"{text} d, a, b, c", [0x00800000], [0x3F7FFFFF], [0]) == [0]


@settings(max_examples=40)
@given(st.data(), st.sampled_from(["f16", "bf16"]))
def test_relu(data, type_):
    check(f"fma.rn.relu.{type_} d, a, b, c", type_, 3, lambda a, b, c: fused(a, b, c, "rn"), data, relu=True)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["f32", "f64"]), st.sampled_from(DIRECTIONS))
def test_quotients(data, type_, mode):
    check(f"div.{mode}.{type_} d, a, b", type_, 2, over, data, mode=mode)
    check(f"rcp.{mode}.{type_} d, a", type_, 1, lambda a: over(Fraction(1), a), data, mode=mode)
    if type_ == "f32":
        check(f"div.{mode}.ftz.f32 d, a, b", type_, 2, over, data, mode=mode, ftz=True)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["f32", "f64"]), st.sampled_from(DIRECTIONS))
def test_square_roots(data, type_, mode):
    lanes = data.draw(column(floats_of(type_)))
    found = compute(f"sqrt.{mode}.{type_} d, a", lanes)
    for bits, root in zip(lanes, found, strict=True):
        value = value_of(bits, type_)
        if isnan(value) or value < 0:
            assert isnan(value_of(root, type_))
        elif value == 0 or isinf(value):
            assert root == bits
        else:
            assert root == bits_of(long_root(value), type_, mode), hex(bits)


def long_root(value: Fraction) -> Fraction:
    """Return the square root with many bits. If the root is inexact, set the last bit, so that the result rounds like
    the exact root."""
    shift = 2 * (200 + max(0, value.denominator.bit_length()))
    whole = value.numerator * (1 << shift) // value.denominator
    root = isqrt(whole)
    exact = Fraction(root * root, 1 << shift) == value
    return Fraction(2 * root + (not exact), 1 << shift // 2 + 1)


@settings(max_examples=40)
@given(st.data(), st.sampled_from(TYPES))
def test_minimum_and_maximum(data, type_):
    def less(a, b):
        return a < b or (a == b and negative(a))

    def extreme(which, of_nan):
        def expected(a, b):
            if isnan(a) or isnan(b):
                return nan if of_nan else (b if isnan(a) else a)
            return (a if less(a, b) else b) if which == "min" else (b if less(a, b) else a)

        return expected

    def magnitude(a):
        return abs(a)

    for which in ("min", "max"):
        check(f"{which}.{type_} d, a, b", type_, 2, extreme(which, False), data)
        if type_ == "f64":
            continue
        check(f"{which}.NaN.{type_} d, a, b", type_, 2, extreme(which, True), data)
        if type_ != "bf16":
            check(f"{which}.ftz.{type_} d, a, b", type_, 2, extreme(which, False), data, ftz=True)

        def xorsign(a, b, which=which):
            found = extreme(which, True)(magnitude(a), magnitude(b))
            return negated(found) if negative(a) != negative(b) and not isnan(found) else found

        check(f"{which}.NaN.xorsign.abs.{type_} d, a, b", type_, 2, xorsign, data)


def test_a_signaling_nan_is_not_a_number_either():
    assert compute("min.f64 d, a, b", [0x7FF0800000000000, 1], [1, 0x7FF0800000000000]) == [1, 1]
    assert compute("max.f32 d, a, b", [0x7F800001, 1], [1, 0x7F800001]) == [1, 1]


@settings(max_examples=60)
@given(st.data(), st.sampled_from(TYPES))
def test_signs(data, type_):
    size = sum(LAYOUT[type_])
    lanes = [bits for bits in data.draw(column(floats_of(type_), least=0)) if not isnan(value_of(bits, type_))]
    assert compute(f"abs.{type_} d, a", lanes) == [bits & (1 << size) - 1 for bits in lanes]
    assert compute(f"neg.{type_} d, a", lanes) == [bits ^ 1 << size for bits in lanes]
    if type_ in ("f32", "f64"):
        signs = data.draw(column(floats_of(type_), least=len(lanes), most=len(lanes)))
        wanted = [bits & (1 << size) - 1 | sign & 1 << size for bits, sign in zip(lanes, signs, strict=True)]
        assert compute(f"copysign.{type_} d, a, b", signs, lanes) == wanted


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["f16x2", "bf16x2"]), st.sampled_from(["add", "mul", "fma.rn", "max", "neg"]))
def test_pairs_are_two_halves(data, type_, name):
    count = {"fma.rn": 3, "neg": 1}.get(name, 2)
    operands = ", ".join("dabc"[: count + 1])
    half = type_.removesuffix("x2")
    lanes = data.draw(rows(*[floats_of(half)] * 2 * count, most=6))
    columns = list(zip(*lanes, strict=True))
    low, high = (compute(f"{name}.{half} {operands}", *columns[at::2]) for at in (0, 1))
    words = [[b << 16 | a for a, b in zip(columns[at], columns[at + 1], strict=True)] for at in range(0, 2 * count, 2)]
    found = compute(f"{name}.{type_} {operands}", *words)
    assert found == [b << 16 | a for a, b in zip(low, high, strict=True)]


@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_testp(type_):
    exponent_bits, fraction_bits = LAYOUT[type_]
    top = (1 << exponent_bits) - 1 << fraction_bits
    zero, least, normal, infinite, number = 0, 1, 1 << fraction_bits, top, top + 1
    given = [zero, least, normal, infinite, number, 1 << exponent_bits + fraction_bits]
    wanted = {
        "finite": [1, 1, 1, 0, 0, 1], "infinite": [0, 0, 0, 1, 0, 0], "number": [1, 1, 1, 1, 0, 1],
        "notanumber": [0, 0, 0, 0, 1, 0], "normal": [1, 0, 1, 0, 0, 1], "subnormal": [0, 1, 0, 0, 0, 0],
    }  # fmt: skip
    assert {name: compute(f"testp.{name}.{type_} d, a", given) for name in wanted} == wanted


def test_special_values_of_every_pair():
    """For all pairs of special f32 values, add and mul equal NumPy's results, with the NaN of a GPU."""
    special = np.uint32([0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00001])
    a, b = np.array(list(product(np.concatenate([special, special | 1 << 31]), repeat=2)), np.uint32).T.copy()
    for name, ufunc in (("add", np.add), ("mul", np.multiply)):
        with np.errstate(all="ignore"):
            wanted = ufunc(a.view(np.float32), b.view(np.float32))
        wanted = np.where(np.isnan(wanted), np.uint32(0x7FFFFFFF), wanted.view(np.uint32))
        assert compute(f"{name}.f32 d, a, b", a.tolist(), b.tolist()) == wanted.tolist()


@pytest.mark.parametrize(("text", "wide"), [("add.rz.f32.f16", "add.rz.f32"), ("sub.f32.bf16", "sub.f32")])
def test_mixed_precision_sums_widen_the_first_source(text, wide):
    """A mixed-precision sum widens the first source (PTX ISA, "Mixed Precision Floating Point Instructions"; not
    verified on hardware)."""
    values = np.random.default_rng(0).normal(size=500)
    other = (values[::-1] * 1e3).astype(np.float32).view(np.uint32)
    if text.endswith(".f16"):
        narrow = values.astype(np.float16)
        bits, widened = narrow.view(np.uint16), narrow.astype(np.float32).view(np.uint32)
    else:
        bits = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        widened = bits.astype(np.uint32) << 16
    assert compute(f"{text} d, a, b", bits, other) == compute(f"{wide} d, a, b", widened, other)


def test_mixed_precision_products_are_fused():
    a, c = np.array([1 + 2**-10], np.float16).view(np.uint16), np.array([-1], np.float32).view(np.uint32)
    (found,) = compute("fma.rn.f32.f16 d, a, b, c", a, a, c)
    assert np.uint32(found).view(np.float32) == 2**-9 + 2**-20


def test_mixed_precision_has_no_ftz():
    assert lookup(instruction("add.ftz.f32.f16 d, a, b")) is None
