"""Tests of the shared-memory descriptors of tcgen05, and of a matrix's byte offsets for each swizzle and major
order."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma.simulate._tensor_memory.descriptor import SharedDescriptor, pieces
from cuda_tma.simulate._tensor_memory.form import form_of

from ._kernels import form


def encoded(start: int, leading: int, stride: int, swizzle: int) -> int:
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | swizzle << 61


def test_the_fields():
    found = SharedDescriptor.decode(encoded(0x4000, 2048, 1024, 2))
    assert found == SharedDescriptor(0x4000, 2048, 1024, 0, 2)
    assert found.span_bytes == 128


@pytest.mark.parametrize(
    ("bits", "error", "problem"),
    [
        (0, ValueError, "bits 46 to 48 of the matrix descriptor 0x0000000000000000 are 0"),
        (encoded(0, 0, 0, 3), ValueError, "which is not the code of a swizzle"),
        (encoded(0, 0, 0, 2) | 1 << 49, NotImplementedError, "base offset 1"),
        (encoded(0, 0, 0, 2) | 1 << 52, NotImplementedError, "absolute leading dimension"),
    ],
)
def test_a_descriptor_that_is_not_valid(bits, error, problem):
    with pytest.raises(error, match=problem):
        SharedDescriptor.decode(bits)


@pytest.mark.parametrize(("swizzle", "span"), [(2, 128), (4, 64), (6, 32)])
def test_rows_of_k_under_a_swizzle(swizzle, span):
    """The byte offsets of a K-major matrix equal the byte offsets of a box that TMA writes with the same swizzle."""
    found = pieces(encoded(0, 0, 8 * span, swizzle), 64, 2, False)
    row, piece = np.ogrid[:64, :2]
    linear = row * span + piece * 16
    assert np.array_equal(found, linear ^ linear >> 3 & span - 16)


def test_rows_of_k_without_a_swizzle():
    found = pieces(encoded(256, 512, 128, 0), 16, 2, False)
    row, piece = np.ogrid[:16, :2]
    assert np.array_equal(found, 256 + row // 8 * 128 + row % 8 * 16 + piece * 512)


def test_rows_of_m_under_a_swizzle_of_128_bytes():
    """In an M-major matrix, the rows of K are in groups of eight, each with 64 elements of M. The next 64 elements of M
    are `leading` bytes away."""
    found = pieces(encoded(0, 8192, 1024, 2), 128, 2, True)
    k, piece = np.ogrid[:16, :16]
    linear = k * 128 + piece % 8 * 16 + piece // 8 * 8192
    assert np.array_equal(found, linear ^ linear >> 3 & 112)


def test_rows_of_m_of_32_bits_keep_32_bytes_together():
    found = pieces(encoded(0, 4096, 512, 1), 32, 4, True)
    k, piece = np.ogrid[:8, :8]
    linear = k * 128 + piece * 16
    assert np.array_equal(found, linear ^ linear >> 2 & 96)


def test_the_form_of_a_product():
    found = form_of("f16", form(128, 256, 1, 1, 1, 1 << 16), 1, False)
    assert (found.m, found.n, found.k, found.a_type, found.sums) == (128, 256, 16, "bf16", "f32")
    assert (found.a_mn_major, found.b_mn_major) == (False, True)


def test_bit_3_of_a_form_saturates():
    bits = form(128, 256, 2, 1, 1, 0)
    assert [form_of("i8", bits | more, 1, False).saturate for more in (0, 8)] == [False, True]


def test_a_sparse_form_is_not_known():
    with pytest.raises(NotImplementedError, match="a sparse A"):
        form_of("f16", form(128, 256, 1, 1, 1, 4), 1, False)


@pytest.mark.parametrize(
    ("kind", "ctas", "is_stationary", "m", "right", "wrong"),
    [
        ("f16", 1, False, 64, (8, 24, 56, 256), (0, 264)),
        ("f16", 1, False, 128, (8, 24, 56, 256), (0, 264)),
        ("i8", 1, False, 128, (8, 16, 24, 32, 48, 256), (40, 56, 72, 248)),
        ("f16", 2, False, 256, (16, 48, 256), (8, 24, 40)),
        ("i8", 2, False, 256, (32, 64, 256), (8, 16, 48)),
        ("i8", 1, True, 64, (64, 128, 256), (8, 32, 96, 192)),
    ],
)
def test_the_columns_of_each_kind(kind, ctas, is_stationary, m, right, wrong):
    """For each kind of tcgen05.mma, the permitted numbers of columns are the numbers in Table 39 of PTX ISA 9.2."""
    d = 2 if kind == "i8" else 1
    for n in right:
        assert form_of(kind, form(m, n, d, 0, 0), ctas, is_stationary).n == n
    for n in wrong:
        with pytest.raises(ValueError, match=f"N is {n}, but for .kind::{kind}.* it must be"):
            form_of(kind, form(m, n, d, 0, 0), ctas, is_stationary)


def test_operands_of_16_bits_may_have_two_types():
    """The instruction descriptor has a type for each 16-bit operand, and PTX ISA 9.2 (Table 42) permits different
    types."""
    found = form_of("f16", form(128, 16, 1, 0, 1), 1, False)
    assert (found.a_type, found.b_type) == ("f16", "bf16")
    with pytest.raises(ValueError, match="the type of D must be f32"):
        form_of("f16", form(128, 16, 0, 0, 1), 1, False)
