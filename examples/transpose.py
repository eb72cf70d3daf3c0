"""Transpose a matrix through shared memory, without bank conflicts, in comparison with torch and with a copy.

TMA loads a tile, threads transpose the tile, and TMA stores it. Read copy_2d.py first. Between load and store, the
threads need waits and fences that a copy by TMA alone does not need. This kernel needs no ring and no counter, because
each tile has its own CTA. Several CTAs share a multiprocessor, so that some load while others store. The GPU starts
CTAs in order as others end.

The accesses have no bank conflicts. Lane l of a warp reads 16 bytes of row l. Rows are 128 bytes apart, which is the
width of all 32 banks. In a plain tile, all lanes would therefore use the same 4 banks. SWIZZLE_128B moves the 16 bytes
to another place in each of 8 successive rows, and hardware serves 8 lanes with successive rows at a time. Then 32 lanes
write consecutive words. The function `cases` asserts both properties.
"""

from functools import partial

from _example import start_cases, torch
from cuda.bindings import driver
from cuda.core import LaunchConfig

import cuda_tma
from cuda_tma.smem import bank_conflicts

SMALL = ((1004, 1500),)  # The tiles cross the edges of the small matrix.
LARGE = ((16384, 16384), (32768, 32768))  # The sizes of the matrices are 1 GiB and 4 GiB.
TARGETS = ("sm_90a", "sm_100a", "sm_120a")
SOURCE = r"""
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;

constexpr int SIZE = 64;   // rows and columns of a tile, 16 KB
constexpr int THREADS = 512;
using In = Tile<FLOAT32, Box<SIZE, SIZE>, SWIZZLE_128B>;   // two boxes, as the swizzle permutes 128 bytes, 32 floats
using Out = Tile<FLOAT32, Box<SIZE, SIZE>>;

extern "C" __global__ void __launch_bounds__(THREADS)
transpose(const __grid_constant__ TiledMap<In, OOB_FILL_NONE, L2_PROMOTION_256B> source,
          const __grid_constant__ TiledMap<Out> target) {
    __shared__ In in;
    __shared__ Out out;
    __shared__ Barrier full;
    const int row = SIZE * blockIdx.x, column = SIZE * blockIdx.y;
    const bool leader = threadIdx.x == 0;   // issues all copies

    if (leader) {
        full.init(1);           // one arrival: the one two lines below
        fence_barrier_init();   // makes the initialized barrier visible to the TMA unit before it counts bytes there
        full.arrive_expect_tx(in);
        // Both boxes. As in copy_2d.py, L2 evicts stored data first.
        load(in, source, full, Coordinates{column, row}, evict_last());
    }
    __syncthreads();   // the others wait on the barrier next: not before it is initialized
    full.wait(0);      // every thread that reads the tile waits, which makes TMA's writes visible to it

    for (int i = threadIdx.x; i < SIZE * SIZE / 4; i += THREADS) {
        const int r = i % SIZE, c = i / SIZE * 4;   // four floats of row r, from column c
        const float4 four = in.as<float4>(r, c);    // at their swizzled place, together
        out(c, r) = four.x, out(c + 1, r) = four.y, out(c + 2, r) = four.z, out(c + 3, r) = four.w;
    }
    fence_proxy_async();   // each writer: makes its writes visible to the TMA unit, which uses the async proxy
    __syncthreads();       // all threads have executed the fence, and `out` is complete
    if (!leader) return;
    store(target, Coordinates{row, column}, out);
    commit_group();
    wait_group_read();   // shared memory ends with its CTA: wait until the store has read it
}
"""


def cases(shapes):
    """Yield cases as `_example` describes them. The code after `yield` checks the results of the last runs."""
    device = cuda_tma.Device()
    device.set_current()
    kernel = cuda_tma.compile(SOURCE, "transpose", constants={"threads": "THREADS"})
    parameters = cuda_tma.parameters_of(kernel)
    loaded, stored = parameters["source"].map_type, parameters["target"].map_type
    size, threads = stored.tile_dim[0], parameters.constants["threads"]

    for rows, columns in shapes:
        source = torch.rand(rows, columns, device="cuda")
        target, other = source.new_full((columns, rows), torch.nan), torch.full_like(source, torch.nan)
        assert bank_conflicts(cuda_tma.params_of(source, loaded.options), "ldmatrix") == 1
        assert bank_conflicts(cuda_tma.params_of(target, stored.options), "row") == 1
        config = LaunchConfig(grid=(-(-rows // size), -(-columns // size)), block=threads)

        transpose = partial(cuda_tma.prepare(kernel, config, source, target), device.default_stream)
        rivals = {  # A copy of the same size is the upper bound of the speed.
            "torch.Tensor.contiguous": source.t().contiguous,
            "cuMemcpyDtoD": partial(driver.cuMemcpyDtoDAsync, other.data_ptr(), source.data_ptr(), source.nbytes, 0),
        }
        yield f"{source.nbytes / 2**30:.3g} GiB", transpose, rivals, 0, 2 * source.nbytes
        assert torch.equal(target, source.t()) and torch.equal(other, source)


if __name__ == "__main__":
    start_cases(cases, SMALL, LARGE, __doc__)
