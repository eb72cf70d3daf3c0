"""Functions that run an instruction on arrays of lanes, and exact references with Python's integers and fractions."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import inf, isinf, isnan, nan
from random import Random

import numpy as np
from hypothesis import strategies as st

from cuda_tma.simulate._ptx import TYPE_BYTES, parse
from cuda_tma.simulate._pure import Pure, lookup


@cache
def instruction(text: str):
    """Return the instruction of a text such as ``add.s32 d, a, b``, whose operands are arbitrary names or
    immediates."""
    names = sorted(set(re.findall(r"\b[a-z]\d*\b", text.partition(" ")[2])))
    declared = f".reg .b64 {', '.join(names)};" if names else ""
    (found,) = parse(f".entry k() {{ {declared} {text}; }}").functions["k"].instructions
    return found


def lookup_of(text: str) -> Pure | None:
    return lookup(instruction(text))


def entry_of(text: str) -> Pure:
    found = lookup_of(text)
    assert found is not None, f"{text} is not in the table"
    return found


def compute(text: str, *sources):
    """Return an instruction's results on given lanes. The arguments and the results are bits as integers."""
    entry = entry_of(text)
    lanes = [
        np.array(source, f"u{dtype.itemsize}").view(dtype) for source, dtype in zip(sources, entry.sources, strict=True)
    ]
    with np.errstate(all="ignore"):
        found = entry.compute(*lanes)
    results = found if isinstance(found, tuple) else (found,)
    dtypes = (*entry.results, *[np.dtype(bool)] * entry.carry_out)
    listed = [as_bits(result, dtype) for result, dtype in zip(results, dtypes, strict=True)]
    return listed if isinstance(found, tuple) else listed[0]


def as_bits(result, dtype) -> list[int]:
    assert result.dtype.itemsize == dtype.itemsize and (result.dtype.kind == "f") == (dtype.kind == "f"), (
        result.dtype,
        dtype,
    )
    return np.ascontiguousarray(result).view(f"u{dtype.itemsize}").tolist()


def signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> width - 1 else value


# ---- lanes ----

# A Draw returns one value of a lane.
Draw = Callable[[Random], int]
SEEDS = st.integers(0, (1 << 64) - 1)


def rows(*draws: Draw, least: int = 1, most: int = 12) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Return a strategy for lanes with one value for each draw. Equal draws often return equal values.

    Hypothesis draws only a seed, because a choice by Hypothesis takes longer than the instruction.
    """

    def lane(random: Random) -> tuple[int, ...]:
        values: list[int] = []
        for place, draw in enumerate(draws):
            repeated = place and draws[place - 1] is draw and random.random() < 1 / 8
            values.append(values[-1] if repeated else draw(random))
        return tuple(values)

    def lanes(seed: int) -> list[tuple[int, ...]]:
        random = Random(seed)
        return [lane(random) for _ in range(random.randint(least, most))]

    return SEEDS.map(lanes)


def column(draw: Draw, *, least: int = 1, most: int = 12) -> st.SearchStrategy[list[int]]:
    """Return a strategy for the lanes of one operand."""

    return rows(draw, least=least, most=most).map(lambda lanes: [value for (value,) in lanes])


@cache
def integers_of(type_: str) -> Draw:
    """Draw bits of an integer type, which are often values at a limit of the type."""
    width = 8 * TYPE_BYTES[type_]
    ends = [0, 1, 2, (1 << width) - 1, 1 << width - 1, (1 << width - 1) - 1, (1 << width // 2) - 1, 1 << width // 2]
    return lambda random: random.choice(ends) if random.random() < 1 / 2 else random.getrandbits(width)


# ---- the conversion of floating-point bits to fractions, and back with one rounding ----

LAYOUT = {
    "f16": (5, 10),
    "bf16": (8, 7),
    "f32": (8, 23),
    "f64": (11, 52),
    "e4m3": (4, 3),
    "e5m2": (5, 2),
    "tf32": (8, 10),
}


def value_of(bits: int, type_: str) -> Fraction | float:
    """Return the value of floating-point bits as a fraction, an infinity, NaN, or the float -0.0."""
    exponent_bits, fraction_bits = LAYOUT[type_]
    bias = (1 << exponent_bits - 1) - 1
    negative, exponent = bits >> exponent_bits + fraction_bits & 1, bits >> fraction_bits & (1 << exponent_bits) - 1
    fraction = bits & (1 << fraction_bits) - 1
    if type_ == "e4m3":
        if exponent == 15 and fraction == 7:
            return nan
    elif exponent == (1 << exponent_bits) - 1:
        return nan if fraction else -inf if negative else inf
    if not exponent and not fraction:
        return -0.0 if negative else Fraction(0)
    significand = fraction + ((1 << fraction_bits) if exponent else 0)
    place = max(exponent, 1) - bias - fraction_bits
    value = Fraction(significand << place) if place >= 0 else Fraction(significand, 1 << -place)
    return -value if negative else value


def bits_of(value: Fraction | float, type_: str, mode: str = "rn") -> int:
    """Return the bits of a value that is rounded once, with the NaN of a GPU. The values -0.0 and infinity are
    floats."""
    exponent_bits, fraction_bits = LAYOUT[type_]
    width = exponent_bits + fraction_bits
    bias = (1 << exponent_bits - 1) - 1
    if isinstance(value, float):
        if isnan(value):
            return {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "e4m3": 0x7F, "e5m2": 0x7F}[type_]
        assert isinf(value) or value == 0
        infinity = (1 << exponent_bits) - 1 << fraction_bits
        return (str(value)[0] == "-") << width | (infinity if isinf(value) else 0)
    size, negative = abs(value), value < 0
    largest = {"e4m3": 0x7E}.get(type_, ((1 << exponent_bits) - 1 << fraction_bits) - 1)
    exponent = max(_floor_log2(size), 1 - bias) if size else 1 - bias
    place = exponent - fraction_bits
    unit = size.denominator << max(place, 0)
    whole, rest = divmod(size.numerator << max(-place, 0), unit)
    if mode in ("rn", "rna"):
        up = rest * 2 > unit or (rest * 2 == unit and (mode == "rna" or whole % 2 == 1))
    else:
        up = rest > 0 and mode == ("rm" if negative else "rp")
    whole += up
    magnitude = whole + (exponent + bias - 1 << fraction_bits)
    if magnitude > largest:
        magnitude = largest + (mode in ("rn", "rna") or mode == ("rm" if negative else "rp"))
    return negative << width | magnitude


def _floor_log2(value: Fraction) -> int:
    found = value.numerator.bit_length() - value.denominator.bit_length()
    return found if value.denominator << max(found, 0) <= value.numerator << max(-found, 0) else found - 1


@cache
def _least_normal(type_: str) -> Fraction:
    return Fraction(2) ** (2 - (1 << LAYOUT[type_][0] - 1))


def flushed(value: Fraction | float, type_: str) -> Fraction | float:
    least = _least_normal(type_)
    if isinstance(value, float) or not value or abs(value) >= least:
        return value
    return -0.0 if value < 0 else Fraction(0)


def flushed_result(value: Fraction | float, type_: str, mode: str) -> Fraction | float:
    """Flush a subnormal result to zero, unless the result would round to a normal number with unlimited exponents."""
    least = _least_normal(type_)
    if isinstance(value, float) or not value or abs(value) >= least:
        return value
    unit = least / (1 << LAYOUT[type_][1] + 1)
    # The variable contains the distance from the value to the smallest normal number, in units of the last place.
    rest = (least - abs(value)) / unit
    up = rest < 1 if mode == ("rm" if value < 0 else "rp") else mode == "rn" and rest <= Fraction(1, 2)
    return value if up else flushed(value, type_)


@cache
def floats_of(type_: str) -> Draw:
    """Draw bits of a floating-point format. Many values have few ones in the significand and similar exponents, so that
    sums are ties."""
    exponent_bits, fraction_bits = LAYOUT[type_]
    bias, top, ones = (1 << exponent_bits - 1) - 1, (1 << exponent_bits) - 1, (1 << fraction_bits) - 1
    exponents = [0, 0, 1, 2, top - 2, top - 1, top, bias]

    def fraction(random: Random) -> int:
        single, many = 1 << random.randrange(fraction_bits), ones + 1 - (1 << random.randint(0, fraction_bits))
        return random.choice((0, 1, ones, single, many, single + many & ones))

    def exponent(random: Random) -> int:
        if random.random() < 1 / 3:
            return random.choice(exponents)
        return min(max(random.randint(-fraction_bits - 2, fraction_bits + 2) + bias, 0), top)

    def draw(random: Random) -> int:
        if random.random() < 1 / 3:
            return random.getrandbits(1 + exponent_bits + fraction_bits)
        return (random.getrandbits(1) << exponent_bits | exponent(random)) << fraction_bits | fraction(random)

    return draw
