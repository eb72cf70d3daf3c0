"""A matrix transposed through shared memory, without bank conflicts, against torch.

TMA loads tiles of 64 x 32 floats, threads turn them around, TMA stores tiles of 32 x 64. Read copy_2d.py first: the
ring is the same, but now threads stand between load and store, and need waits and fences that TMA alone did not.

Why no bank is asked twice: lane l of a warp reads 16 bytes of row l. Rows are 128 bytes apart, which is all 32 banks,
so in a plain tile all lanes would meet at the same 4 banks. SWIZZLE_128B puts the 16 bytes elsewhere in each of 8
successive rows, and 8 such lanes are served at a time. Then 32 lanes write side by side. `main` counts both.
"""

import statistics

import torch
from cuda.core import LaunchConfig, Program, ProgramOptions

import cuda_tma
from cuda_tma.swizzle import bank_conflicts

ROWS, COLUMNS, BAND = 64, 32, 32  # as in the kernel
TARGETS = ("sm_90a", "sm_100a", "sm_120a")
SOURCE = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

constexpr int ROWS = 64, COLUMNS = 32;   // of a tile of the source, 8 KB; 32 floats are the 128 bytes of the swizzle
constexpr int LOADS = 3, STORES = 2;     // tiles in the two rings
constexpr int BAND = 32;                 // tiles: CTAs at work cover a patch, wide enough in the source and the target

extern "C" __global__ void transpose(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                     int tiles_down, int tiles) {
    __shared__ alignas(1024) float in[LOADS][ROWS][COLUMNS];   // 1024: where the swizzle pattern starts
    __shared__ alignas(128) float out[STORES][COLUMNS][ROWS];
    __shared__ Barrier full[LOADS];
    const bool leader = threadIdx.x == 0;   // issues all copies: only the thread that stores can wait for its stores
    const int mine = (tiles - 1 - int(blockIdx.x) + int(gridDim.x)) / int(gridDim.x);
    const auto column = [&](int i) {
        const int tile = blockIdx.x + i * gridDim.x;   // a band from top to bottom, then the next
        return COLUMNS * (tile / (BAND * tiles_down) * BAND + tile % BAND);
    };
    const auto row = [&](int i) { return ROWS * int((blockIdx.x + i * gridDim.x) / BAND % tiles_down); };
    const auto start_load = [&](int i) {
        if (i >= mine) return;
        full[i % LOADS].arrive_expect_tx(sizeof(in[0]));
        load(in[i % LOADS], source, full[i % LOADS], Coordinates{column(i), row(i)});
    };

    if (leader) {
        for (Barrier& barrier : full) barrier.init(1);
        fence_barrier_init();
        for (int i = 0; i < LOADS; ++i) start_load(i);
    }
    __syncthreads();   // the others wait on these barriers next: not before they are initialised

    const int r = threadIdx.x % ROWS, half = threadIdx.x / ROWS * 64;   // this thread: half of row r, 64 bytes
    for (int i = 0; i < mine; ++i) {
        full[i % LOADS].wait(i / LOADS % 2);   // every thread that reads the tile waits: so it sees what TMA wrote
        const char* tile = reinterpret_cast<const char*>(in[i % LOADS]);
        float (&turned)[COLUMNS][ROWS] = out[i % STORES];
        for (int byte = half; byte < half + 64; byte += 16) {
            const float4 four = *reinterpret_cast<const float4*>(tile + swizzled<SWIZZLE_128B>(r, byte));
            const float each[] = {four.x, four.y, four.z, four.w};
            for (int j = 0; j < 4; ++j) turned[byte / 4 + j][r] = each[j];
        }
        fence_proxy_async();   // each writer: what I wrote is seen by the TMA unit, which reads by a way of its own
        // The next turn writes to the buffer of store i + 1 - STORES: it must have been read. Only the leader can tell.
        if (leader) wait_group_read<STORES - 2>();
        __syncthreads();   // so: `turned` is complete, the loaded tile is done with, and the next `turned` is free
        if (!leader) continue;
        store(target, Coordinates{row(i), column(i)}, turned);
        commit_group();
        start_load(i + LOADS);   // over the tile that all have read
    }
    if (leader) wait_group();   // shared memory lives until the last stores are done with it
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


def main():
    device = cuda_tma.Device()
    device.set_current()
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}a", include_path=cuda_tma.include_path())
    kernel = Program(SOURCE, "c++", options).compile("cubin").get_kernel("transpose")
    ctas = device.properties.multiprocessor_count * kernel.occupancy.max_active_blocks_per_multiprocessor(128, 0)

    for rows, columns in ((1004, 1500), (32768, 32768)):  # overhanging tiles; 4 GiB
        source = torch.rand(rows, columns, device="cuda")
        target = torch.zeros(columns, rows, device="cuda")
        load_map = device.create_tensor_map(source, box_dim=(ROWS, COLUMNS), swizzle="128B")
        store_map = device.create_tensor_map(target, box_dim=(COLUMNS, ROWS))
        assert bank_conflicts(load_map.params, "ldmatrix") == bank_conflicts(store_map.params, "row") == 1
        # Bands are whole: in tiles outside the matrix, loads give zeros and stores are dropped.
        down, across = -(-rows // ROWS), -(-columns // (BAND * COLUMNS)) * BAND
        config = LaunchConfig(grid=ctas, block=128)
        arguments = (device.default_stream, config, kernel, load_map, store_map, down, down * across)
        rivals = [lambda source=source: source.transpose(0, 1).contiguous(), source.clone]
        times = median_ms([lambda arguments=arguments: cuda_tma.launch(*arguments), *rivals])
        assert torch.equal(target, source.t())

    ours, rival, copy = (2 * source.nbytes / ms / 1e9 for ms in times)
    print(f"ok: {ours:.3f} TB/s, read and written; torch {rival:.3f} TB/s; copying {copy:.3f} TB/s: {ours / copy:.1%}")


if __name__ == "__main__":
    main()
