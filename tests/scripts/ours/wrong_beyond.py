"""A kernel whose threads write beyond the end of the array."""

import numpy as np

import cuda_tma
from cuda_tma import Device, LaunchConfig

SOURCE = r"""
extern "C" __global__ void scale(float* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] *= 2;  // wrong
}
"""
stream = Device().create_stream()
kernel = cuda_tma.compile(SOURCE, "scale")
cuda_tma.launch(stream, LaunchConfig(grid=4, block=256), kernel, np.zeros(1000, np.float32), 1000)
