"""Tests of conversions to and from e2m1, e2m3, e3m2 and ue8m0, whose results equal those of ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from cuda_tma.simulate._pure import lookup
from tests.support.pure_instructions import entry_of, instruction

TYPES = {
    "e2m1x2": (4, ml_dtypes.float4_e2m1fn),
    "e2m3x2": (8, ml_dtypes.float6_e2m3fn),
    "e3m2x2": (8, ml_dtypes.float6_e3m2fn),
}
rng = np.random.default_rng(0)
VALUES = np.concatenate([rng.normal(scale=8.0, size=4000), np.arange(-64, 64) / 16, [0.0, -0.0, 1e-40]]).astype("f4")


def codes(values, dtype, bits):
    """Clamp values to the range of a type, and return their codes from ml_dtypes."""
    largest = float(ml_dtypes.finfo(dtype).max)
    return np.clip(values, -largest, largest).astype(dtype).view(np.uint8).astype(int) & (1 << min(bits, 6)) - 1


def computed(text, *sources):
    with np.errstate(all="ignore"):
        return entry_of(text).compute(*sources)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("relu", [False, True])
def test_to_narrow(type_, relu):
    bits, dtype = TYPES[type_]
    found = computed(f"cvt.rn.satfinite{'.relu' * relu}.{type_}.f32 d, a, b", VALUES, VALUES[::-1].copy())
    given = np.maximum(VALUES, np.float32(0)) if relu else VALUES
    expected = codes(given, dtype, bits)
    if relu:
        assert np.array_equal(
            found & ((1 << bits) - 1), expected[::-1] & (expected[::-1] != 1 << min(bits, 6) - 1) * -1
        )
        return
    assert found.dtype == (np.uint8 if bits == 4 else np.uint16)
    assert np.array_equal(found >> bits, expected)
    assert np.array_equal(found & ((1 << bits) - 1), expected[::-1])


def test_non_numbers_become_the_largest():
    values = np.array([np.nan, np.inf, -np.inf, 1e30], np.float32)
    zeros = np.zeros(4, np.float32)
    assert computed("cvt.rn.satfinite.e2m1x2.f32 d, a, b", zeros, values).tolist() == [7, 7, 15, 7]
    assert computed("cvt.rn.satfinite.e2m3x2.f32 d, a, b", zeros, values).tolist() == [31, 31, 63, 31]
    assert computed("cvt.rn.satfinite.e3m2x2.f32 d, a, b", zeros, values).tolist() == [31, 31, 63, 31]


@pytest.mark.parametrize("type_", TYPES)
def test_from_narrow(type_):
    bits, dtype = TYPES[type_]
    each = np.arange(1 << min(bits, 6))
    pairs = (each[:, None] << bits | each[None, :]).ravel().astype(np.uint8 if bits == 4 else np.uint16)
    found = computed(f"cvt.rn.f16x2.{type_} d, a", pairs)
    halves = found.astype("<u4").view(np.float16).reshape(-1, 2)
    values = each.astype(np.uint8).view(dtype).astype(np.float16)
    assert np.array_equal(halves[:, 1], np.repeat(values, len(each)))
    assert np.array_equal(halves[:, 0], np.tile(values, len(each)))
    positive = computed(f"cvt.rn.relu.f16x2.{type_} d, a", pairs).astype("<u4").view(np.float16)
    assert positive.min() == 0 and positive.max() == values.max()


def test_scales():
    scales = np.arange(256, dtype=np.uint16)
    found = computed("cvt.rn.bf16x2.ue8m0x2 d, a", scales << 8 | scales).astype("<u4").view(ml_dtypes.bfloat16)
    expected = np.repeat(scales.astype(np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(np.float32), 2)
    assert np.array_equal(found.astype(np.float32), expected, equal_nan=True)


@pytest.mark.parametrize(("mode", "finite"), [("rz", ""), ("rp", ""), ("rz", ".satfinite"), ("rp", ".satfinite")])
def test_to_scales(mode, finite):
    values = np.array([1, 1.5, 2, 3, -3, 0, 2**-126, 2**-127, 2**-128, 3e38, np.inf, np.nan, 2**-126.5], np.float32)
    down = [127, 127, 128, 128, 128, 0, 1, 0, 0, 254, 255, 255, 0]
    up = [127, 128, 128, 129, 129, 0, 1, 0, 0, 255, 255, 255, 1]
    expected = np.array(down if mode == "rz" else up)
    if finite:
        expected = np.where((expected == 255) & ~np.isnan(values), 254, expected)
    found = computed(f"cvt.{mode}{finite}.ue8m0x2.f32 d, a, b", values, values[::-1].copy())
    assert found.dtype == np.uint16
    assert np.array_equal(found >> 8, expected) and np.array_equal(found & 0xFF, expected[::-1])
    halves = values.astype(ml_dtypes.bfloat16).view(np.uint16).astype(np.uint32)
    of_pairs = computed(f"cvt.{mode}{finite}.ue8m0x2.bf16x2 d, a", halves << 16 | halves)
    exact = values.astype(ml_dtypes.bfloat16).astype(np.float32) == values
    assert np.array_equal((of_pairs >> 8)[exact], expected[exact]) and np.array_equal(of_pairs & 0xFF, of_pairs >> 8)


@pytest.mark.parametrize(
    "text",
    [
        "cvt.rn.e2m1x2.f32 d, a, b",
        "cvt.rz.satfinite.e2m1x2.f32 d, a, b",
        "cvt.rn.ue8m0x2.f32 d, a, b",
        "cvt.rn.f16x2.ue8m0x2 d, a",
    ],
)
def test_other_forms_are_not_known(text):
    assert lookup(instruction(text)) is None


@pytest.mark.parametrize("type_", [*TYPES, "e4m3x2", "e5m2x2"])
@pytest.mark.parametrize("pair", ["f16", "bf16"])
def test_a_pair_of_16_bits_becomes_what_its_numbers_become(type_, pair):
    values = VALUES.astype(np.float16 if pair == "f16" else ml_dtypes.bfloat16)
    bits = values.view(np.uint16).astype(np.uint32)
    words = bits << 16 | bits[::-1]
    found = computed(f"cvt.rn.satfinite.{type_}.{pair}x2 d, a", words)
    wide = values.astype(np.float32)
    expected = computed(f"cvt.rn.satfinite.{type_}.f32 d, a, b", wide, wide[::-1].copy())
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("type_", TYPES)
def test_bf16_contains_every_narrow_value(type_):
    bits, dtype = TYPES[type_]
    each = np.arange(1 << min(bits, 6))
    codes_of = (each << bits | each[::-1]).astype(np.uint8 if bits == 4 else np.uint16)
    found = computed(f"cvt.rn.bf16x2.{type_} d, a", codes_of)
    values = each.astype(np.uint8).view(dtype).astype(np.float32)
    upper, lower = ((found >> shift << 16 & 0xFFFF0000).astype(np.uint32).view(np.float32) for shift in (16, 0))
    assert np.array_equal(upper, values)
    assert np.array_equal(lower, values[::-1])
