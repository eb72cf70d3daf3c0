"""A histogram in an elementwise kernel that adds without an atomic operation."""

import cupy as cp

histogram = cp.RawKernel(
    r"""
extern "C" __global__ void histogram(const long long* values, int* counts, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n) counts[values[at]] += 1;  // wrong
}
""",
    "histogram",
)
values = cp.arange(100, dtype=cp.int64) % 8
counts = cp.zeros(8, dtype=cp.int32)
histogram((1,), (128,), (values, counts, 100))
