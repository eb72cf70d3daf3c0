"""Tests of comparisons, selections and approximations of the simulator, and of instructions that it does not
support."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_tma.simulate._pure import lookup
from tests.support.pure_instructions import compute, entry_of, floats_of, instruction, rows, value_of

TYPES = ("f16", "bf16", "f32", "f64")

RELATIONS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def relation(name, a, b) -> bool:
    unordered = isnan(a) or isnan(b)
    if name in ("num", "nan"):
        return unordered == (name == "nan")
    return name.endswith("u") if unordered else RELATIONS[name.removesuffix("u")](a, b)


FLOAT_RELATIONS = [*RELATIONS, *(f"{name}u" for name in RELATIONS), "num", "nan"]


@settings(max_examples=60)
@given(st.data(), st.sampled_from(TYPES), st.sampled_from(FLOAT_RELATIONS), st.sampled_from(["and", "or", "xor"]))
def test_comparisons(data, type_, name, operation):
    lanes = data.draw(rows(floats_of(type_), floats_of(type_), lambda random: random.getrandbits(1)))
    a, b, c = zip(*lanes, strict=True)
    wanted = [relation(name, value_of(x, type_), value_of(y, type_)) for x, y, _ in lanes]
    assert compute(f"setp.{name}.{type_} p, a, b", a, b) == wanted
    combine = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__}[operation]
    both = compute(f"setp.{name}.{operation}.{type_} p|q, a, b, c", a, b, c)
    assert both == [
        [combine(int(found), int(z)) for found, z in zip(wanted, c, strict=True)],
        [combine(int(not found), int(z)) for found, z in zip(wanted, c, strict=True)],
    ]
    assert compute(f"set.{name}.u32.{type_} d, a, b", a, b) == [0xFFFFFFFF * found for found in wanted]
    if type_ == "f16":
        words = [y << 16 | x for x, y in zip(a, b, strict=True)]
        flipped = [x << 16 | y for x, y in zip(a, b, strict=True)]
        other = [relation(name, value_of(y, type_), value_of(x, type_)) for x, y, _ in lanes]
        assert compute(f"setp.{name}.f16x2 p|q, a, b", words, flipped) == [wanted, other]
        assert compute(f"set.{name}.f16x2.f16x2 d, a, b", words, flipped) == [
            0x3C00 * low | 0x3C00_0000 * high for low, high in zip(wanted, other, strict=True)
        ]


def test_selection():
    assert compute("selp.b32 d, a, b, p", [1, 2], [3, 4], [1, 0]) == [1, 4]
    assert compute("slct.b32.s32 d, a, b, c", [1, 2, 5], [3, 4, 6], [0, 0xFFFFFFFF, 7]) == [1, 4, 5]
    special = [0x80000000, 0x7FC00000, 0x80000001, 1]
    assert compute("slct.b32.f32 d, a, b, c", [1] * 4, [2] * 4, special) == [1, 2, 2, 1]
    assert compute("slct.ftz.b32.f32 d, a, b, c", [1] * 4, [2] * 4, special) == [1, 2, 1, 1]


# ---- approximations ----

# The table contains the maximum errors in the PTX ISA, and their ranges. The errors of sin and cos are absolute, and
# other errors are relative.
APPROXIMATE = {
    "ex2": (-126, 127, np.exp2, 2**-22.5),
    "lg2": (0.5, 2, np.log2, None),
    "rcp": (1e-30, 1e30, lambda x: 1 / x, 2**-23),
    "rsqrt": (1e-30, 1e30, lambda x: x**-0.5, 2**-22.9),
    "sqrt": (1e-30, 1e30, np.sqrt, 2**-23),
    "sin": (-3.1, 3.1, np.sin, None),
    "cos": (-3.1, 3.1, np.cos, None),
    "tanh": (-8, 8, np.tanh, 2**-10.987),
}


@pytest.mark.parametrize("name", APPROXIMATE)
@pytest.mark.parametrize("ftz", [False, True])
def test_approximations_are_within_their_error(name, ftz):
    low, high, function, error = APPROXIMATE[name]
    if ftz and name == "tanh":
        pytest.skip("tanh.approx has no .ftz")
    values = np.linspace(low, high, 1001, dtype=np.float32)
    text = f"{name}.approx{'.ftz' * ftz}.f32 d, a"
    assert entry_of(text).approximate
    found = np.array(compute(text, values.view(np.uint32).tolist()), np.uint32).view(np.float32).astype(np.float64)
    wanted = function(values.astype(np.float64))
    bound = np.abs(wanted) * error if error else 2**-20.5
    assert (np.abs(found - wanted) <= bound).all()


@pytest.mark.parametrize(
    ("text", "given", "wanted"),
    [
        ("ex2.approx.ftz.f32 d, a", 0xFF800000, 0),
        # The value 2 ** -128.5 is subnormal.
        ("ex2.approx.ftz.f32 d, a", 0xC3008000, 0),
        ("ex2.approx.f32 d, a", 0x00000000, 0x3F800000),
        ("lg2.approx.f32 d, a", 0x80000000, 0xFF800000),
        ("lg2.approx.f32 d, a", 0xBF800000, 0x7FFFFFFF),
        ("rcp.approx.f32 d, a", 0x80000000, 0xFF800000),
        ("rcp.approx.ftz.f32 d, a", 0x80000001, 0xFF800000),
        ("rsqrt.approx.f32 d, a", 0x7F800000, 0),
        ("sin.approx.f32 d, a", 0x7F800000, 0x7FFFFFFF),
        ("tanh.approx.f32 d, a", 0xFF800000, 0xBF800000),
    ],
)
def test_approximations_where_they_are_exact(text, given, wanted):
    assert compute(text, [given]) == [wanted]


@pytest.mark.parametrize(("name", "function"), [("rcp", lambda x: 1 / x), ("rsqrt", lambda x: x**-0.5)])
def test_upper_halves_of_f64(name, function):
    """The instructions rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 read and return 20 bits of mantissa (PTX ISA)."""
    values = np.geomspace(1e-200, 1e200, 501)
    found = np.array(compute(f"{name}.approx.ftz.f64 d, a", values.view(np.uint64).tolist()), np.uint64)
    assert (found & np.uint64(0xFFFFFFFF) == 0).all()
    assert (np.abs(found.view(np.float64) / function(values) - 1) < 2**-19).all()
    special = {0: 0x7FF << 52, 1: 0x7FF << 52, 0x7FF << 52: 0}
    assert compute(f"{name}.approx.ftz.f64 d, a", [*special]) == [*special.values()]


def test_division_by_a_huge_number_is_zero():
    """The result of div.approx with a divisor beyond 2 ** 126 is zero (PTX ISA, "div")."""
    huge, infinite, one = 0x7F000000, 0x7F800000, 0x3F800000
    assert compute("div.approx.f32 d, a, b", [one, infinite], [huge, huge]) == [0, 0x7FFFFFFF]
    assert compute("div.full.f32 d, a, b", [one], [huge]) == [0x00400000]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "add.rn.sat.f64 d, a, b",
            "add.rz.f16 d, a, b",
            "add.s8 d, a, b",
            "add.rs.f32 d, a, b",
            "add.sat.f32x2 d, a, b",
        ),
        *("fma.f32 d, a, b, c", "fma.rn.oob.f16 d, a, b, c", "min.f64 d, a, b, c", "min.sat.s32 d, a, b"),
        *(
            "ex2.f32 d, a",
            "tanh.approx.ftz.f32 d, a",
            "rcp.approx.f64 d, a",
            "nonsense.f32 d, a",
            "set.lt.f32.f16 d, a, b",
            "sub.u16x2 d, a, b",
        ),
        *("vadd.s32.s32.s32 d, a, b", "mul.wide.s64 d, a, b", "shl.u32 d, a, b", "setp.lo.s32 p, a, b"),
        *("bmsk.b32 d, a, b", "addc.u16 d, a, b", "mov.b64 {a, b, c}, d"),
    ],
)
def test_unknown_facts_are_not_guessed(text):
    assert lookup(instruction(text)) is None
