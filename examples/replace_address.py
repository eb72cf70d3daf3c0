"""Use one descriptor for many tensors of the same form, by replace_address, which refuses other tensors.

Tensors that change, such as the batches of a loop, need a new address. Only the address changes, so the new tensor must
equal the old tensor in everything else. Otherwise the descriptor stays unchanged.
"""

from _example import start, torch
from cuda.core import LaunchConfig

import cuda_tma

TARGETS = ("sm_90a", "sm_100a", "sm_120a")
SOURCE = r"""
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;

using Window = Tile<INT32, Box<32, 32>>;
constexpr int ROWS = Window::extent(0), COLUMNS = Window::extent(1);   // a thread for each column

// One block sums one tile; the sums of all tiles add up to the sum of the matrix.
extern "C" __global__ void sum(const __grid_constant__ TiledMap<Window> map, unsigned long long* total) {
    __shared__ Window tile;
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile);
        load(tile, map, full, Coordinates{COLUMNS * blockIdx.x, ROWS * blockIdx.y});
    }
    __syncthreads();
    full.wait(0);
    unsigned long long column = 0;
    for (int row = 0; row < ROWS; ++row) column += tile(row, threadIdx.x);
    atomicAdd(total, column);
}
"""


def main():
    device = cuda_tma.Device()
    device.set_current()
    kernel = cuda_tma.compile(SOURCE, "sum")
    window = cuda_tma.parameters_of(kernel)["map"].map_type
    rows, columns = window.tile_dim

    batches = [torch.randint(1000, (256, 256), dtype=torch.int32, device="cuda") for _ in range(5)]
    totals = torch.zeros(len(batches), dtype=torch.int64, device="cuda")
    descriptor = device.create_tensor_map(batches[0], window.options)
    for index, batch in enumerate(batches):
        descriptor.replace_address(batch)  # The launch copies the map, so no wait is needed.
        config = LaunchConfig(grid=(256 // columns, 256 // rows), block=columns)
        cuda_tma.launch(device.default_stream, config, kernel, descriptor, totals[index:])
    assert totals.tolist() == [int(batch.sum()) for batch in batches]

    before = bytes(descriptor)
    for impostor in (torch.zeros(16, device="cuda"), batches[0].float(), batches[0].T, batches[0][::2]):
        try:
            descriptor.replace_address(impostor)
        except cuda_tma.TensorMapError as error:
            print(f"refused: {error}")
        else:
            raise AssertionError(f"a tensor of shape {tuple(impostor.shape)}, {impostor.dtype} was accepted")
    assert bytes(descriptor) == before
    print(f"ok: {len(batches)} tensors through one descriptor, 4 others refused")


if __name__ == "__main__":
    start(main, __doc__)
