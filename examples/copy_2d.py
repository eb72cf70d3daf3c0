"""Copy a matrix through shared memory with TMA only, in comparison with cuMemcpyDtoD.

Comments explain every fence and wait.

A few CTAs of one thread stay on each multiprocessor until the end. The thread only issues copies, so more threads would
have no work. A CTA owns a ring of tiles, in which loads run ahead of stores, so that both directions stay busy. After
the CTA starts the store of tile i, it loads tile i + 1 over the tile that it stored before.

The order of accesses in memory then determines the speed. CTAs take tiles one by one from a counter. With fixed tiles,
CTAs would access distant places at the same time, and memory would be slower (94% of cuMemcpyDtoD).
"""

from functools import partial

from _example import start_cases, torch
from cuda.bindings import driver
from cuda.core import LaunchConfig

import cuda_tma

# Each multiprocessor runs three CTAs, because 96 KB in flight hide the latency of memory.
CTAS = 3
SMALL = ((1001, 1500),)  # The tiles cross the edges of the small matrix.
LARGE = ((16384, 16384), (32768, 32768))  # The sizes of the matrices are 1 GiB and 4 GiB.
TARGETS = ("sm_90a", "sm_100a", "sm_120a")
SOURCE = r"""
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;

using Window = Tile<FLOAT32, Box<16, 256>>;   // one tile, 16 KB; the maps below have this type, and so does the host
constexpr int STAGES = 2;   // tiles in the ring
constexpr int STORES = 1;   // the number of tiles with a store in flight; the others have loads

extern "C" __global__ void copy(const __grid_constant__ TiledMap<Window> source,
                                const __grid_constant__ TiledMap<Window> target, int tiles_across, int tiles,
                                int* taken) {
    __shared__ Window ring[STAGES];   // its type aligns it, too: TMA writes to multiples of 128 bytes
    __shared__ Barrier full[STAGES];
    __shared__ int tile[STAGES];   // the index of the tile in this stage

    const auto place = [&](int stage) {
        const int across = tile[stage] % tiles_across, down = tile[stage] / tiles_across;
        return Coordinates{Window::extent(1) * across, Window::extent(0) * down};   // innermost dimension first
    };
    int next = atomicAdd(taken, 1);   // all CTAs take from one counter
    const auto start_load = [&](int stage) {
        tile[stage] = next;
        if (next >= tiles) return;
        next = atomicAdd(taken, 1);   // for the load after this one: the result arrives during other waits
        full[stage].arrive_expect_tx(ring[stage]);   // the phase ends when all bytes of the tile have arrived
        // L2 evicts stored data, not loaded data: stores then reach memory in their order.
        load(ring[stage], source, full[stage], place(stage), evict_last());
    };

    for (Barrier& barrier : full) barrier.init(1);   // one arrival per phase: the one in start_load
    fence_barrier_init();   // makes the barriers visible to the TMA unit, which counts bytes there
    // No __syncthreads() here or below: the CTA has one thread.

    for (int stage = 0; stage < STAGES - STORES; ++stage) start_load(stage);
    for (int i = 0; tile[i % STAGES] < tiles; ++i) {
        const int stage = i % STAGES;
        // Wait for the tile. Each use of a stage is a phase of its barrier: their parities are 0, 1, 0, ...
        full[stage].wait(i / STAGES % 2);
        // No fence_proxy_async() before the store: only tiles that threads write need it, and TMA wrote this one.
        store(target, place(stage), ring[stage]);
        commit_group();   // this store is a group, for wait_group_read

        // The next load overwrites the tile that store i - STORES reads. Wait until it, and all before it, have read
        // (_read), not until they have written to global memory, which takes longer. The last STORES may continue.
        wait_group_read<STORES>();
        start_load((i + STAGES - STORES) % STAGES);
    }
    wait_group_read();   // shared memory ends with its CTA: wait until the last stores have read it
}
"""


def cases(shapes):
    """Yield cases as `_example` describes them. The code after `yield` checks the results of the last runs."""
    device = cuda_tma.Device()
    device.set_current()
    kernel = cuda_tma.compile(SOURCE, "copy")
    tile_dim = cuda_tma.parameters_of(kernel)["source"].map_type.tile_dim
    config = LaunchConfig(grid=CTAS * device.properties.multiprocessor_count, block=1)
    taken = torch.zeros(1, device="cuda", dtype=torch.int32)

    for shape in shapes:
        source = torch.rand(shape, device="cuda")
        target, other = (torch.full_like(source, torch.nan) for _ in range(2))
        down, across = (-(-extent // of_tile) for extent, of_tile in zip(shape, tile_dim, strict=True))
        # The launch creates the tensor map for each tensor that is passed in place of a map.
        launch = cuda_tma.prepare(kernel, config, source, target, across, across * down, taken)

        def copy(launch=launch):
            taken.zero_()
            launch(device.default_stream)

        memcpy = partial(driver.cuMemcpyDtoDAsync, other.data_ptr(), source.data_ptr(), source.nbytes, 0)
        yield f"{source.nbytes / 2**30:.3g} GiB", copy, {"cuMemcpyDtoD": memcpy}, 0, 2 * source.nbytes
        assert torch.equal(target, source) and torch.equal(other, source)


if __name__ == "__main__":
    start_cases(cases, SMALL, LARGE, __doc__)
