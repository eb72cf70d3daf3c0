"""Rows of a table gathered by index, as an embedding does, against torch.index_select.

The tensor map's box is one row, so a load at Coordinates{0, index} fetches any row: each lane of a warp starts one. The
rows of a tile arrive side by side, and one store writes them to the output. Compute capability 10 has an instruction
for four rows at a time (not run on hardware here; the tests assemble it). TMA does not look inside an element: the
table is viewed as int64, so that one box, at most 256 elements wide, holds a row of up to 2 KB of any type.

An index outside the table costs no memory access and gives a row of zeros, which is what a padding index should do.
"""

import statistics

import torch
from cuda.core import LaunchConfig, Program, ProgramOptions

import cuda_tma

ROWS, ROW_BYTES = 8, 1024  # as in the kernel
TARGETS = ("sm_90a", "sm_100a", "sm_120a")
SOURCE = r"""
#include <cuda_tma/sm100.cuh>
using namespace cuda_tma;

constexpr int ROWS = 8, ROW_BYTES = 1024;   // one tile, 8 KB: a lane for each row
constexpr int STAGES = 3, STORES = 1;       // tiles in the ring; of which so many may be on their way out

extern "C" __global__ void gather(const __grid_constant__ TensorMap table, const __grid_constant__ TensorMap target,
                                  const int* indices, int count, int tiles) {
    __shared__ alignas(128) char ring[STAGES][ROWS][ROW_BYTES];
    __shared__ Barrier full[STAGES];
    const int lane = threadIdx.x;
    const bool leader = lane == 0;   // announces the bytes, waits for them and stores them
    const int mine = (tiles - 1 - int(blockIdx.x) + int(gridDim.x)) / int(gridDim.x);
    const auto first_row = [&](int i) { return ROWS * int(blockIdx.x + i * gridDim.x); };
    const auto index_of = [&](int i) {
        const int row = first_row(i) + lane;
        return i < mine && lane < ROWS && row < count ? indices[row] : -1;   // -1: outside, a row of zeros
    };
    const auto start_load = [&](int i, int index) {
        if (i >= mine) return;
        if (leader) full[i % STAGES].arrive_expect_tx(sizeof(ring[0]));
        __syncwarp();   // bytes are announced before any arrives, and the leader has seen that the stage is free
        const CachePolicy keep = evict_last();   // rows may be asked for again: L2 makes room with what is stored
        if constexpr (has_gather4) {   // one instruction for the rows of four lanes
            const auto of = [&](int other) { return __shfl_sync(~0u, index, lane / 4 * 4 + other); };
            const FourRows four{of(0), of(1), of(2), of(3)};
            if (lane < ROWS && lane % 4 == 0)
                load_gather4(ring[i % STAGES][lane], table, full[i % STAGES], 0, four, keep);
        } else if (lane < ROWS) {
            load(ring[i % STAGES][lane], table, full[i % STAGES], Coordinates{0, index}, keep);
        }
    };

    if (leader) {
        for (Barrier& barrier : full) barrier.init(1);   // the leader's arrival
        fence_barrier_init();
    }
    __syncwarp();   // the other lanes name the barriers in their loads

    for (int i = 0; i < STAGES - STORES; ++i) start_load(i, index_of(i));
    int next = index_of(STAGES - STORES);
    for (int i = 0; i < mine; ++i) {
        const int index = next;
        next = index_of(i + STAGES - STORES + 1);   // read one turn ahead: it arrives while the leader waits
        if (leader) {
            full[i % STAGES].wait(i / STAGES % 2);
            store(target, Coordinates{0, first_row(i)}, ring[i % STAGES], evict_first());   // rows past the end drop
            commit_group();
            wait_group_read<STORES>();   // store i - STORES has read the stage that the next load fills
        }
        start_load(i + STAGES - STORES, index);
    }
    if (leader) wait_group_read();   // shared memory lives until the last stores have read it
}
"""


def median_ms(runs, repeats=45, warm_up=5):
    """Median time of each run: in turn, in alternating order, and queued, so that the GPU never waits for Python."""
    events = {run: [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeats)] for run in runs}
    for i in range(repeats):
        for run in runs[:: -1 if i % 2 else 1]:
            events[run][i][0].record()
            run()
            events[run][i][1].record()
    torch.cuda.synchronize()
    return [statistics.median(begin.elapsed_time(end) for begin, end in events[run][warm_up:]) for run in runs]


def figures():
    """What was measured, checked first: (case, rival, ours_ms, rival_ms, flops, moved_bytes)."""
    device = cuda_tma.Device()
    device.set_current()
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}a", include_path=cuda_tma.include_path())
    kernel = Program(SOURCE, "c++", options).compile("cubin").get_kernel("gather")
    ctas = device.properties.multiprocessor_count * kernel.occupancy.max_active_blocks_per_multiprocessor(32, 0)

    table = torch.randn(1 << 20, ROW_BYTES // 2, device="cuda", dtype=torch.bfloat16)  # 1 GiB
    table_map = device.create_tensor_map(table.view(torch.int64), box_dim=(1, ROW_BYTES // 8))

    def prepare(indices):
        """The output, and what launches the kernel that fills it."""
        target = torch.full((len(indices), table.shape[1]), torch.nan, device="cuda", dtype=table.dtype)
        target_map = device.create_tensor_map(target.view(torch.int64), box_dim=(ROWS, ROW_BYTES // 8))
        tiles = -(-len(indices) // ROWS)
        arguments = (LaunchConfig(grid=ctas, block=32), kernel, table_map, target_map, indices, len(indices), tiles)
        return target, lambda: cuda_tma.launch(device.default_stream, *arguments)

    outside = torch.tensor([5, -1, len(table), len(table) - 1, -5000], device="cuda", dtype=torch.int32)
    target, gather = prepare(outside)
    gather()
    assert torch.equal(target[[0, 3]], table[[5, -1]]) and not target[[1, 2, 4]].any()

    for count in (1003, 1 << 20):  # the last tile is not full; 1 GiB
        indices = torch.randint(len(table), (count,), device="cuda", dtype=torch.int32)
        target, gather = prepare(indices)
        times = median_ms([gather, lambda indices=indices: torch.index_select(table, 0, indices)])
        assert torch.equal(target, torch.index_select(table, 0, indices))

    # Rows that were drawn twice are counted twice.
    yield f"{target.nbytes >> 30} GiB of rows of {ROW_BYTES} bytes", "torch.index_select", *times, 0, 2 * target.nbytes


def main():
    for case, rival, ours_ms, rival_ms, _, moved_bytes in figures():
        ours, theirs = (moved_bytes / ms / 1e9 for ms in (ours_ms, rival_ms))
        print(f"ok: {case}: {ours:.3f} TB/s, read and written; {rival} {theirs:.3f} TB/s; {ours / theirs:.1%} of it")


if __name__ == "__main__":
    main()
