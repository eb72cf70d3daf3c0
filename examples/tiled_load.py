"""The smallest tiled load: one tile of a matrix, through TMA into shared memory, and out again.

The tile overhangs the right edge of the matrix: TMA fills what lies outside with zeros.
"""

from _example import start, torch
from cuda.core import LaunchConfig, Program, ProgramOptions

import cuda_tma

TARGETS = ("sm_90a", "sm_100a", "sm_120a")
SOURCE = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void load_tile(const __grid_constant__ TensorMap map, int row, int column, float* out) {
    __shared__ alignas(128) float tile[32][64];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);                                      // completes after one arrival, and the bytes it announces
        fence_barrier_init();
        full.arrive_expect_tx(sizeof(tile));
        load(tile, map, full, Coordinates{column, row});   // innermost dimension first
    }
    __syncthreads();                                       // the barrier is initialised: now others may wait on it
    full.wait(0);
    for (int i = threadIdx.x; i < 32 * 64; i += blockDim.x) out[i] = tile[i / 64][i % 64];
}
"""


def main():
    device = cuda_tma.Device()
    device.set_current()
    stream = device.default_stream  # the one that torch uses, too
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}a", include_path=cuda_tma.include_path())
    kernel = Program(SOURCE, "c++", options).compile("cubin").get_kernel("load_tile")

    matrix = torch.rand(1000, 500, device="cuda")
    out = torch.full((32, 64), torch.nan, device="cuda")
    row, column = 96, 448
    descriptor = device.create_tensor_map(matrix, box_dim=(32, 64))  # in the tensor's own order: rows, columns
    cuda_tma.launch(stream, LaunchConfig(grid=1, block=128), kernel, descriptor, row, column, out)

    inside = matrix[row : row + 32, column : column + 64]
    expected = torch.nn.functional.pad(inside, (0, 64 - inside.shape[1]))
    assert torch.equal(out, expected)
    print(
        f"ok: {descriptor} at row {row}, column {column} is matrix[{row}:{row + 32}, {column}:500] and 12 zeros a row"
    )


if __name__ == "__main__":
    start(main, __doc__)
