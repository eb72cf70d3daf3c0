"""A copy whose barrier expects half of the bytes that the copy delivers."""

import numpy as np

import cuda_tma
from cuda_tma import Device, LaunchConfig

SOURCE = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
extern "C" __global__ void take(const __grid_constant__ TensorMap source, float* out) {
    __shared__ alignas(128) float tile[32 * 32];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(sizeof tile / 2);
        load(tile, source, full, Coordinates{0, 0});
    }
    __syncthreads();
    full.wait(0);  // wrong
    out[threadIdx.x] = tile[threadIdx.x];
}
"""
device = Device()
array, out = np.ones((32, 32), np.float32), np.zeros(128, np.float32)
source = device.create_tensor_map(array, box_dim=(32, 32))
kernel = cuda_tma.compile(SOURCE, "take")
cuda_tma.launch(device.create_stream(), LaunchConfig(grid=1, block=128), kernel, source, out)
