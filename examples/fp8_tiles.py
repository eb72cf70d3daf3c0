"""Load swizzled 64 x 128 tiles of a float8 tensor, which cuda.core cannot view.

TMA copies elements without interpreting them, so an 8-bit float has the type UINT8. SWIZZLE_128B permutes the 16-byte
chunks of each 128-byte row, so that a column of chunks spans all banks. The type of the tile computes the places of the
chunks.
"""

from _example import start, torch
from cuda.core import LaunchConfig

import cuda_tma

TARGETS = ("sm_90a", "sm_100a", "sm_120a")
SOURCE = r"""
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;

using Window = Tile<UINT8, Box<64, 128>, SWIZZLE_128B>;

extern "C" __global__ void copy_tiles(const __grid_constant__ TiledMap<Window> map, unsigned char* out, int row_bytes) {
    __shared__ Window tile;
    __shared__ Barrier full;
    const int column = Window::extent(1) * blockIdx.x, row = Window::extent(0) * blockIdx.y;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile);
        load(tile, map, full, Coordinates{column, row}, evict_first());   // each byte is read once
    }
    __syncthreads();
    full.wait(0);
    constexpr int CHUNKS = Window::extent(1) / 16;   // per row: the swizzle keeps 16 bytes together
    for (int chunk = threadIdx.x; chunk < Window::extent(0) * CHUNKS; chunk += blockDim.x) {
        const int r = chunk / CHUNKS, byte = chunk % CHUNKS * 16;
        const uint4 bytes = tile.as<uint4>(r, byte);
        *reinterpret_cast<uint4*>(&out[(row + r) * row_bytes + column + byte]) = bytes;
    }
}
"""


def main():
    device = cuda_tma.Device()
    device.set_current()
    kernel = cuda_tma.compile(SOURCE, "copy_tiles")
    window = cuda_tma.parameters_of(kernel)["map"].map_type
    rows, columns = window.tile_dim
    config = LaunchConfig(grid=(512 // columns, 256 // rows), block=128)

    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        weights = torch.randn(256, 512, device="cuda").to(dtype)
        out = torch.zeros(256, 512, dtype=torch.uint8, device="cuda")
        cuda_tma.launch(device.default_stream, config, kernel, weights, out, 512)
        assert torch.equal(out, weights.view(torch.uint8))
        print(f"ok: {dtype} through {window}")


if __name__ == "__main__":
    start(main, __doc__)
