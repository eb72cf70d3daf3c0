"""Tests of tcgen05.mma with block scales, whose results equal NumPy's products of scaled factors."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import layouts
from cuda_tma.simulate._matrix.formats import FORMATS
from cuda_tma.simulate._matrix.padded import bytes_of_padded, decoded_packed, decoded_padded
from cuda_tma.simulate._matrix.scaled import count_of_scales
from cuda_tma.simulate._tensor_memory.scaled_form import scaled_form_of
from cuda_tma.simulate._tensor_memory.scaled_product import multiply_scaled
from cuda_tma.simulate._tensor_memory.scales import columns_of, scale_numbers

from ._kernels import core_matrices, form, launched

# The scales of A begin in column 256, and the scales of B begin in column 264. Each quarter of the lanes contains a
# word for each row.
SOURCE = """
#define MMA_SCALED(d, a, b, form, more) asm volatile( \\
    "{ .reg .pred p; setp.ne.u32 p, %4, 0;" \\
    "tcgen05.mma.cta_group::1.kind::KIND [%0], OPERAND, %2, %3, [%5], [%6], p; }" \\
    :: "r"(d), A_TYPE(a), "l"(b), "r"(form), "r"(static_cast<u32>(more)), "r"(base + 256), "r"(base + 264) : "memory")
extern "C" __global__ void k(
    const uint4* a, const uint4* b, const u32* a_scales, const u32* b_scales, u32* out, u32 form) {
    __shared__ alignas(128) uint4 left[256], right[N * 2];
    __shared__ alignas(8) u64 bar;
    __shared__ u32 base;
    const int t = threadIdx.x;
    for (int i = t; i < 256; i += 128) left[i] = a[i];
    for (int i = t; i < N * 2; i += 128) right[i] = b[i];
    if (t < 32) ALLOC(&base, 512);
    if (t == 0) INIT(&bar, 1);
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    for (u32 c = 0; c < 4; ++c) ST(base + quarter() + 256 + c, a_scales[c * 32 + t % 32]);
    for (u32 c = 0; c < (N + 31) / 32; ++c) ST(base + quarter() + 264 + c, b_scales[c * 32 + t % 32]);
    WAIT_ST();
    __syncthreads();
    if (t < 32 && first()) {
        BEFORE
        MMA_SCALED(base, A_VALUE, matrix(right, N), form, 0);
        COMMIT(&bar);
    }
    WAIT(&bar, 0);
    for (u32 c = 0; c < N; ++c) {
        u32 x;
        LD(x, base + quarter() + c);
        WAIT_LD();
        out[t * N + c] = x;
    }
    __syncthreads();
    if (t < 32) DEALLOC(base, 512);
}
"""
IN_SHARED = {"OPERAND": "%1", "A_TYPE": '"l"', "A_VALUE": "matrix(left, 128)", "BEFORE": ""}
COPY = 'asm volatile("tcgen05.cp.cta_group::1.SHAPE [%0], %1;" :: "r"(base + 280), "l"(matrix(left, 128)) : "memory");'
COPIED = {"OPERAND": "[%1]", "A_TYPE": '"r"', "A_VALUE": "base + 280", "BEFORE": COPY}


def source_of(kind: str, n: int, a_place: dict[str, str] = IN_SHARED) -> str:
    source = f"#define N {n}\n{SOURCE}".replace("KIND", kind)
    for name, text in a_place.items():
        source = source.replace(name, text)
    return source


def scaled_form(n: int, a: int, b: int, type_: str, a_byte: int = 0, b_byte: int = 0) -> int:
    """Return the instruction descriptor of a block-scaled tcgen05.mma with M = 128."""
    return form(128, n, b_byte, a, b, (type_ == "ue8m0") << 23 | a_byte << 29)


def cells_of(codes: np.ndarray) -> np.ndarray:
    """Return the tensor memory for scales as uint32 [columns, 32], from four scales for each row as uint8 [rows, 4]."""
    cells = np.zeros(columns_of(len(codes)) * 32, np.uint32)
    cells[: len(codes)] = np.ascontiguousarray(codes).view(np.uint32)[:, 0]
    return cells


def codes_of_scales(rows: int, type_: str) -> np.ndarray:
    """Return random bytes of four scales for each row. The scales are powers of two from 1/4 to 4, or sums of two of
    them."""
    random = np.random.default_rng(rows)
    first, last = (125, 130) if type_ == "ue8m0" else (0x28, 0x48)
    return random.integers(first, last, (rows, 4), np.uint8)


def factor(type_: str, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of a random matrix as [rows, 32], and the numbers that the bytes represent."""
    data = np.random.default_rng(seed).integers(0, 256, (rows, 32), np.uint8)
    if type_ == "e2m1x2":
        return data, decoded_packed(data)
    if type_ in ("e4m3", "e5m2"):
        numbers = np.random.default_rng(seed).integers(-4, 5, (rows, 32)).astype(np.float64)
        return FORMATS[type_].encode(numbers), numbers
    return data, decoded_padded(data, type_)


def product(
    a: np.ndarray,
    b: np.ndarray,
    codes: tuple[np.ndarray, np.ndarray],
    type_: str,
    first: tuple[int, int],
    count: int,
) -> np.ndarray:
    """Return the product of two scaled matrices in float64."""
    scaled = []
    for numbers, each, byte in zip((a, b), codes, first, strict=True):
        scales = scale_numbers(each[:, byte : byte + count], type_)
        scaled.append(numbers * np.repeat(scales, numbers.shape[1] // count, axis=1))
    return scaled[0] @ scaled[1].T


CODES = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5, "e2m1x2": 1}
# Each row contains the kind with its qualifiers, the number of scales along K, the types of A, B and scales, N, and the
# IDs of scales.
CASES = [
    ("mxf8f6f4.block_scale", 1, "e4m3", "e4m3", "ue8m0", 16, (0, 0)),
    ("mxf8f6f4.block_scale.scale_vec::1X", 1, "e5m2", "e4m3", "ue8m0", 40, (3, 1)),
    ("mxf8f6f4.block_scale.block32", 1, "e4m3", "e2m1", "ue8m0", 8, (1, 2)),
    ("mxf8f6f4.block_scale.block32", 1, "e2m3", "e3m2", "ue8m0", 64, (2, 3)),
    ("mxf4.block_scale", 2, "e2m1x2", "e2m1x2", "ue8m0", 16, (0, 2)),
    ("mxf4.block_scale.block32", 2, "e2m1x2", "e2m1x2", "ue8m0", 72, (2, 0)),
    ("mxf4nvf4.block_scale.scale_vec::2X", 2, "e2m1x2", "e2m1x2", "ue8m0", 16, (2, 2)),
    ("mxf4nvf4.block_scale.scale_vec::4X", 4, "e2m1x2", "e2m1x2", "ue8m0", 24, (0, 0)),
    ("mxf4nvf4.block_scale.block16", 4, "e2m1x2", "e2m1x2", "ue4m3", 64, (0, 0)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[2]}-{case[5]}")
def test_scaled_products(case):
    kind, count, a_type, b_type, type_, n, first = case
    (a, a_numbers), (b, b_numbers) = factor(a_type, 128, 1), factor(b_type, n, 2)
    codes = codes_of_scales(128, type_), codes_of_scales(n, type_)
    out = np.zeros((128, n), np.uint32)
    bits = scaled_form(n, CODES[a_type], CODES[b_type], type_, *first)
    report = launched(source_of(kind, n), core_matrices(a), core_matrices(b), *map(cells_of, codes), out, bits)
    assert report.findings == ()
    assert np.array_equal(out.view(np.float32), product(a_numbers, b_numbers, codes, type_, first, count))


def test_a_wrong_layout_of_scales_changes_the_result():
    """In the wrong layout of the test, row r has its scales in lane r // 4 and column r % 4. The comparison of the
    layouts contains the first difference."""
    (a, a_numbers), (b, b_numbers) = factor("e4m3", 128, 1), factor("e4m3", 16, 2)
    codes = codes_of_scales(128, "ue8m0"), codes_of_scales(16, "ue8m0")
    cells, out = list(map(cells_of, codes)), np.zeros((128, 16), np.uint32)
    cells[0] = np.ascontiguousarray(cells[0].reshape(32, 4).T).ravel()
    source, bits = source_of("mxf8f6f4.block_scale", 16), scaled_form(16, 0, 0, "ue8m0")
    assert launched(source, core_matrices(a), core_matrices(b), *cells, out, bits).findings == ()
    expected = product(a_numbers, b_numbers, codes, "ue8m0", (0, 0), 1)
    assert not np.array_equal(out.view(np.float32), expected)
    read, wrong = layouts.layout("scales:ue8m0:128x4"), layouts.layout("tile:u8:128x4")
    assert (read.said(1, 0), wrong.said(1, 0)) == ("byte 16", "byte 4")


@pytest.mark.parametrize(("type_", "bits", "shape"), [("e2m1", 4, "b4x16_p64"), ("e3m2", 6, "b6x16_p32")])
def test_a_copy_extends_narrow_elements_of_a_to_bytes(type_, bits, shape):
    (a, a_numbers), (b, b_numbers) = factor(type_, 128, 1), factor("e4m3", 16, 2)
    codes = codes_of_scales(128, "ue8m0"), codes_of_scales(16, "ue8m0")
    out = np.zeros((128, 16), np.uint32)
    place = {**COPIED, "BEFORE": COPY.replace("SHAPE", f"128x256b.b8x16.{shape}")}
    source = source_of("mxf8f6f4.block_scale", 16, place)
    given = core_matrices(a), core_matrices(b), *map(cells_of, codes)
    report = launched(source, *given, out, scaled_form(16, CODES[type_], 0, "ue8m0"))
    assert report.findings == ()
    assert np.array_equal(out.view(np.float32), product(a_numbers, b_numbers, codes, "ue8m0", (0, 0), 1))
    assert bytes_of_padded(a[:, :16], bits).shape == (128, 16)


def test_a_byte_contains_a_narrow_element_with_its_sign_in_bit_5():
    piece = np.zeros((1, 16), np.uint8)
    piece[0, 0] = 0x9
    assert bytes_of_padded(piece, 4)[0, :2].tolist() == [0x24, 0]
    piece[0, 0] = 0x21
    assert bytes_of_padded(piece, 6)[0, :2].tolist() == [0x21, 0]


@pytest.mark.parametrize(
    ("kind", "count", "bits", "problem"),
    [
        ("mxf8f6f4", 1, form(64, 16, 0, 0, 0, 1 << 23), "M is 64, but with .block_scale and .cta_group::1 it"),
        ("mxf8f6f4", 1, form(128, 0, 0, 0, 0, 1 << 23), "N is 0"),
        ("mxf8f6f4", 1, form(128, 16, 0, 0, 0), "bit 23 is 0, which selects scales of ue4m3"),
        ("mxf4nvf4", 2, form(128, 16, 0, 1, 1), "bit 23 is 0"),
        ("mxf4", 2, form(128, 16, 0, 0, 1, 1 << 23), "its code 0 for the type of A is not a type of .kind::mxf4"),
        ("mxf4", 2, form(128, 16, 1, 1, 1, 1 << 23), "ID of B is 1, but with 2 scales along K it must be 0 or 2"),
        ("mxf4nvf4", 4, form(128, 16, 0, 1, 1, 2 << 29), "ID of A is 2, but with 4 scales along K it must be 0"),
        ("mxf8f6f4", 1, form(128, 16, 0, 0, 0, 1 << 23 | 1 << 3), "reserved bits"),
        ("mxf8f6f4", 1, form(128, 16, 0, 0, 5, 1 << 23 | 1 << 16), "B of e2m1 must be K-major; clear bit 16"),
    ],
)
def test_a_descriptor_that_does_not_fit_is_an_error(kind, count, bits, problem):
    with pytest.raises(ValueError, match=problem.replace(".", r"\.")):
        scaled_form_of(kind, count, bits, 1)


def test_a_wrong_descriptor_is_a_finding():
    given = [np.zeros(size, np.uint8) for size in (4096, 512)]
    given += [np.zeros(size, np.uint32) for size in (128, 32, 2048)]
    finding = launched(source_of("mxf8f6f4.block_scale", 16), *given, form(128, 16, 1, 0, 0)).errors[0]
    assert finding.kind == "fault"
    assert "bit 23 is 0" in finding.message


def test_the_number_of_scales_for_each_kind():
    assert count_of_scales("mxf8f6f4", ("block_scale",)) == 1
    assert count_of_scales("mxf4", ("block_scale", "block32")) == 2
    assert count_of_scales("mxf4nvf4", ("block_scale", "scale_vec::4X")) == 4
    assert count_of_scales("mxf4nvf4", ("block_scale",)) is None


def test_numbers_of_scales():
    assert scale_numbers(np.array([0, 127, 254], np.uint8), "ue8m0").tolist() == [2.0**-127, 1.0, 2.0**127]
    assert np.isnan(scale_numbers(np.array([255], np.uint8), "ue8m0"))
    assert scale_numbers(np.array([0, 1, 0x7E], np.uint8), "ue4m3").tolist() == [0.0, 2.0**-9, 448.0]
    assert np.isnan(scale_numbers(np.array([0x7F], np.uint8), "ue4m3"))


def test_the_largest_and_the_smallest_scale_cancel():
    a, b = np.full((128, 32), 448.0), np.full((8, 32), 2.0)
    large, small = np.full((4, 32, 1), 2.0**127), np.full((4, 8, 1), 2.0**-127)
    assert np.array_equal(multiply_scaled(a, b, np.ones((128, 8)), large, small), np.full((128, 8), 896 * 32 + 1.0))


def test_sums_of_a_quarter_use_its_copy_of_the_scales():
    a, b = np.ones((128, 32)), np.ones((8, 32))
    of_a, of_b = np.ones((4, 32, 1)), np.ones((4, 8, 1))
    of_b[2] = 2.0
    expected = np.full((128, 8), 32.0)
    expected[64:96] = 64.0
    assert np.array_equal(multiply_scaled(a, b, None, of_a, of_b), expected)
