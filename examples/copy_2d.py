"""A matrix copied through shared memory by TMA alone, against cuMemcpyDtoD. Every fence and wait is explained.

As many CTAs as fit on the GPU stay there until the end, each of one thread: it only issues copies, so more would have
nothing to do. A CTA owns a ring of tiles, in which loads run ahead of stores, so that both directions stay busy:

    tile i - 1, i         the last two stores are reading them
    tile i + 1 ... i + 3  the loads are filling them
"""

import statistics

import torch
from cuda.bindings import driver
from cuda.core import LaunchConfig, Program, ProgramOptions

import cuda_tma

ROWS, COLUMNS = 8, 256  # as in the kernel
TARGETS = ("sm_90a", "sm_100a", "sm_120a")
SOURCE = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

constexpr int ROWS = 8, COLUMNS = 256;   // one tile, 8 KB
constexpr int STAGES = 5;                // tiles in the ring
constexpr int STORES = 2;                // of which so many may be on their way out; the others are on their way in

extern "C" __global__ void copy(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                int tiles_across, int tiles) {
    __shared__ alignas(128) float ring[STAGES][ROWS][COLUMNS];   // TMA writes to multiples of 128 bytes
    __shared__ Barrier full[STAGES];

    // Neighbouring CTAs take neighbouring tiles, so that all of them together walk through memory in order.
    const int mine = (tiles - 1 - int(blockIdx.x) + int(gridDim.x)) / int(gridDim.x);
    const auto place = [&](int i) {
        const int tile = blockIdx.x + i * gridDim.x;
        return Coordinates{COLUMNS * (tile % tiles_across), ROWS * (tile / tiles_across)};
    };
    const auto start_load = [&](int i) {
        if (i >= mine) return;
        Barrier& barrier = full[i % STAGES];
        barrier.arrive_expect_tx(sizeof(ring[0]));   // the phase ends when so many bytes have arrived
        load(ring[i % STAGES], source, barrier, place(i));
    };

    for (Barrier& barrier : full) barrier.init(1);   // one arrival a phase: the one in start_load
    fence_barrier_init();   // a thread wrote the barriers, the TMA unit will: it must see them initialised
    // No __syncthreads() here or below: there is no other thread.

    for (int i = 0; i < STAGES - STORES; ++i) start_load(i);
    for (int i = 0; i < mine; ++i) {
        // Wait until tile i is in. Each use of a stage is a phase of its barrier: their parities are 0, 1, 0, ...
        full[i % STAGES].wait(i / STAGES % 2);

        // No fence_proxy_async() before the store: that is for tiles that threads wrote. This one TMA wrote and reads.
        store(target, place(i), ring[i % STAGES]);
        commit_group();   // this store is a group, which can be waited for

        // The next load overwrites what store i - STORES reads: wait until it, and all before it, have read (_read),
        // not until they have written to global memory, which takes longer. The last STORES may go on.
        wait_group_read<STORES>();
        start_load(i + STAGES - STORES);
    }
    wait_group();   // a CTA that ends gives up its shared memory: not before the last stores are done with it
}
"""


def compile_copy(device):
    """The kernel, and the number of CTAs that run at the same time."""
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}a", include_path=cuda_tma.include_path())
    kernel = Program(SOURCE, "c++", options).compile("cubin").get_kernel("copy")
    return kernel, device.properties.multiprocessor_count * kernel.occupancy.max_active_blocks_per_multiprocessor(1, 0)


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
    kernel, ctas = compile_copy(device)

    for shape in ((1001, 1500), (32768, 32768)):  # tiles that overhang the edges; 4 GiB
        source = torch.rand(shape, device="cuda")
        target, other = torch.zeros_like(source), torch.zeros_like(source)
        maps = [device.create_tensor_map(tensor, box_dim=(ROWS, COLUMNS)) for tensor in (source, target)]
        down, across = (-(-extent // box) for extent, box in zip(shape, (ROWS, COLUMNS), strict=True))
        arguments = (device.default_stream, LaunchConfig(grid=ctas, block=1), kernel, *maps, across, across * down)

        def copy(arguments=arguments):
            cuda_tma.launch(*arguments)

        def memcpy(source=source, target=other):
            driver.cuMemcpyDtoDAsync(target.data_ptr(), source.data_ptr(), source.nbytes, 0)

        times = median_ms([copy, memcpy])
        assert torch.equal(target, source) and torch.equal(other, source)

    ours, rival = (2 * source.nbytes / ms / 1e9 for ms in times)
    print(f"ok: {ours:.3f} TB/s, read and written; cuMemcpyDtoD {rival:.3f} TB/s; {ours / rival:.1%} of it")


if __name__ == "__main__":
    main()
