"""A sum over two blocks without an atomic operation."""

import numpy as np

import cuda_tma
from cuda_tma import Device, LaunchConfig

SOURCE = r"""
extern "C" __global__ void total(const int* values, int* out) {
    *out += values[blockIdx.x];  // wrong
}
"""
kernel = cuda_tma.compile(SOURCE, "total")
values, out = np.ones(2, np.int32), np.zeros(1, np.int32)
cuda_tma.launch(Device().create_stream(), LaunchConfig(grid=2, block=1), kernel, values, out)
