"""Products on the simulator are the H200's, bit for bit, as recorded: every type, wgmma and mma.sync."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from cuda_tma.simulate.formats import FORMATS
from cuda_tma.simulate.matrix.adder import NARROW, multiply_add, multiply_add_as_f16

sys.path.append(str(Path(__file__).parent.parent / "tools"))
import replay_wgmma
from record_wgmma import operands
from wgmma_cases import FORMS, Form

_, RECORDED = replay_wgmma.read(str(Path(__file__).parent / "data" / "wgmma_sm90.npz"))
FLOATING = [form for form in FORMS if form.sums != "s32"]


def decoded(element: str, bits: np.ndarray) -> np.ndarray:
    return FORMATS[element].decode(bits.view(np.float32) if element == "f32" else bits)


def result(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray | None, instruction: str = "wgmma") -> np.ndarray:
    """As bits, of bits."""
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


def test_many_groups_are_as_each_alone():
    """The work is done in parts: more groups than one part has."""
    form = FORMS[0]
    a, b, c = (np.concatenate([array] * 5) for array in operands(form))
    recorded = RECORDED[f"{form}/wgmma"]
    assert len(a) * 64 * 8 > 2**14
    assert np.array_equal(result(form, a, b, c), np.concatenate([recorded] * 5))


def test_without_c():
    """It has no exponent to be aligned to, and a product of zeros is +0."""
    form = FORMS[0]
    a, b, c = operands(form)
    assert np.array_equal(result(form, a, b, None), result(form, a, b, np.zeros_like(c)))
    assert result(form, np.full((1, 1, 16), 0x8000, np.uint16), np.zeros((1, 1, 16), np.uint16), None).item() == 0


def test_a_small_term_is_cut():
    """25 bits below the largest it is whole, 26 below it is gone: of e4m3 in wgmma 13 and 14."""
    a = np.array([[[1.0, 2.0**-25]], [[1.0, 2.0**-26]]])
    ones = np.ones((2, 1, 2))
    less = np.full((2, 1, 1), -1.0)
    assert multiply_add(a, ones, less, ("bf16", "bf16"), "f32").ravel().tolist() == [2.0**-25, 0.0]
    narrow = np.array([[[1.0, 2.0**-7]], [[1.0, 2.0**-7]]])
    others = np.array([[[1.0, 2.0**-6]], [[1.0, 2.0**-7]]])
    assert multiply_add(narrow, others, less, ("e4m3", "e4m3"), "f32").ravel().tolist() == [2.0**-13, 0.0]
