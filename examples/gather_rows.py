"""Gather rows of a table by index, as an embedding does, in comparison with torch.index_select.

The tensor map's box is one row, so a load at Coordinates{0, index} reads any row. Each lane starts one load. The rows
of a tile are consecutive in shared memory, and one store writes the rows to the output. Compute capability 10 has an
instruction for four rows at a time (the tests assemble it, and no GPU has run it). TMA does not interpret elements. The
table is viewed as int64, so that one box, at most 256 elements wide, contains a row of up to 2 KB of any type.

An index outside the table costs no memory access, and gives a row of zeros, as a padding index should.
"""

from functools import partial

from _example import dtype_of, start_cases, torch
from cuda.core import LaunchConfig

import cuda_tma

# A case is (rows of the table, rows of the output). In the small case, the last tile is partial; in the large case, the
# table and the output have 1 GiB each.
SMALL, LARGE = ((5003, 1003),), ((1 << 20, 1 << 20),)
TARGETS = ("sm_90a", "sm_100a", "sm_120a")
SOURCE = r"""
#include <cuda_tma/sm100.cuh>
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;

constexpr int ROWS = 8, WIDTH = 128;        // one tile, 8 KB: a lane for each row of 1024 bytes
using Row = Tile<INT64, Box<1, WIDTH>>;     // the box of a load
using Rows = Tile<INT64, Box<ROWS, WIDTH>>; // the box of a store
constexpr int STAGES = 3, STORES = 1;       // tiles in the ring, and the number of them that may be stores in flight

extern "C" __global__ void gather(const __grid_constant__ TiledMap<Row> table,
                                  const __grid_constant__ TiledMap<Rows> target, const int* indices, int count,
                                  int tiles) {
    __shared__ Rows ring[STAGES];
    __shared__ Barrier full[STAGES];
    const int lane = threadIdx.x;
    const bool leader = lane == 0;   // this lane expects the bytes, waits for them and stores them
    const int mine = (tiles - 1 - int(blockIdx.x) + int(gridDim.x)) / int(gridDim.x);
    const auto first_row = [&](int i) { return ROWS * int(blockIdx.x + i * gridDim.x); };
    const auto index_of = [&](int i) {
        const int row = first_row(i) + lane;
        return i < mine && lane < ROWS && row < count ? indices[row] : -1;   // -1 is outside: a row of zeros
    };
    const auto start_load = [&](int i, int index) {
        if (i >= mine) return;
        if (leader) full[i % STAGES].arrive_expect_tx(ring[0]);
        __syncwarp();   // the expect_tx precedes the first bytes, and the leader has waited for the stage
        const CachePolicy keep = evict_last();   // other loads may read these rows again: L2 evicts stored data
        if constexpr (has_gather4) {   // one instruction for the rows of four lanes
            const auto of = [&](int other) { return __shfl_sync(~0u, index, lane / 4 * 4 + other); };
            const FourRows four{of(0), of(1), of(2), of(3)};
            if (lane < ROWS && lane % 4 == 0)
                load_gather4(&ring[i % STAGES].rows<4>(lane), table, full[i % STAGES], 0, four, keep);
        } else if (lane < ROWS) {
            load(ring[i % STAGES].rows<1>(lane), table, full[i % STAGES], Coordinates{0, index}, keep);
        }
    };

    if (leader) {
        for (Barrier& barrier : full) barrier.init(1);   // for the leader's arrival
        fence_barrier_init();
    }
    __syncwarp();   // the other lanes' loads refer to the barriers

    for (int i = 0; i < STAGES - STORES; ++i) start_load(i, index_of(i));
    int next = index_of(STAGES - STORES);
    for (int i = 0; i < mine; ++i) {
        const int index = next;
        next = index_of(i + STAGES - STORES + 1);   // read one iteration early: it arrives while the leader waits
        if (leader) {
            full[i % STAGES].wait(i / STAGES % 2);
            store(target, Coordinates{0, first_row(i)}, ring[i % STAGES], evict_first());   // drops rows past the end
            commit_group();
            wait_group_read<STORES>();   // store i - STORES has read the stage that the next load fills
        }
        start_load(i + STAGES - STORES, index);
    }
    if (leader) wait_group_read();   // shared memory must last until the last stores have read it
}
"""


def outputs_of(table, indices):
    """Return two outputs for the rows, filled with NaN."""
    return (table.new_full((len(indices), table.shape[1]), torch.nan) for _ in range(2))


def prepare(device, kernel, table, target, indices):
    """Return a launch of target = table[indices]."""
    ctas = device.properties.multiprocessor_count * kernel.occupancy.max_active_blocks_per_multiprocessor(32, 0)
    moved = cuda_tma.parameters_of(kernel)["target"].map_type
    rows, _ = moved.tile_dim
    config, tiles = LaunchConfig(grid=ctas, block=32), -(-len(indices) // rows)
    tensors = (tensor.view(dtype_of(moved)) for tensor in (table, target))
    arguments = *tensors, indices, len(indices), tiles
    return partial(cuda_tma.prepare(kernel, config, *arguments), device.default_stream)


def cases(sizes):
    """Yield cases as `_example` describes them. The code after `yield` checks the results of the last runs."""
    device = cuda_tma.Device()
    device.set_current()
    kernel = cuda_tma.compile(SOURCE, "gather")
    moved = cuda_tma.parameters_of(kernel)["table"].map_type
    row_bytes = moved.tile_dim[1] * dtype_of(moved).itemsize

    for rows, count in sizes:
        table = torch.randn(rows, row_bytes // 2, device="cuda", dtype=torch.bfloat16)
        outside = torch.tensor([5, -1, rows, rows - 1, -5000], device="cuda", dtype=torch.int32)
        target, _ = outputs_of(table, outside)
        prepare(device, kernel, table, target, outside)()
        assert torch.equal(target[[0, 3]], table[[5, -1]]) and not target[[1, 2, 4]].any()

        drawn = torch.randint(rows, (count,), device="cuda", dtype=torch.int32)
        target, other = outputs_of(table, drawn)
        rivals = {  # A copy of the same number of rows is the upper bound of the speed.
            "torch.index_select": partial(torch.index_select, table, 0, drawn, out=other),
            "torch.Tensor.copy_": partial(torch.empty_like(other).copy_, table[:count]),
        }
        case = f"{target.nbytes / 2**30:.3g} GiB of rows of {row_bytes} bytes"
        # A row that the indices select twice counts twice.
        yield case, prepare(device, kernel, table, target, drawn), rivals, 0, 2 * target.nbytes
        expected = table[drawn.long()]
        assert torch.equal(target, expected) and torch.equal(other, expected)


if __name__ == "__main__":
    start_cases(cases, SMALL, LARGE, __doc__)
