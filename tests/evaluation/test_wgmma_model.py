"""Tests of the model of the tensor cores' sums, which is compared with recordings of hardware."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "evaluation" / "recordings"))
import replay_wgmma
from record_wgmma import operands
from wgmma_cases import FORMATS, FORMS, Form, blocks
from wgmma_model import Adder, adder_of, multiply, numbers, rounded

from tests.evaluation._wgmma_model import encoded

RECORDED = replay_wgmma.read(Path(__file__).parents[1] / "data" / "wgmma_sm90.npz")
FLOATING = [form for form in FORMS if form.sums != "s32"]
NUMPY = {"f16": "float16", "bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}


def value(found) -> np.ndarray:
    return np.where(found.negative, -1.0, 1.0) * found.significand * 2.0**found.last


@pytest.mark.parametrize("name", NUMPY)
def test_numbers(name):
    """For every bit pattern of a type, the model's value equals the value of ml_dtypes."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    format = FORMATS[name]
    bits = np.arange(2 ** (8 * format.itemsize), dtype=f"u{format.itemsize}")
    found = numbers(format, bits)
    with np.errstate(invalid="ignore"):
        expected = bits.view(NUMPY[name] if name == "f16" else getattr(ml_dtypes, NUMPY[name])).astype(np.float64)
    assert np.array_equal(found.nan, np.isnan(expected))
    assert np.array_equal(found.infinite, np.isinf(expected))
    finite = np.isfinite(expected)
    assert np.array_equal(value(found)[finite], expected[finite])
    assert np.array_equal(np.signbit(value(found))[finite], np.signbit(expected)[finite])


def test_padding_is_not_part_of_tf32():
    bits = np.float32([1.5, -3.0, 2**-126]).view(np.uint32)
    assert value(numbers(FORMATS["tf32"], bits | 0x1FFF)).tolist() == [1.5, -3.0, 2**-126]


@pytest.mark.parametrize(("name", "dtype"), [("f32", np.float32), ("f16", np.float16)])
def test_rounded_to_nearest(name, dtype):
    """The model's rounding agrees with NumPy's, including subnormals and overflow."""
    rng = np.random.default_rng(1)
    whole = rng.integers(-(2**40), 2**40, 20_000) >> rng.integers(0, 40, 20_000)
    last = rng.integers(*((-190, 100) if name == "f32" else (-60, 5)), 20_000)
    with np.errstate(over="ignore"):
        expected = np.ldexp(whole.astype(float), last).astype(dtype)
    format = FORMATS[name]
    found = rounded(format, whole, last, format.mantissa_bits, nearest=True)
    assert np.array_equal(found, expected.view(f"u{format.itemsize}") & np.where(whole == 0, 0, 0xFFFFFFFF))


def test_rounded_toward_zero():
    """A number that is rounded toward zero stays the same, or becomes the next number of smaller magnitude. In a type
    with fewer bits, the low bits are zeros."""
    whole, last = np.array([2**24 + 1, -(2**24 + 1), 2**24 + 2, 2**30 - 1]), np.zeros(4, np.int64)
    bits = rounded(FORMATS["f32"], whole, last, 23, nearest=False)
    assert bits.view(np.float32).tolist() == [2**24, -(2**24), 2**24 + 2, 2**30 - 64]
    assert rounded(FORMATS["f32"], whole, last, 13, nearest=False).view(np.float32).tolist() == [
        2**24, -(2**24), 2**24, 2**30 - 2**16
    ]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_small_integers_are_exact(form):
    rng = np.random.default_rng(2)
    low = 0 if "u8" in (form.a, form.b) else -4
    a, b = (rng.integers(low, 5, (rows, form.k)) for rows in (64, 8))
    c = rng.integers(-100, 101, (64, 8))
    sums = c.astype(np.int32).view(np.uint32) if form.sums == "s32" else encoded(form.sums, c)
    whole = a @ b.T + c
    expected = whole.astype(np.int32).view(np.uint32) if form.sums == "s32" else encoded(form.sums, whole)
    for instruction in ("wgmma", "mma"):
        found = multiply(form, encoded(form.a, a), encoded(form.b, b), sums, instruction)
        assert np.array_equal(found, expected)


def test_integers_wrap_or_stop():
    ones = np.ones((1, 32), np.uint8)
    most = np.full((1, 1), 2**31 - 2, np.uint32)
    assert multiply(Form("s8", "s8", "s32"), ones, ones, most).item() == 2**31 + 30
    assert multiply(Form("s8", "s8", "s32", satfinite=True), ones, ones, most).item() == 2**31 - 1
    assert (
        multiply(Form("u8", "s8", "s32"), 255 * ones, 255 * ones, np.zeros((1, 1), np.uint32)).view(np.int32) == -8160
    )


def test_specials():
    """In the model, inf - inf, 0 * inf and a sum with NaN give the canonical NaN. An infinity plus a number is the
    infinity."""
    form = Form("bf16", "bf16", "f32")
    one, inf, nan = 0x3F80, 0x7F80, 0x7FC1
    a = np.zeros((5, 16), np.uint32)
    a[0, :2] = inf, inf | 0x8000
    a[1, 0] = inf
    a[2, 3] = nan
    a[3, 0] = inf | 0x8000
    a[4, 0] = one
    b = np.full((2, 16), one, np.uint32)
    b[1, 0] = 0
    d = multiply(form, a, b, np.full((5, 2), 0x40000000, np.uint32))
    assert d[:, 0].tolist() == [0x7FFFFFFF, 0x7F800000, 0x7FFFFFFF, 0xFF800000, 0x40400000]
    assert d[:, 1].tolist() == [0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x40000000]


def neighbors(form: Form) -> list[Adder]:
    adder = adder_of(form)
    return [
        dataclasses.replace(adder, fraction_bits=adder.fraction_bits - 1),
        dataclasses.replace(adder, fraction_bits=adder.fraction_bits + 1),
        dataclasses.replace(adder, group=form.k // 2),
        dataclasses.replace(adder, result_bits=adder.result_bits - 1),
        dataclasses.replace(adder, nearest=not adder.nearest),
        dataclasses.replace(adder, floor=True),
    ]


def test_search_finds_the_parameters():
    """The search finds the parameters of an adder from the adder's results, even if the initial guesses do not contain
    the adder."""
    form = FORMS[0]
    adder = Adder(fraction_bits=22, group=8, result_bits=23, nearest=True)
    recorded = multiply(form, *operands(form), adder=adder)
    assert replay_wgmma.best(form, "wgmma", recorded) == (recorded.size, adder)


@pytest.mark.parametrize("form", FLOATING, ids=str)
def test_cases_distinguish_adders(form):
    """A model with one different parameter gives different results in more than one suite of cases, or in tens of
    cases."""
    expected = multiply(form, *operands(form))
    for adder in neighbors(form):
        assert np.count_nonzero(multiply(form, *operands(form), adder=adder) != expected) > 20, adder


def test_cases_match_their_descriptions():
    """The recorded suites of cases have different sizes. Only the suite of special values contains infinities and
    NaNs."""
    for form in FLOATING:
        for block in blocks(form):
            assert (block.a.shape, block.b.shape, block.c.shape) == ((64, form.k), (8, form.k), (64, 8))
            for bits, element in ((block.a, form.a), (block.b, form.b), (block.c, form.sums)):
                found = numbers(FORMATS[element], bits)
                assert block.suite == "special" or not (found.nan | found.infinite).any()
    assert {block.suite for block in blocks(FORMS[2])} == {
        "spread", "alignment", "rounding", "tiny", "special", "low bits"
    }  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_model_is_the_recording(form):
    """The results of wgmma and of mma.sync are equal bit for bit, and do not depend on the location of the operands."""
    facts, results = RECORDED
    assert facts[str(form)] == {
        "operands": replay_wgmma.digest(form), "registers": 0, "columns": 0, "chained": 0, "again": 0
    }  # fmt: skip
    for instruction in ("wgmma", "mma"):
        found = replay_wgmma.agreement(form, instruction, results[f"{form}/{instruction}"])
        assert all(right == of for right, of in found.values()), (instruction, found)


def test_mma_of_8_bits_is_another():
    """The sums of mma.sync for e4m3 keep more bits than the sums of wgmma."""
    name = "e4m3.e4m3.f32"
    differ = RECORDED[1][f"{name}/wgmma"] != RECORDED[1][f"{name}/mma"]
    assert np.count_nonzero(differ) > 4000
