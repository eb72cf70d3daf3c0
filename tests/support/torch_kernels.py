"""The kernels that the tests of torch operators launch."""

from __future__ import annotations

from typing import Any

SCALE = r"""
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using Window = Tile<FLOAT32, Box<32, 32>>;

extern "C" __global__ void scale(const __grid_constant__ TiledMap<Window> x, const __grid_constant__ TiledMap<Window> y,
                                 float factor) {
    __shared__ Window tile;
    __shared__ Barrier full;
    const Coordinates at{int(32 * blockIdx.x), int(32 * blockIdx.y)};
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile);
        load(tile, x, full, at);
    }
    __syncthreads();
    full.wait(0);
    for (int row = 0; row < 32; ++row) tile(row, threadIdx.x) *= factor;
    fence_proxy_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        store(y, at, tile);
        commit_group();
        wait_group<0>();
    }
}
"""
# The kernel adds the sum of column c of x to sums[c], with partial sums in internal memory.
COLUMN_SUMS = r"""
extern "C" __global__ void partial_sums(const float* x, float* partial, int rows, int columns) {
    const int row = blockIdx.x, half = rows / 2;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) {
        float sum = 0;
        for (int r = row * half; r < (row ? rows : half); ++r) sum += x[r * columns + c];
        partial[row * columns + c] = sum;
    }
}
extern "C" __global__ void column_sums(const float* partial, float* sums, int columns) {
    for (int c = threadIdx.x; c < columns; c += blockDim.x) sums[c] += partial[c] + partial[columns + c];
}
"""
ADD_ROWS = r"""
extern "C" __global__ void add_rows(const float* x, float* total, float* squares, int rows, int columns, bool twice) {
    for (int c = threadIdx.x; c < columns; c += blockDim.x) {
        float sum = 0, square = 0;
        for (int r = 0; r < rows; ++r) {
            const float value = x[r * columns + c];
            sum += value;
            square += value * value;
        }
        total[c] += twice ? 2 * sum : sum;
        squares[c] = square;
    }
}
"""


def scale(compile: Any) -> Any:
    """Compute y = factor * x, in tiles of 32 x 32."""
    return compile(SCALE, "scale")


def racing_scale(compile: Any) -> Any:
    """Compute y = factor * x without a fence between the proxies, which is a race."""
    return compile(SCALE.replace("fence_proxy_async();", ""), "scale")


def partial_sums(compile: Any) -> Any:
    """Store the column sums of the upper half of the rows, and of the lower half, to `partial`."""
    return compile(COLUMN_SUMS, "partial_sums")


def column_sums(compile: Any) -> Any:
    """Add the sums of both halves to `sums`."""
    return compile(COLUMN_SUMS, "column_sums")


def add_rows(compile: Any) -> Any:
    """Add the column sums to `total`, and store the column sums of squares to `squares`."""
    return compile(ADD_ROWS, "add_rows")
