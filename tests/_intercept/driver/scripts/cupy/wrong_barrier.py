"""A reversal through shared memory without a barrier."""

import cupy as cp

reverse = cp.RawKernel(
    r"""
extern "C" __global__ void reverse(float* values) {
    __shared__ float tile[64];
    tile[threadIdx.x] = values[threadIdx.x];
    values[threadIdx.x] = tile[63 - threadIdx.x];  // wrong
}
""",
    "reverse",
)
values = cp.arange(64, dtype=cp.float32)
reverse((1,), (64,), (values,))
