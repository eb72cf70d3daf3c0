"""Kernels that record their arguments, for the tests of launches."""

import pytest
from cuda import core

import cuda_tma

from . import modules

torch = pytest.importorskip("torch")

SOURCE = r"""
#include <cuda_tma/tma.cuh>
struct Pair { int first; double second; };
struct Complex { float re, im; };

template <typename T> __global__ void put(T value, T* out) { *out = value; }
extern "C" __global__ void put_float(float value, float* out) { *out = value; }
extern "C" __global__ void put_map(const __grid_constant__ cuda_tma::TensorMap map, unsigned long long* out) {
    for (int i = 0; i < 16; i++) out[i] = map.opaque[i];
}
__global__ void mixed(signed char a, unsigned short b, int c, long long d, float e, double f, bool g, Pair h, float* i,
                      double* out) {
    double values[] = {double(a), double(b), double(c), double(d), e, f, double(g), double(h.first), h.second, *i};
    for (int k = 0; k < 10; k++) out[k] = values[k];
}
extern "C" __global__ void nothing() {}
extern "C" __global__ void cluster_size(int* out) {
    unsigned n; asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(n));
    if (blockIdx.x == 0 && threadIdx.x == 0) { out[0] = n; out[1] = gridDim.x; }
}
"""
# The kernel copies a matrix tile by tile. The template parameter Window is the tile of a block.
COPY_TILES = """
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using Window = Tile<TYPE, Box<ROWS, COLUMNS>, SWIZZLE>;
using Map = TiledMap<Window>;

extern "C" __global__ void copy(const __grid_constant__ Map from, const __grid_constant__ Map to) {
    __shared__ Window tile;
    __shared__ Barrier full;
    const Coordinates at{int(blockIdx.x) * COLUMNS, int(blockIdx.y) * ROWS};
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile);
        load(tile, from, full, at);
        full.wait(0);
        store(to, at, tile);
        commit_group();
        wait_group_read();
    }
}
"""

# The program runs a kernel in a stream that waits for a Python function. The Python function has begun when hold()
# returns.
HOLD = """
import ctypes, time

log = []
@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def host_function(_):
    log.append("begins")
    time.sleep(1)
    log.append("ends")

def hold(stream):
    launched = ctypes.CDLL("libcuda.so.1").cuLaunchHostFunc(ctypes.c_void_p(int(stream.handle)), host_function, None)
    assert launched == 0
    while not log:
        time.sleep(0.01)
"""

TYPES = {"signed char": "int8", "unsigned short": "uint16", "int": "int32", "unsigned long long": "uint64",
         "float": "float32", "double": "float64", "bool": "bool"}  # fmt: skip

CONFIG = core.LaunchConfig(grid=1, block=1)


def module(device):
    names = [f"put<{name}>" for name in TYPES] + ["put<Complex>", "mixed"]
    return modules.compiled(SOURCE, device.arch, names)


def compiled(device, name, source):
    return modules.compiled(source, device.arch).get_kernel(name)


def put(kernel, stream, name, value, dtype):
    """Return the bytes that a kernel received for an argument."""
    out = torch.zeros(1, dtype=getattr(torch, dtype), device="cuda")
    torch.cuda.synchronize()
    cuda_tma.launch(stream, CONFIG, kernel, value, out)
    stream.sync()
    return out.cpu().numpy()[0]
