"""A program with right launches of cuda_tma, which use a tensor map, a typed map and device memory."""

import numpy as np

import cuda_tma
from cuda_tma import Device, LaunchConfig, StridedMemoryView

COPY = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
extern "C" __global__ void copy(const __grid_constant__ TensorMap source, float* out) {
    __shared__ alignas(128) float tile[32 * 32];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(sizeof tile);
        load(tile, source, full, Coordinates{0, blockIdx.x * 32});
    }
    __syncthreads();
    full.wait(0);
    for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) out[blockIdx.x * 1024 + i] = tile[i];
}
"""
SCALE = 'extern "C" __global__ void scale(float* values, float by) { values[threadIdx.x] *= by; }'

device = Device()
device.set_current()
stream = device.create_stream()
assert device.compute_capability == (9, 0)
array = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)

scale = cuda_tma.compile(SCALE, "scale")
values = np.arange(32, dtype=np.float32)
cuda_tma.launch(stream, LaunchConfig(grid=1, block=32), scale, values, 2.0)
step = cuda_tma.prepare(scale, LaunchConfig(grid=1, block=32), values, 3.0)
step(stream)
step[1] = 0.5
step(stream)
stream.sync()
np.testing.assert_array_equal(values, np.arange(32, dtype=np.float32) * 3)

copy = cuda_tma.compile(COPY, "copy")
for source in (
    device.create_tensor_map(array, box_dim=(32, 32)),
    StridedMemoryView.from_any_interface(array, stream_ptr=-1).as_tensor_map(box_dim=(32, 32)),
):
    out = np.zeros_like(array)
    cuda_tma.launch(stream, LaunchConfig(grid=2, block=128), copy, source, out)
    np.testing.assert_array_equal(out, array)
buffer = device.allocate(out.nbytes, stream=stream)
cuda_tma.launch(stream, LaunchConfig(grid=2, block=128), copy, source, buffer)
np.testing.assert_array_equal(np.from_dlpack(buffer).view(np.float32), array.ravel())
cuda_tma.synchronize(stream)
