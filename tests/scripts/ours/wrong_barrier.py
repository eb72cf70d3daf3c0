"""A kernel in which a thread reads its neighbor's value in shared memory without a barrier."""

import numpy as np

import cuda_tma
from cuda_tma import Device, LaunchConfig

SOURCE = r"""
extern "C" __global__ void shift(int* out) {
    __shared__ int values[128];
    values[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = values[(threadIdx.x + 32) % 128];  // wrong
}
"""
kernel = cuda_tma.compile(SOURCE, "shift")
cuda_tma.launch(Device().create_stream(), LaunchConfig(grid=1, block=128), kernel, np.zeros(128, np.int32))
