"""Tests of the tensor memory after tcgen05.cp in all shapes, after tcgen05.shift, and after loads with a reduction."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate._tensor_memory.copy_shapes import shifted

from ._kernels import core_matrices, device, launched

# The kernel returns the cells of columns 0 to 15 after an operation. Each cell that the operation does not write
# contains 9.
SOURCE = """
extern "C" __global__ void k(const uint4* rows, u32* out) {
    __shared__ alignas(128) uint4 tile[ROWS * 2];
    __shared__ alignas(8) u64 bar;
    __shared__ u32 base;
    const int t = threadIdx.x;
    for (int i = t; i < ROWS * 2; i += 128) tile[i] = rows[i];
    if (t < 32) ALLOC(&base, 32);
    if (t == 0) INIT(&bar, 1);
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    for (u32 c = 0; c < 16; ++c) ST(base + quarter() + c, START);
    WAIT_ST();
    __syncthreads();
    if (t < 32 && first()) {
        OPERATION
        COMMIT(&bar);
    }
    WAIT(&bar, 0);
    for (u32 c = 0; c < 16; ++c) {
        u32 x;
        LD(x, base + quarter() + c);
        WAIT_LD();
        out[t * 16 + c] = x;
    }
    __syncthreads();
    if (t < 32) DEALLOC(base, 32);
}
"""
CP = 'asm volatile("tcgen05.cp.cta_group::1.SHAPE [%0], %1;" :: "r"(base), "l"(matrix(tile, ROWS)) : "memory");'
SHIFT = 'asm volatile("tcgen05.shift.cta_group::1.down [%0];" :: "r"(base) : "memory");'


def cells(operation: str, rows: np.ndarray, start: str = "9") -> np.ndarray:
    source = f"#define ROWS {len(rows)}\n" + SOURCE.replace("OPERATION", operation).replace("START", start)
    out = np.zeros((128, 16), np.uint32)
    assert launched(source, core_matrices(rows), out).findings == ()
    return out


def rows_of(count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 256, (max(8, count), 32), np.uint8)


# For each lane, the array contains the index of the received row, or -1.
LANES = {
    "128x256b": (128, 8, np.arange(128)),
    "128x128b": (128, 4, np.arange(128)),
    "4x256b": (4, 8, np.where(np.arange(128) % 32 == 0, np.arange(128) // 32, -1)),
    "64x128b.warpx2::02_13": (64, 4, np.arange(128) % 64),
    "64x128b.warpx2::01_23": (64, 4, np.arange(128) // 64 * 32 + np.arange(128) % 32),
    "32x128b.warpx4": (32, 4, np.arange(128) % 32),
}


@pytest.mark.parametrize("shape", LANES)
def test_a_copy_writes_its_rows(shape):
    count, columns, row = LANES[shape]
    rows = rows_of(count)
    expected = np.full((128, 16), 9, np.uint32)
    expected[row >= 0, :columns] = rows.view(np.uint32)[row[row >= 0], :columns]
    assert np.array_equal(cells(CP.replace("SHAPE", shape), rows), expected)


def test_the_multicast_may_precede_the_shape():
    rows = rows_of(32)
    found = cells(CP.replace("SHAPE", "warpx4.32x128b"), rows)
    assert np.array_equal(found[:32, :4], rows.view(np.uint32)[:, :4])


def test_a_shift_moves_each_lane_but_the_last_of_a_quarter():
    found = cells(SHIFT, rows_of(8), "t")
    lane = np.arange(128)
    assert np.array_equal(found[:, :8], np.broadcast_to(np.where(lane % 32 < 31, lane + 1, lane)[:, None], (128, 8)))
    assert np.array_equal(found[:, 8:], np.broadcast_to(lane[:, None], (128, 8)))


def test_shifted_cells():
    assert shifted(np.arange(32)[None])[0, -2:].tolist() == [31, 31]


@pytest.mark.parametrize("qualifier", ["64x128b", "32x128b", "128x256b.warpx4"])
def test_another_copy_is_not_known(qualifier):
    text = ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k() { .reg .b32 %a; .reg .b64 %b;\n"
    with pytest.raises(simulate.UnsupportedInstruction):
        device().load(f"{text}tcgen05.cp.cta_group::1.{qualifier} [%a], %b;\nret; }}", "k")


REDUCE = """
extern "C" __global__ void k(float* out) {
    __shared__ u32 base;
    const int t = threadIdx.x;
    if (t < 32) ALLOC(&base, 32);
    __syncthreads();
    ST(base + quarter(), __float_as_uint(t - 3.f));
    ST(base + quarter() + 1, __float_as_uint(-5.f));
    WAIT_ST();
    float x, y, z;
    asm volatile("tcgen05.ld.red.sync.aligned.32x32b.x2.WORDS {%0, %1}, %2, [%3];"
        : "=f"(x), "=f"(y), "=f"(z) : "r"(base + quarter()) : "memory");
    WAIT_LD();
    out[t] = z;
    __syncthreads();
    if (t < 32) DEALLOC(base, 32);
}
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("max.f32", lambda x: np.maximum(x, -5)),
        ("min.f32", lambda x: np.minimum(x, -5)),
        ("max.abs.f32", lambda x: np.maximum(np.abs(x), 5)),
    ],
)
def test_a_load_that_reduces(words, expected):
    out = np.zeros(128, np.float32)
    assert launched(REDUCE.replace("WORDS", words), out).findings == ()
    assert np.array_equal(out, expected(np.arange(128, dtype=np.float32) - 3))


@pytest.mark.parametrize(("lane", "readers", "is_found"), [(0, 0, True), (32, 0, False), (32, 1, True), (32, 3, True)])
def test_a_shift_touches_the_lanes_from_its_address_on(lane, readers, is_found):
    """A tcgen05 load without a wait for a tcgen05.shift is wrong only if the shift moves lanes that the load reads."""
    source = "#define ROWS 8\n" + SOURCE.replace("START", "9")
    source = source.replace("OPERATION", SHIFT.replace('"r"(base)', f'"r"(base + ({lane} << 16))'))
    source = source.replace("WAIT(&bar, 0);\n", f"if (t / 32 == {readers})\n")
    assert source.count("if (t / 32 ==") == 1
    findings = launched(source, core_matrices(rows_of(8)), np.zeros((128, 16), np.uint32)).findings
    assert any(each.kind == "tcgen05-order" and "tcgen05.ld of thread" in each.message for each in findings) == is_found
