"""Tests of tcgen05.mma, whose products equal NumPy's for each type and shape."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma.simulate._matrix.formats import FORMATS
from cuda_tma.simulate._matrix.padded import decoded_padded

from ._kernels import core_matrices, device, form, launched

# The operands A and B are in core matrices, and a row of K has STEPS times 32 bytes. The kernel returns the cells of D
# in the order [lane, column].
SOURCE = """
extern "C" __global__ void k(const uint4* a, const uint4* b, u32* out, u32 form) {
    __shared__ alignas(128) uint4 left[M * 2 * STEPS], right[N * 2 * STEPS];
    __shared__ alignas(8) u64 bar;
    __shared__ u32 base;
    const int t = threadIdx.x;
    for (int i = t; i < M * 2 * STEPS; i += 128) left[i] = a[i];
    for (int i = t; i < N * 2 * STEPS; i += 128) right[i] = b[i];
    if (t < 32) ALLOC(&base, 512);
    if (t == 0) INIT(&bar, 1);
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    const u32 d = base;
    ZERO
    if (t < 32 && first()) {
        for (int s = 0; s < STEPS; ++s)
            MMA("KIND", d, matrix(left + 2 * M * s, M), matrix(right + 2 * N * s, N), form, s > 0 || ADD);
        COMMIT(&bar);
    }
    WAIT(&bar, 0);
    for (u32 c = 0; c < N; ++c) {
        u32 x;
        LD(x, d + quarter() + c);
        WAIT_LD();
        out[t * N + c] = x;
    }
    __syncthreads();
    if (t < 32) DEALLOC(d, 512);
}
"""
ZEROS = "for (u32 c = 0; c < N; ++c) ST(d + quarter() + c, 0); WAIT_ST(); __syncthreads();"


def multiplied(kind: str, a: np.ndarray, b: np.ndarray, bits: int, zero: bool = False) -> np.ndarray:
    """Return the accumulator D as uint32 [128, N], for matrices of bytes with the shape [rows, 32 * steps]."""
    m, n, steps = len(a), len(b), a.shape[1] // 32
    source = SOURCE.replace("KIND", kind).replace("ZERO", ZEROS if zero else "").replace("ADD", str(int(zero)))
    source = f"#define M {m}\n#define N {n}\n#define STEPS {steps}\n{source}"
    out = np.zeros((128, n), np.uint32)
    report = launched(source, core_matrices(a), core_matrices(b), out, bits)
    assert report.findings == ()
    return out


def numbers(rows: int, count: int) -> np.ndarray:
    return np.random.default_rng(rows + count).integers(-4, 5, (rows, count)).astype(np.float64)


# Each row contains the kind of the product, the code of D, the type of the operands, the code of this type, and its
# size in bytes.
TYPES = [
    ("f16", 1, "f16", 0, 2),
    ("f16", 1, "bf16", 1, 2),
    ("tf32", 1, "tf32", 2, 4),
    ("f8f6f4", 1, "e4m3", 0, 1),
    ("f8f6f4", 1, "e5m2", 1, 1),
]


@pytest.mark.parametrize(("kind", "d", "type_", "code", "size"), TYPES, ids=[each[2] for each in TYPES])
@pytest.mark.parametrize(("m", "n"), [(128, 16), (64, 8)])
def test_products_of_floats(kind, d, type_, code, size, m, n):
    a, b = numbers(m, 64 // size), numbers(n, 64 // size)
    coded = [np.ascontiguousarray(FORMATS[type_].encode(each)).view(np.uint8).reshape(len(each), -1) for each in (a, b)]
    found = multiplied(kind, *coded, form(m, n, d, code, code))
    lanes = np.arange(128) if m == 128 else np.arange(64) // 16 * 32 + np.arange(64) % 16
    assert np.array_equal(found[lanes].view(np.float32), a @ b.T)


def test_a_product_of_f16_and_bf16():
    a, b = numbers(128, 16), numbers(16, 16)
    coded = [
        np.ascontiguousarray(FORMATS[type_].encode(each)).view(np.uint8).reshape(len(each), -1)
        for type_, each in (("f16", a), ("bf16", b))
    ]
    found = multiplied("f16", *coded, form(128, 16, 1, 0, 1))
    assert np.array_equal(found.view(np.float32), a @ b.T)


def test_products_of_integers():
    random = np.random.default_rng(1)
    a, b = random.integers(-128, 128, (128, 64), np.int8), random.integers(0, 256, (16, 64), np.uint8)
    found = multiplied("i8", a.view(np.uint8), b, form(128, 16, 2, 1, 0))
    assert np.array_equal(found.view(np.int32), a.astype(np.int32) @ b.astype(np.int32).T)


def test_products_with_sums_of_f16_have_one_in_the_lower_half_of_each_column():
    a, b = numbers(128, 32), numbers(16, 32)
    coded = [each.astype(np.float16).view(np.uint8).reshape(len(each), -1) for each in (a, b)]
    found = multiplied("f16", *coded, form(128, 16, 0, 0, 0))
    assert np.array_equal(found, (a @ b.T).astype(np.float16).view(np.uint16))


def test_products_of_four_bits_that_are_padded():
    """Padded elements of 4 bits have the type e2m1, with 16 elements in the first 8 of 16 bytes."""
    random = np.random.default_rng(2)
    a, b = (random.integers(0, 256, (rows, 32), np.uint8) for rows in (128, 16))
    found = multiplied("f8f6f4", a, b, form(128, 16, 1, 5, 5))
    assert np.array_equal(found.view(np.float32), decoded_padded(a, "e2m1") @ decoded_padded(b, "e2m1").T)


def test_padded_elements():
    piece = np.zeros((1, 16), np.uint8)
    # The codes 1 and 3 represent 0.5 and 1.5.
    piece[0, :8] = 0x31
    # The upper eight bytes of each piece are padding.
    piece[0, 8:] = 0xFF
    assert decoded_padded(piece, "e2m1").tolist() == [[0.5, 1.5] * 8]


def test_the_input_of_d_is_added_and_operands_are_negated():
    a, b = numbers(128, 16), numbers(16, 16)
    coded = [each.astype(np.float16).view(np.uint8).reshape(len(each), -1) for each in (a, b)]
    found = multiplied("f16", *coded, form(128, 16, 1, 0, 0, 1 << 13), zero=True)
    assert np.array_equal(found.view(np.float32), -(a @ b.T))


@pytest.mark.parametrize(
    ("bits", "problem"),
    [
        (form(96, 16, 1, 0, 0), "M is 96"),
        (form(128, 0, 1, 0, 0), "N is 0"),
        (form(128, 16, 2, 0, 0), "its code 2 for the type of D is not a type of .kind::f16"),
        (form(128, 16, 1, 2, 0), "its code 2 for the type of A is not a type of .kind::f16"),
        (form(128, 16, 0, 1, 1), "the type of D must be f32"),
        (form(128, 16, 1, 0, 0, 1 << 29), "reserved bits"),
    ],
)
def test_a_descriptor_that_does_not_fit_is_an_error(bits, problem):
    source = "#define M 128\n#define N 16\n#define STEPS 1\n" + SOURCE.replace("KIND", "f16").replace("ZERO", "")
    a, b, out = np.zeros(4096, np.uint8), np.zeros(512, np.uint8), np.zeros(2048, np.uint32)
    finding = launched(source.replace("ADD", "0"), a, b, out, bits).errors[0]
    assert finding.kind == "fault"
    assert problem in finding.message


LEFT = """
extern "C" __global__ void k(const u32* a, const uint4* b, u32* out, u32 form) {
    __shared__ alignas(128) uint4 right[N * 2];
    __shared__ alignas(8) u64 bar;
    __shared__ u32 base;
    const int t = threadIdx.x;
    for (int i = t; i < N * 2; i += 128) right[i] = b[i];
    if (t < 32) ALLOC(&base, 256);
    if (t == 0) INIT(&bar, 1);
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    for (u32 c = 0; c < 8; ++c) ST(base + quarter() + 128 + c, a[t * 8 + c]);
    for (u32 c = 0; c < N; ++c) ST(base + quarter() + c, __float_as_uint(8.f));
    WAIT_ST();
    __syncthreads();
    if (t < 32 && first()) {
        asm volatile("{ .reg .pred p; setp.ne.u32 p, 1, 0; INSTRUCTION }"
            :: "r"(base), "r"(base + 128), "l"(matrix(right, N)), "r"(form) : "memory");
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
    if (t < 32) DEALLOC(base, 256);
}
"""


def from_lanes(instruction: str, a: np.ndarray, b: np.ndarray, m: int) -> np.ndarray:
    """Return the product of A and B as float32 [lane, N], plus the initial value 8 of D. A is in tensor memory as
    [lane, K]."""
    out = np.zeros((128, len(b)), np.uint32)
    source = f"#define N {len(b)}\n" + LEFT.replace("INSTRUCTION", instruction)
    left, right = (np.ascontiguousarray(each.astype(np.float16)) for each in (a, b))
    bits = form(m, len(b), 1, 0, 0)
    report = launched(source, left.view(np.uint32), core_matrices(right.view(np.uint8)), out, bits)
    assert report.errors == ()
    return out.view(np.float32)


def test_a_row_of_a_in_tensor_memory_lies_in_the_lane_of_its_sums():
    a, b = numbers(128, 16), numbers(16, 16)
    found = from_lanes("tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p;", a, b, 128)
    assert np.array_equal(found, a @ b.T + 8)


def test_d_is_scaled_by_a_power_of_two():
    a, b = numbers(128, 16), numbers(16, 16)
    found = from_lanes("tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p, 2;", a, b, 128)
    assert np.array_equal(found, a @ b.T + 2)


@pytest.mark.parametrize("m", [32, 64])
def test_a_stationary_product_has_its_columns_in_parts(m):
    """A tcgen05.mma with ``.ws`` divides the columns of the result among parts of the lanes."""
    parts = 128 // m
    a, b = np.tile(numbers(m, 16), (parts, 1)), numbers(64, 16)
    found = from_lanes("tcgen05.mma.ws.cta_group::1.kind::f16 [%0], [%1], %2, %3, p;", a, b, m)
    width = 64 // parts
    product = a[:m] @ b.T + 8
    for part in range(parts):
        assert np.array_equal(found[m * part : m * part + m, :width], product[:, width * part : width * part + width])
    assert (found[:, width:] == 8).all()


EARLY = """
extern "C" __global__ void k(u32* out) {
    __shared__ alignas(128) unsigned short left[128 * 16], right[8 * 16];
    __shared__ alignas(8) u64 bar;
    __shared__ u32 base;
    const int t = threadIdx.x;
    for (int i = t; i < 128 * 16; i += 128) left[i] = 0x3f80;
    right[t] = 0x3f80;
    if (t < 32) ALLOC(&base, 32);
    if (t == 0) INIT(&bar, 1);
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    ST(base + quarter(), 7);
    WAIT_ST();
    __syncthreads();
    if (t < 32 && first()) MMA("f16", base, matrix(left, 128), matrix(right, 8), 8 << 24 | 1 << 17 | 0x490, false);
    __syncthreads();
    u32 early, late;
    LD(early, base + quarter());
    WAIT_LD();
    __syncthreads();
    if (t < 32 && first()) COMMIT(&bar);
    WAIT(&bar, 0);
    LD(late, base + quarter());
    WAIT_LD();
    out[2 * t] = early, out[2 * t + 1] = late;
    __syncthreads();
    if (t < 32) DEALLOC(base, 32);
}
"""


def test_a_read_before_the_commit_finds_the_old_value():
    out = np.zeros((128, 2), np.uint32)
    device(sanitize=False)
    report = launched(EARLY, out, sanitize=False)
    assert report.findings == ()
    assert (out[:, 0] == 7).all()
    assert (out[:, 1].view(np.float32) == 16).all()


def test_a_read_before_the_commit_is_an_error():
    (finding,) = launched(EARLY, np.zeros(256, np.uint32)).errors
    assert finding.kind == "tcgen05-order"
    assert "reads column 0 of tensor memory, which tcgen05.mma" in finding.message
