"""Maps in device memory: a kernel picks one by its index."""

import numpy as np
import pytest
from cuda import core

import cuda_tma

torch = pytest.importorskip("torch")

SOURCE = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

// CTA i loads tile (0, 0) of map i and copies it out.
extern "C" __global__ void first_tiles(const TensorMap* maps, float* out) {
    __shared__ alignas(128) float tile[16 * 32];
    __shared__ Barrier full;
    const TensorMap& map = maps[blockIdx.x];
    if (threadIdx.x == 0) {
        fence_tensor_map_acquire(map);  // the maps were written through the generic proxy, by a copy
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(sizeof(tile));
        load(tile, map, full, Coordinates{0, 0});
    }
    __syncthreads();
    full.wait(0);
    for (int i = threadIdx.x; i < 16 * 32; i += blockDim.x) out[blockIdx.x * 16 * 32 + i] = tile[i];
}
"""
OPTIONS = cuda_tma.TensorMapOptions((16, 32))


@pytest.fixture(scope="module")
def kernel(device):
    options = core.ProgramOptions(std="c++17", arch=f"sm_{device.arch}", include_path=cuda_tma.include_path())
    return core.Program(SOURCE, "c++", options).compile("cubin").get_kernel("first_tiles")


def first_tiles(kernel, stream, maps):
    out = torch.zeros(len(maps), 16, 32, device="cuda")
    torch.cuda.synchronize()
    on_device = maps.upload(stream)
    cuda_tma.launch(stream, core.LaunchConfig(grid=len(maps), block=128), kernel, on_device, out)
    stream.sync()
    return out


def test_each_cta_loads_with_its_own_map(kernel, stream):
    tensors = [torch.randn(16 + n, 64, device="cuda") for n in range(64)]
    maps = cuda_tma.create_tensor_maps(tensors, OPTIONS)
    assert torch.equal(first_tiles(kernel, stream, maps), torch.stack([x[:16, :32] for x in tensors]))
    assert bytes(maps) == b"".join(bytes(cuda_tma.create_tensor_map(x, OPTIONS)) for x in tensors)


def test_ten_thousand_addresses_of_one_geometry(kernel, stream):
    pool = torch.randn(10_000, 16, 32, device="cuda")
    addresses = pool.data_ptr() + np.arange(10_000, dtype=np.uint64) * 16 * 32 * 4
    maps = cuda_tma.create_tensor_maps(pool[0], OPTIONS, addresses=addresses)
    assert torch.equal(first_tiles(kernel, stream, maps), pool)
    maps.replace_addresses(addresses[::-1])
    assert torch.equal(first_tiles(kernel, stream, maps), pool.flip(0))
