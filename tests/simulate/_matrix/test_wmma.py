"""Tests of ``nvcuda::wmma`` of CUDA C++ on the simulator. The results of every type and shape equal NumPy's results."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

from cuda_tma import simulate
from cuda_tma.simulate import Config
from tests.simulate._third_party import TOOLKIT

SOURCE = r"""
#include <mma.h>
#include <cuda_bf16.h>
using namespace nvcuda;
// out = 2 * (a * b + c), a warp for each matrix; `a` by rows, `b` by rows or columns, sums by columns.
template <int M, int N, int K, typename Type, typename Order, bool ROWS, typename In, typename Out>
__device__ void multiply(const In* a, const In* b, const Out* c, Out* out) {
    const int warp = threadIdx.x / 32;
    wmma::fragment<wmma::matrix_a, M, N, K, Type, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, M, N, K, Type, Order> right;
    wmma::fragment<wmma::accumulator, M, N, K, Out> sums;
    wmma::load_matrix_sync(left, a + warp * M * K, K);
    wmma::load_matrix_sync(right, b + warp * K * N, ROWS ? N : K);
    wmma::load_matrix_sync(sums, c + warp * M * N, M, wmma::mem_col_major);
    wmma::mma_sync(sums, left, right, sums);
    for (int i = 0; i < sums.num_elements; ++i) sums.x[i] = sums.x[i] * Out(2);
    wmma::store_matrix_sync(out + warp * M * N, sums, M, wmma::mem_col_major);
}
"""
# Each row contains the name in wmma, the type in memory and the NumPy type, for the operands and for the accumulators.
TYPES = {
    "half": ("half", "half", np.float16, ("float", np.float32)),
    "half to half": ("half", "half", np.float16, ("half", np.float16)),
    "bf16": ("__nv_bfloat16", "__nv_bfloat16", bfloat16, ("float", np.float32)),
    "tf32": ("wmma::precision::tf32", "float", np.float32, ("float", np.float32)),
    "s8": ("signed char", "signed char", np.int8, ("int", np.int32)),
    "u8": ("unsigned char", "unsigned char", np.uint8, ("int", np.int32)),
    "double": ("double", "double", np.float64, ("double", np.float64)),
}
SQUARE, LOW, HIGH = (16, 16, 16), (8, 32, 16), (32, 8, 16)
# The last value of each case is true if the matrix B is row-major.
CASES = [
    ("half", SQUARE, True), ("half", LOW, False), ("half", HIGH, True), ("half to half", SQUARE, False),
    ("bf16", LOW, True), ("bf16", HIGH, False), ("s8", SQUARE, True), ("s8", LOW, False), ("u8", HIGH, True),
    ("tf32", (16, 16, 8), False), ("double", (8, 8, 4), True),
]  # fmt: skip
WARPS = 3


def source():
    """Return CUDA C++ with one kernel for each case of type, shape and layout."""
    text = SOURCE
    for number, (name, (m, n, k), rows) in enumerate(CASES):
        kind, element, _, (total, _) = TYPES[name]
        order = "wmma::row_major, true" if rows else "wmma::col_major, false"
        text += (
            f'extern "C" __global__ void product_{number}(const {element}* a, const {element}* b, const {total}* c, '
            f"{total}* out) {{ multiply<{m}, {n}, {k}, {kind}, {order}>(a, b, c, out); }}\n"
        )
    return text


@pytest.mark.skipif(not TOOLKIT, reason="the CUDA toolkit's headers are not here")
def test_products():
    gpu, draw = simulate.Device(), np.random.default_rng(3)
    ptx = gpu.compile(source(), "product_0", options=[f"-I{root}" for root in TOOLKIT]).ptx
    for number, (name, (m, n, k), rows) in enumerate(CASES):
        _, _, dtype, (_, sums) = TYPES[name]
        a, b = (draw.integers(-4 if name != "u8" else 0, 5, (WARPS, *shape)) for shape in ((m, k), (k, n)))
        c = draw.integers(-9, 9, (WARPS, m, n))
        stored = (b if rows else b.swapaxes(1, 2)).astype(dtype, order="C")
        columns, out = c.swapaxes(1, 2).astype(sums, order="C"), np.zeros((WARPS, n, m), sums)
        kernel = gpu.load(ptx, f"product_{number}")
        gpu.launch(Config(1, 32 * WARPS), kernel, a.astype(dtype), stored, columns, out).raise_for_errors()
        assert np.array_equal(out.swapaxes(1, 2).astype(np.int64), 2 * (a @ b + c)), CASES[number]
