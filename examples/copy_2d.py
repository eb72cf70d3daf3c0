"""A matrix copied through shared memory by TMA alone, against cuMemcpyDtoD. Every fence and wait is explained.

A few CTAs on each multiprocessor stay there until the end, each of one thread: it only issues copies, so more would
have nothing to do. A CTA owns a ring of tiles, in which loads run ahead of stores, so that both directions stay busy:
when it has started to store tile i, it loads tile i + 1 over the one that it stored before.

What then decides is the order in which memory sees it all. Tiles are taken one by one from a counter, not dealt out
beforehand: CTAs that are dealt their tiles drift apart, and memory is slower in scattered places (94% of cuMemcpyDtoD).
"""

from functools import partial

from _example import start_cases, torch
from cuda.bindings import driver
from cuda.core import LaunchConfig

import cuda_tma

CTAS = 3  # on each multiprocessor: 96 KB in flight hide how long memory takes, and more of them only disturb the order
SMALL = ((1001, 1500),)  # tiles overhang the edges
LARGE = ((16384, 16384), (32768, 32768))  # 1 GiB, 4 GiB
TARGETS = ("sm_90a", "sm_100a", "sm_120a")
SOURCE = r"""
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;

using Window = Tile<FLOAT32, Box<16, 256>>;   // one tile, 16 KB; what the maps below move, and what the host reads
constexpr int STAGES = 2;   // tiles in the ring
constexpr int STORES = 1;   // of which so many may be on their way out; the others are on their way in

extern "C" __global__ void copy(const __grid_constant__ TiledMap<Window> source,
                                const __grid_constant__ TiledMap<Window> target, int tiles_across, int tiles,
                                int* taken) {
    __shared__ Window ring[STAGES];   // its type aligns it, too: TMA writes to multiples of 128 bytes
    __shared__ Barrier full[STAGES];
    __shared__ int tile[STAGES];   // which of the matrix is in this stage

    const auto place = [&](int stage) {
        const int across = tile[stage] % tiles_across, down = tile[stage] / tiles_across;
        return Coordinates{Window::extent(1) * across, Window::extent(0) * down};   // innermost dimension first
    };
    int next = atomicAdd(taken, 1);   // all CTAs take from one counter
    const auto start_load = [&](int stage) {
        tile[stage] = next;
        if (next >= tiles) return;
        next = atomicAdd(taken, 1);   // for the load after this one: the number comes while we wait for other things
        full[stage].arrive_expect_tx(ring[stage]);   // the phase ends when all bytes of the tile have arrived
        // L2 shall make room with what was stored, not with what was loaded: stores then reach memory in their order.
        load(ring[stage], source, full[stage], place(stage), evict_last());
    };

    for (Barrier& barrier : full) barrier.init(1);   // one arrival a phase: the one in start_load
    fence_barrier_init();   // a thread wrote the barriers, the TMA unit counts bytes there: it must see them first
    // No __syncthreads() here or below: there is no other thread.

    for (int stage = 0; stage < STAGES - STORES; ++stage) start_load(stage);
    for (int i = 0; tile[i % STAGES] < tiles; ++i) {
        const int stage = i % STAGES;
        // Wait until the tile is in. Each use of a stage is a phase of its barrier: their parities are 0, 1, 0, ...
        full[stage].wait(i / STAGES % 2);
        // No fence_proxy_async() before the store: that is for tiles that threads wrote. This one TMA wrote and reads.
        store(target, place(stage), ring[stage]);
        commit_group();   // this store is a group, which can be waited for

        // The next load overwrites what store i - STORES reads: wait until it, and all before it, have read (_read),
        // not until they have written to global memory, which takes longer. The last STORES may go on.
        wait_group_read<STORES>();
        start_load((i + STAGES - STORES) % STAGES);
    }
    wait_group_read();   // a CTA that ends gives up its shared memory: not before the last stores have read it
}
"""


def cases(shapes):
    """As `_example` says; what comes after `yield` checks what the last runs left."""
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
        # Tensors, where the kernel has maps: each becomes the map that its parameter's type says.
        launch = cuda_tma.prepare(kernel, config, source, target, across, across * down, taken)

        def copy(launch=launch):
            taken.zero_()
            launch(device.default_stream)

        memcpy = partial(driver.cuMemcpyDtoDAsync, other.data_ptr(), source.data_ptr(), source.nbytes, 0)
        yield f"{source.nbytes / 2**30:.3g} GiB", copy, {"cuMemcpyDtoD": memcpy}, 0, 2 * source.nbytes
        assert torch.equal(target, source) and torch.equal(other, source)


if __name__ == "__main__":
    start_cases(cases, SMALL, LARGE, __doc__)
