"""Tests of matrix products on the simulator, which equal the recorded products of an H200 bit for bit."""

from __future__ import annotations

import dataclasses
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from cuda_tma.simulate._matrix.adder import NARROW, multiply_add, multiply_add_as_f16, multiply_add_to
from cuda_tma.simulate._matrix.formats import FORMATS
from cuda_tma.simulate._matrix.fragments import rows_to_sums, sums_to_rows

sys.path.append(str(Path(__file__).parents[3] / "evaluation" / "recordings"))
import replay_wgmma
from record_wgmma import operands
from wgmma_cases import FORMATS as BITS
from wgmma_cases import FORMS, Form
from wgmma_model import adder_of, multiply

_, RECORDED = replay_wgmma.read(str(Path(__file__).parents[2] / "data" / "wgmma_sm90.npz"))
FLOATING = [form for form in FORMS if form.sums != "s32"]


def decoded(element: str, bits: np.ndarray) -> np.ndarray:
    return FORMATS[element].decode(bits.view(np.float32) if element == "f32" else bits)


def result(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray | None, instruction: str = "wgmma") -> np.ndarray:
    """Return the bits of a product and sum, from the bits of the operands."""
    with np.errstate(all="ignore"):
        x, y = decoded(form.a, a), decoded(form.b, b)
        z = None if c is None else decoded(form.sums, c)
        if instruction == "mma" and form.a in NARROW:
            d = multiply_add_as_f16(x, y, z, form.sums)
        else:
            d = multiply_add(x, y, z, (form.a, form.b), form.sums)
        return np.asarray(FORMATS[form.sums].encode(d)).view(np.uint16 if form.sums == "f16" else np.uint32)


@pytest.mark.parametrize("instruction", ["wgmma", "mma"])
@pytest.mark.parametrize("form", FLOATING, ids=str)
def test_recorded(form, instruction):
    found = result(form, *operands(form), instruction)
    assert np.count_nonzero(found != RECORDED[f"{form}/{instruction}"]) == 0


def drawn(rng: np.random.Generator, element: str, shape: tuple[int, ...], suite: str) -> np.ndarray:
    """Draw bits of a type with arbitrary values, with exponents so near that terms are partly cut, or with many special
    values."""
    format = BITS[element]
    if suite == "any":
        bits = rng.integers(0, 2 ** (8 * format.itemsize), shape)
    else:
        exponent = rng.integers(-9, 5, shape)
        if suite == "ends":
            exponent = np.where(rng.random(shape) < 0.3, exponent, format.least - 1)
        bits = format.bits(rng.integers(0, 2, shape), exponent, rng.integers(0, 2**format.mantissa_bits, shape))
        if suite == "ends":
            bits = np.where(rng.random(shape) < 0.03, rng.choice(format.special, shape), bits)
    return bits.astype(f"u{format.itemsize}")


@pytest.mark.parametrize("suite", ["any", "near", "ends"])
@pytest.mark.parametrize("form", FLOATING, ids=str)
def test_any_bits(form, suite):
    """The simulator's sums equal the model in integers, for the K of one wgmma and of the shortest mma.sync."""
    rng = np.random.default_rng(zlib.crc32(f"{form}{suite}".encode()))
    for k, columns in ((form.k, 40), (form.k // 2, 8)):
        shapes = ((5, 16, k), (5, columns, k), (5, 16, columns))
        a, b, c = (
            drawn(rng, element, shape, suite)
            for element, shape in zip((form.a, form.b, form.sums), shapes, strict=True)
        )
        short = dataclasses.replace(adder_of(form), group=k)
        assert np.array_equal(result(form, a, b, c), multiply(form, a, b, c, adder=short))


@pytest.mark.parametrize("form", [form for form in FLOATING if form.sums == "f32"], ids=str)
@pytest.mark.parametrize("add", [False, True])
def test_in_registers(form, add):
    """Matrix products in registers equal the products of arrays bit for bit, and no other register changes."""
    rng = np.random.default_rng(7)
    n, lanes, rows = 24, np.array([256, 0, 512]), rng.permutation(40)[:12]
    a, b = (drawn(rng, element, (3, size, form.k), "ends") for element, size in ((form.a, 64), (form.b, n)))
    b_of = np.array([2, 0, 2])
    registers = drawn(rng, "f32", (40, 640), "ends").view(np.float32)
    expected = registers.copy()
    at = np.ix_(rows, (lanes[:, None] + np.arange(128)).ravel())
    c = sums_to_rows(registers[at]).reshape(3, 64, n).view(np.uint32) if add else None
    found = result(form, a, b[b_of], c).view(np.float32)
    expected[at] = rows_to_sums(found.reshape(-1, n))
    with np.errstate(all="ignore"):
        left, right = decoded(form.a, a), decoded(form.b, b)
    multiply_add_to(registers, rows, lanes, left, right, b_of, (form.a, form.b), add)
    assert np.array_equal(registers.view(np.uint32), expected.view(np.uint32))


def test_more_than_an_instruction_has_is_refused():
    with pytest.raises(ValueError, match="16 x 264 sums of 16 products are more than an instruction has"):
        multiply_add(np.zeros((1, 16, 16)), np.zeros((1, 264, 16)), None, ("f16", "f16"), "f32")


def test_without_c():
    """In a matrix product without an operand C, the sum has no term for C, and a sum of zeros is +0."""
    form = FORMS[0]
    a, b, c = operands(form)
    assert np.array_equal(result(form, a, b, None), result(form, a, b, np.zeros_like(c)))
    assert result(form, np.full((1, 1, 16), 0x8000, np.uint16), np.zeros((1, 1, 16), np.uint16), None).item() == 0


def test_a_small_term_is_cut():
    """In a tensor-core sum, a term of 2^-25 of the largest term is exact, and a term of 2^-26 is lost. For e4m3 in
    wgmma, the limits are 2^-13 and 2^-14."""
    a = np.array([[[1.0, 2.0**-25]], [[1.0, 2.0**-26]]])
    ones = np.ones((2, 1, 2))
    less = np.full((2, 1, 1), -1.0)
    assert multiply_add(a, ones, less, ("bf16", "bf16"), "f32").ravel().tolist() == [2.0**-25, 0.0]
    narrow = np.array([[[1.0, 2.0**-7]], [[1.0, 2.0**-7]]])
    others = np.array([[[1.0, 2.0**-6]], [[1.0, 2.0**-7]]])
    assert multiply_add(narrow, others, less, ("e4m3", "e4m3"), "f32").ravel().tolist() == [2.0**-13, 0.0]
