"""The kernels that the tests of CUDA graphs launch, and their arguments."""

import functools

import pytest
from cuda import core

import cuda_tma

torch = pytest.importorskip("torch")

SOURCE = """
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using Window = Tile<FLOAT32, Box<16, 64>>;
using Map = TiledMap<Window>;

extern "C" __global__ void copy(const __grid_constant__ Map from, const __grid_constant__ Map to) {
    __shared__ Window tile;
    __shared__ Barrier full;
    const Coordinates at{int(blockIdx.x) * 64, int(blockIdx.y) * 16};
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile);
        load(tile, from, full, at);
        full.wait(0);
        store(to, at, tile);
        commit_group();
        wait_group();
    }
}

// Store the values that arrive of a map, and of a number.
extern "C" __global__ void put(const __grid_constant__ TensorMap map, unsigned long long* out, int number) {
    for (int i = 0; i < 16; i++) out[i] = map.opaque[i];
    out[16] = number;
}

extern "C" __global__ void put_first(const TensorMap* maps, unsigned long long* out) {
    for (int i = 0; i < 16; i++) out[i] = maps[0].opaque[i];
}

extern "C" __global__ void cluster_size(int* out) {
    unsigned size;
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
    if (blockIdx.x == 0 && threadIdx.x == 0) { out[0] = size; out[1] = gridDim.x; }
}
"""
SHAPE = (64, 128)
GRID = core.LaunchConfig(grid=(2, 4), block=32)
ONE = core.LaunchConfig(grid=1, block=32)


@functools.cache
def kernel(name):
    """Return the Kernel object of a name. Each name has one object, because a graph node refers to the object."""
    return cuda_tma.compile(SOURCE, name)


def random():
    x = torch.randn(SHAPE, device="cuda")
    torch.cuda.synchronize()
    return x


def zeros(*shape, dtype=torch.float32):
    x = torch.zeros(*(shape or SHAPE), dtype=dtype, device="cuda")
    torch.cuda.synchronize()
    return x


def map_of(tensor):
    return cuda_tma.create_tensor_map(tensor, box_dim=(16, 64))


def words(tensor):
    """Return the arguments of the kernel `put`, which are the tensor map and a number."""
    found = tensor.cpu().numpy()
    return found[:16].tobytes(), int(found[16])


def run(executable, stream):
    executable.launch(stream)
    stream.sync()
