"""Load one tile of a matrix through TMA into shared memory, and store it back to global memory, in the smallest kernel.

Only the types in the kernel declare the tile. The parameter states the tile of a load, and `launch` makes the tensor
map from it. The tile crosses the right edge of the matrix. TMA fills the part outside the matrix with zeros.
"""

from _example import start, torch
from cuda.core import LaunchConfig

import cuda_tma

TARGETS = ("sm_90a", "sm_100a", "sm_120a")
SOURCE = r"""
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;

using Window = Tile<FLOAT32, Box<32, 64>>;   // 32 rows, 64 columns, in shared memory

extern "C" __global__ void load_tile(const __grid_constant__ TiledMap<Window> map, int row, int column, float* out) {
    __shared__ Window tile;
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);                                      // completes after one arrival and the expected bytes
        fence_barrier_init();
        full.arrive_expect_tx(tile);
        load(tile, map, full, Coordinates{column, row});   // innermost dimension first
    }
    __syncthreads();                                       // initialized: now other threads may wait
    full.wait(0);
    constexpr int ROWS = Window::extent(0), COLUMNS = Window::extent(1);
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x) out[i] = tile(i / COLUMNS, i % COLUMNS);
}
"""


def main():
    device = cuda_tma.Device()
    device.set_current()
    stream = device.default_stream  # The launch uses the default stream, as torch does.
    kernel = cuda_tma.compile(SOURCE, "load_tile")
    window = cuda_tma.parameters_of(kernel)["map"].map_type
    rows, columns = window.tile_dim

    matrix = torch.rand(1000, 500, device="cuda")
    out = torch.full((rows, columns), torch.nan, device="cuda")
    row, column = 96, 448
    cuda_tma.launch(stream, LaunchConfig(grid=1, block=128), kernel, matrix, row, column, out)

    inside = matrix[row : row + rows, column : column + columns]
    expected = torch.nn.functional.pad(inside, (0, columns - inside.shape[1]))
    assert torch.equal(out, expected)
    print(f"ok: {window} at row {row}, column {column} is {tuple(inside.shape)} of the matrix, and zeros to the right")


if __name__ == "__main__":
    start(main, __doc__)
