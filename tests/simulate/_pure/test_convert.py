"""Tests of conversion instructions. The expected results are those of Python's integers, of exact fractions, and of
ml_dtypes."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import ceil, floor, isinf, isnan, trunc

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_tma.simulate._ptx import Immediate
from cuda_tma.simulate._pure import DTYPES, immediate, lookup
from tests.simulate._pure._integer import fitted, number, width, wrapped
from tests.support.pure_instructions import (
    LAYOUT,
    bits_of,
    column,
    compute,
    floats_of,
    flushed,
    flushed_result,
    instruction,
    integers_of,
    value_of,
)

INTEGERS = [f"{kind}{bits}" for kind in "us" for bits in (8, 16, 32, 64)]
FLOATS = ("f16", "bf16", "f32", "f64")
PAIRS = [pair for pair in product(FLOATS, FLOATS) if pair[0] != pair[1]]
MODES = ("rn", "rz", "rm", "rp")
# The function round() of Python rounds a half to the even number, like .rni.
INTEGRAL = {"rni": round, "rzi": trunc, "rmi": floor, "rpi": ceil}


def is_nan(value) -> bool:
    return isinstance(value, float) and isnan(value)


def is_inf(value) -> bool:
    return isinstance(value, float) and isinf(value)


def lanes(data, type_: str) -> list[int]:
    return data.draw(column(floats_of(type_) if type_ in LAYOUT else integers_of(type_), most=16))


@settings(max_examples=120)
@given(st.data(), st.sampled_from(INTEGERS), st.sampled_from(INTEGERS))
def test_integers(data, result, source):
    given_ = lanes(data, source)
    assert compute(f"cvt.{result}.{source} d, a", given_) == [wrapped(number(x, source), result) for x in given_]
    assert compute(f"cvt.sat.{result}.{source} d, a", given_) == [fitted(number(x, source), result) for x in given_]


@settings(max_examples=200)
@given(st.data(), st.sampled_from(INTEGERS), st.sampled_from(FLOATS), st.sampled_from(MODES))
def test_integers_to_floats(data, source, result, mode):
    given_ = lanes(data, source)

    def near(random):
        place = random.randrange(width(source))
        return (1 << place) + (1 << place >> 24) + 1 & (1 << width(source)) - 1

    given_ += data.draw(column(near, least=0, most=8))
    expected = [bits_of(Fraction(number(x, source)), result, mode) for x in given_]
    assert compute(f"cvt.{mode}.{result}.{source} d, a", given_) == expected


@settings(max_examples=200)
@given(st.data(), st.sampled_from(FLOATS), st.sampled_from(INTEGERS), st.sampled_from([*INTEGRAL]))
def test_floats_to_integers(data, source, result, mode):
    """A conversion from a float to an integer clamps the result. The section "cvt" of the PTX ISA defines the result
    for NaN."""

    def expected(bits):
        value = value_of(bits, source)
        if is_nan(value):
            return 1 << width(result) - 1 if source == "f64" or result[1:] == "64" else 0
        if is_inf(value):
            return fitted((1 if value > 0 else -1) << 70, result)
        return fitted(INTEGRAL[mode](Fraction(value)), result)

    given_ = lanes(data, source)
    fraction_bits = LAYOUT[source][1]
    bias = (1 << LAYOUT[source][0] - 1) - 1

    def half(random):
        exponent = min(bias + random.randint(0, 12), 2 * bias)
        return exponent << fraction_bits | random.randint(0, 7) << fraction_bits - 3

    given_ += data.draw(column(half, least=0, most=8))
    assert compute(f"cvt.{mode}.{result}.{source} d, a", given_) == [expected(x) for x in given_]


@settings(max_examples=200)
@given(st.data(), st.sampled_from(PAIRS), st.sampled_from(MODES), st.booleans())
def test_floats_to_floats(data, types, mode, ftz):
    result, source = types
    narrower = width_of(result) <= width_of(source)
    mode = mode if narrower else ""
    ftz = ftz and "f32" in types and "bf16" not in types
    given_ = lanes(data, source)

    def expected(bits):
        value = value_of(bits, source)
        if ftz and result not in ("f16", "bf16"):
            value = flushed_result(value, "f32", mode) if source == "f64" else flushed(value, "f32")
        if is_nan(value) and result == "f64":
            return None
        return bits_of(value, result, mode or "rn")

    found = compute(f"cvt{'.' * bool(mode)}{mode}{'.ftz' * ftz}.{result}.{source} d, a", given_)
    for bits, one in zip(given_, found, strict=True):
        wanted = expected(bits)
        assert is_nan(value_of(one, result)) if wanted is None else one == wanted, hex(bits)


def width_of(type_: str) -> int:
    return 1 + sum(LAYOUT[type_])


@settings(max_examples=100)
@given(st.data(), st.sampled_from(["f16", "f32", "f64"]), st.sampled_from([*INTEGRAL]))
def test_rounding_to_integers(data, type_, mode):
    def expected(bits):
        value = value_of(bits, type_)
        if is_nan(value):
            return None
        if is_inf(value) or value == 0:
            return bits
        whole = INTEGRAL[mode](value)
        return bits_of(Fraction(whole) if whole or value > 0 else -0.0, type_)

    given_ = lanes(data, type_)
    found = compute(f"cvt.{mode}.{type_}.{type_} d, a", given_)
    for bits, one in zip(given_, found, strict=True):
        assert is_nan(value_of(one, type_)) if expected(bits) is None else one == expected(bits), hex(bits)


def test_satfinite():
    """With .satfinite, values beyond the range become the largest value, and NaN remains NaN."""
    given_ = [0x47800000, 0xFF800000, 0x7FC00000, 0x3F800000]
    assert compute("cvt.rn.satfinite.f16.f32 d, a", given_) == [0x7BFF, 0xFBFF, 0x7FFF, 0x3C00]
    assert compute("cvt.rn.satfinite.relu.f16.f32 d, a", given_) == [0x7BFF, 0, 0x7FFF, 0x3C00]
    assert compute("cvt.rn.satfinite.bf16x2.e5m2x2 d, a", [0x7CFC]) == [0x7F7FFF7F]
    assert compute("cvt.rn.satfinite.relu.bf16x2.e5m2x2 d, a", [0x7CFC]) == [0x7F7F0000]
    assert compute("cvt.rn.satfinite.bf16.f32 d, a", [0x7F7FFFFF, 0xFF800000]) == [0x7F7F, 0xFF7F]
    assert compute("cvt.rz.satfinite.bf16x2.f32 d, a, b", [0x7F800000], [0x3F800000]) == [0x7F7F3F80]
    assert compute("cvt.rna.satfinite.tf32.f32 d, a", [0x7F7FFFFF, 0xFF800000]) == [0x7F7FE000, 0xFF7FE000]


def test_saturation():
    given_ = [0x3F000000, 0x40000000, 0xBF800000, 0x80000000, 0x7FC00000, 0x7F800000]
    assert compute("cvt.sat.f32.f32 d, a", given_) == [0x3F000000, 0x3F800000, 0, 0, 0, 0x3F800000]
    assert compute("cvt.rn.sat.f16.f32 d, a", given_) == [0x3800, 0x3C00, 0, 0, 0, 0x3C00]


@settings(max_examples=100)
@given(st.data(), st.sampled_from(["f16", "bf16"]), st.sampled_from(["rn", "rz"]), st.booleans())
def test_pairs_of_halves(data, type_, mode, relu):
    def expected(bits):
        value = value_of(bits, "f32")
        return 0 if relu and not is_nan(value) and str(value)[0] == "-" else bits_of(value, type_, mode)

    a = lanes(data, "f32")
    b = data.draw(column(floats_of("f32"), least=len(a), most=len(a)))
    wanted = [expected(x) << 16 | expected(y) for x, y in zip(a, b, strict=True)]
    assert compute(f"cvt.{mode}{'.relu' * relu}.{type_}x2.f32 d, a, b", a, b) == wanted
    assert compute(f"cvt.{mode}{'.relu' * relu}.{type_}.f32 d, a", a) == [expected(x) for x in a]


@settings(max_examples=100)
@given(st.data(), st.sampled_from(["e4m3", "e5m2"]), st.booleans())
def test_pairs_of_bytes(data, type_, relu):
    def expected(bits, source):
        value = value_of(bits, source)
        if is_nan(value):
            return 0x7F
        if relu and str(value)[0] == "-":
            return 0
        largest = {"e4m3": 0x7E, "e5m2": 0x7B}[type_]
        if is_inf(value):
            return largest | (value < 0) << 7
        found = bits_of(value, type_)
        return found & 0x80 | min(found & 0x7F, largest)

    a = lanes(data, "f32")
    near = data.draw(column(lambda random: random.randint(0x3A000000, 0x48000000), least=len(a), most=len(a)))
    wanted = [expected(x, "f32") << 8 | expected(y, "f32") for x, y in zip(a, near, strict=True)]
    assert compute(f"cvt.rn.satfinite{'.relu' * relu}.{type_}x2.f32 d, a, b", a, near) == wanted
    halves = data.draw(column(floats_of("f16"), least=2, most=2))
    word = halves[0] << 16 | halves[1]
    wanted = [expected(halves[0], "f16") << 8 | expected(halves[1], "f16")]
    assert compute(f"cvt.rn.satfinite{'.relu' * relu}.{type_}x2.f16x2 d, a", [word]) == wanted


@pytest.mark.parametrize(("name", "dtype"), [("e4m3", ml_dtypes.float8_e4m3fn), ("e5m2", ml_dtypes.float8_e5m2)])
def test_every_byte(name, dtype):
    codes = list(range(0, 65536, 257))
    expected = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float16).view(np.uint16).astype(np.uint32)
    expected = np.where(np.isnan(expected.astype(np.uint16).view(np.float16)), 0x7FFF, expected)
    assert compute(f"cvt.rn.f16x2.{name}x2 d, a", codes) == (expected << 16 | expected).tolist()
    expected = np.arange(256, dtype=np.uint8).view(dtype).astype(ml_dtypes.bfloat16)
    bits = np.where(np.isnan(expected.astype(np.float32)), 0x7FFF, expected.view(np.uint16)).astype(np.uint32)
    assert compute(f"cvt.rn.bf16x2.{name}x2 d, a", codes) == (bits << 16 | bits).tolist()


def test_halves_without_a_rounding_modifier():
    """Triton converts fp8 to bf16 through f16 with this form of cvt, and ptxas emits F2F as for .rn."""
    given_ = [0x3C01, 0x3C07, 0x7C00, 0x7E00, 0x8001]
    assert compute("cvt.bf16.f16 d, a", given_) == compute("cvt.rn.bf16.f16 d, a", given_)
    assert compute("cvt.bf16.f16 d, a", given_) == [0x3F80, 0x3F81, 0x7F80, 0x7FFF, 0xB380]
    given_ = [0x3F81, 0x4780, 0x3300, 0xFF80]
    assert compute("cvt.f16.bf16 d, a", given_) == [0x3C08, 0x7C00, 0x0000, 0xFC00]


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["rna", "rn", "rz"]))
def test_tf32(data, mode):
    def expected(bits):
        value = value_of(bits, "f32")
        if mode == "rna" and bits & 0x7FFFF000 == 0x7F800000:
            return bits & 0xFF800000
        nan = 0x7FC00000 if mode == "rna" else 0x7FFFFFFF
        return nan if is_nan(value) else bits_of(value, "tf32", mode) << 13

    given_ = lanes(data, "f32") + data.draw(column(lambda random: random.randint(0, 1 << 19) << 12, least=0, most=8))
    assert compute(f"cvt.{mode}.tf32.f32 d, a", given_) == [expected(x) for x in given_]


def test_tf32_of_a_nan():
    """The expected result of the conversion of a NaN to tf32 was recorded on an H200."""
    assert compute("cvt.rna.tf32.f32 d, a", [0x7FC00000]) == compute("cvt.rna.satfinite.tf32.f32 d, a", [0x7FC00000])
    assert compute("cvt.rna.tf32.f32 d, a", [0x7FC00000]) == [0x7FC00000]


def test_packed_integers():
    """In the result of cvt.pack, operand b is in the lowest bits, followed by a and by the low part of c (PTX ISA,
    "cvt.pack")."""
    a, b, c = [300, 0xFFFFFFFF], [5, 0xFFFFFF00], [0xABCD, 0x1234]
    assert compute("cvt.pack.sat.u8.s32.b32 d, a, b, c", a, b, c) == [0xABCDFF05, 0x12340000]
    assert compute("cvt.pack.sat.s8.s32.b32 d, a, b, c", a, b, c) == [0xABCD7F05, 0x1234FF80]
    assert compute("cvt.pack.sat.u16.s32 d, a, b", [70000, 1], [0xFFFFFFFF, 2]) == [0xFFFF0000, 0x00010002]
    assert compute("cvt.pack.sat.s4.s32.b32 d, a, b, c", [9], [0xFFFFFFFE], [0xFF]) == [0xFF7E]


@pytest.mark.parametrize(
    "text",
    [
        *("cvt.f32.f64 d, a", "cvt.rn.f64.f32 d, a", "cvt.f16.f32 d, a", "cvt.s32.f32 d, a", "cvt.f32.s32 d, a"),
        *("cvt.rn.e4m3x2.f32 d, a, b", "cvt.bf16x2.e4m3x2 d, a", "cvt.rs.f16x2.f32 d, a, b, c"),
        *("cvt.rs.satfinite.e2m1x4.f32 d, a, b", "cvt.rn.tf32.f16 d, a", "cvt.rn.bf16x2.f16x2 d, a"),
    ],
)
def test_unknown_facts_are_not_guessed(text):
    assert lookup(instruction(text)) is None


def test_numbers_in_the_text():
    """A literal number in a PTX instruction has the data type of its operand."""
    cases = [
        (Immediate(-1), "u32", 0xFFFFFFFF), (Immediate(1 << 40), "s16", 0), (Immediate(0x80), "s8", -128),
        (Immediate(0x3F800000, "f32"), "f32", 1.0), (Immediate(0x3F800000, "f32"), "f64", 1.0),
        (Immediate(0x3F800000, "f32"), "b32", 0x3F800000), (Immediate(0x3FF8000000000000, "f64"), "f32", 1.5),
        (Immediate(1), "pred", True), (Immediate(2), "f32", 2.0),
    ]  # fmt: skip
    for operand, type_, expected in cases:
        found = immediate(operand, DTYPES[type_])
        assert found == expected and found.dtype == DTYPES[type_], (operand, type_)
    with pytest.raises(ValueError, match="f32 has 4 bytes, but the operand has 8"):
        immediate(Immediate(0, "f32"), DTYPES["b64"])
