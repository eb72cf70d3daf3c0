"""Keys and values staged as attention kernels do: tiles of a (seq, d) matrix, swizzled, through a pipeline.

A box with SWIZZLE_128B is at most 128 bytes wide, 64 elements of 16 bits, so that a tile of 128 elements comes as two
boxes, and one of 96 as a box of 64 and one of 32. Each box lies apart in shared memory. There the narrow box takes as
much space as the wide one, a row each 128 bytes, since that is the span that the swizzle permutes; its load delivers,
and expect_tx counts, only half of it.

`main` first loads boxes at every legal coordinate, also around the matrix, and then streams keys and values through the
pipeline in every size, with 2 to 4 stages.
"""

import itertools
import statistics

import torch
from cuda.bindings import driver
from cuda.core import LaunchConfig, Program, ProgramOptions

import cuda_tma

HEAD_DIMS = (64, 96, 128)  # d
ROWS, STAGES = 64, 3  # of the tiles and the pipeline that are timed; others are checked
SPAN_BYTES = 128  # of SWIZZLE_128B
CONSUMERS = 128  # threads, as in the kernel
BARRIERS_BYTES = 64  # of shared memory, for up to 4 stages: room behind the tiles
TARGETS = ("sm_90a", "sm_100a", "sm_120a")
SOURCE = r"""
#include <cuda_tma/pipeline.cuh>
using namespace cuda_tma;

constexpr unsigned SPAN = swizzle_span<SWIZZLE_128B>();   // bytes from row to row in shared memory
constexpr int CONSUMERS = 128;                            // threads; one warp more is the producer

// Copies a tile from its boxes in shared memory to rows of `out`, 16 bytes a time: the swizzle moves them as one.
// Successive threads write successive bytes, also where a row goes on in the next box, so that memory gets whole rows.
__device__ void read_back(const char* tile, int rows, int row_bytes, char* out, int thread) {
    const int chunks = row_bytes / 16;
    for (int i = thread; i < rows * chunks; i += CONSUMERS) {
        const int row = i / chunks, byte = i % chunks * 16;
        const char* box = tile + byte / SPAN * (rows * SPAN);
        const uint4 chunk = *reinterpret_cast<const uint4*>(box + swizzled<SWIZZLE_128B>(row, byte % SPAN));
        reinterpret_cast<uint4*>(out)[i] = chunk;
    }
}

// CTA (x, y) loads the box at d = first_d + x * step_d, seq = first_seq + y. A coordinate in d is a multiple of 16
// bytes, also where it is negative; one in seq is any number.
extern "C" __global__ void sweep(const __grid_constant__ TensorMap map, char* out, int rows, int width_bytes,
                                 int first_d, int step_d, int first_seq) {
    extern __shared__ __align__(1024) char box[];   // 1024: where the swizzle pattern starts
    Barrier& full = *reinterpret_cast<Barrier*>(box + rows * SPAN);
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(rows * width_bytes);
        load(box, map, full, Coordinates{first_d + int(blockIdx.x) * step_d, first_seq + int(blockIdx.y)});
    }
    __syncthreads();
    full.wait(0);
    const long long number = blockIdx.y * gridDim.x + blockIdx.x;
    read_back(box, rows, width_bytes, out + number * rows * width_bytes, threadIdx.x);
}

// A CTA stages a run of tiles, K and V in turn, and writes them to k_out and v_out: here attention would use them. The
// map `wide` loads 64 elements of a row, `narrow` the last of a tile, 64 or 32.
template <int D, int Stages>
__global__ void stage_tiles(const __grid_constant__ TensorMap k_wide, const __grid_constant__ TensorMap k_narrow,
                            const __grid_constant__ TensorMap v_wide, const __grid_constant__ TensorMap v_narrow,
                            char* k_out, char* v_out, int rows, int tiles, bool read_again) {
    constexpr int BOXES = (D + 63) / 64;
    constexpr int D_BYTES = 2 * D;
    extern __shared__ __align__(1024) char ring[];   // [Stages][BOXES][rows][SPAN], and behind it the pipeline
    const int box_bytes = rows * int(SPAN), tile_bytes = BOXES * box_bytes;
    auto& pipeline = *reinterpret_cast<Pipeline<Stages>*>(ring + Stages * tile_bytes);
    if (threadIdx.x == 0) pipeline.init(CONSUMERS);
    __syncthreads();   // nobody waits on a barrier that is not yet initialised

    const int first_seq = blockIdx.x * tiles * rows;
    Stage<Stages> at;
    if (threadIdx.x < CONSUMERS) {
        for (int i = 0; i < 2 * tiles; ++i, at.next()) {
            const long long seq = first_seq + i / 2 * rows;
            pipeline.wait(at);
            char* out = (i % 2 ? v_out : k_out) + seq * D_BYTES;
            read_back(ring + at.index * tile_bytes, rows, D_BYTES, out, threadIdx.x);
            pipeline.release(at);
        }
    } else if (threadIdx.x == CONSUMERS) {
        // What other CTAs read too, such as the heads that share K and V, is worth keeping in L2. (Observed on sm_90:
        // even where nothing is read again, as here, since L2 then makes room with what is written, in its order; and
        // evict_first() costs a fifth of the speed.)
        const CachePolicy policy = read_again ? evict_last() : evict_normal();
        for (int i = 0; i < 2 * tiles; ++i, at.next()) {
            const int seq = first_seq + i / 2 * rows;
            char* tile = ring + at.index * tile_bytes;
            Barrier& full = pipeline.acquire(at, rows * D_BYTES);   // all boxes of the tile in one phase
            for (int box = 0; box < BOXES; ++box) {
                const bool last = box == BOXES - 1;
                const TensorMap& map = i % 2 ? (last ? v_narrow : v_wide) : (last ? k_narrow : k_wide);
                load(tile + box * box_bytes, map, full, Coordinates{64 * box, seq}, policy);
            }
        }
    }
}

#define INSTANTIATE(D) \
    template __global__ decltype(stage_tiles<D, 2>) stage_tiles<D, 2>; \
    template __global__ decltype(stage_tiles<D, 3>) stage_tiles<D, 3>; \
    template __global__ decltype(stage_tiles<D, 4>) stage_tiles<D, 4>;
INSTANTIATE(64) INSTANTIATE(96) INSTANTIATE(128)
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


def compile_kernel(device, name):
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}a", include_path=cuda_tma.include_path())
    return Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)


def check_every_coordinate(device, kernel, dtype, d, rows, width):
    """Boxes from just before the matrix to just behind it: every row, and every 16 bytes of a row."""
    seq, step = 150, 16 // dtype.itemsize
    matrix = torch.randn(seq, d, device="cuda").to(dtype)
    padded = torch.nn.functional.pad(matrix, (width, width, rows, rows))
    expected = padded.unfold(0, rows, 1).unfold(1, width, step)  # by seq, then d: the box there
    out = torch.full(expected.shape, torch.nan, device="cuda", dtype=dtype)
    box_map = device.create_tensor_map(matrix, box_dim=(rows, width), swizzle="128B")
    assert box_map.smem_bytes == rows * SPAN_BYTES and box_map.tx_bytes == rows * width * dtype.itemsize
    config = LaunchConfig(
        grid=tuple(expected.shape[1::-1]), block=CONSUMERS, shmem_size=box_map.smem_bytes + BARRIERS_BYTES
    )
    arguments = (box_map, out, rows, width * dtype.itemsize, -width, step, -rows)
    cuda_tma.launch(device.default_stream, config, kernel, *arguments)
    assert torch.equal(out, expected), f"{dtype}, d={d}, box {rows} x {width}"
    return expected.shape[0] * expected.shape[1]


def widths(d):
    """Of the boxes of a tile, in elements of 16 bits: 64, and what remains for the last."""
    return 64, d % 64 or 64


class Staging:
    """Keys and values, their copies, and the kernel that stages the former and writes the latter."""

    def __init__(self, device, kernel, dtype, d, rows, stages, tiles=5, ctas=None):
        boxes = -(-d // 64)
        smem_bytes = stages * boxes * rows * SPAN_BYTES + BARRIERS_BYTES
        limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES  # 48 KB unless raised
        (error,) = driver.cuKernelSetAttribute(limit, smem_bytes, kernel.handle, device.device_id)
        assert error == driver.CUresult.CUDA_SUCCESS, error
        threads = CONSUMERS + 32
        at_once = kernel.occupancy.max_active_blocks_per_multiprocessor(threads, smem_bytes)
        ctas = ctas or at_once * device.properties.multiprocessor_count
        shape = ctas * tiles * rows, d  # one head's rows after the other's: a tile must not lie in two
        self.matrices = [torch.randn(shape, device="cuda", dtype=dtype) for _ in "kv"]
        self.staged = [torch.full_like(matrix, torch.nan) for matrix in self.matrices]
        maps = [
            device.create_tensor_map(matrix, box_dim=(rows, width), swizzle="128B", l2_promotion="256B")
            for matrix in self.matrices
            for width in widths(d)
        ]
        config = LaunchConfig(grid=ctas, block=threads, shmem_size=smem_bytes)
        self.arguments = (device.default_stream, config, kernel, *maps, *self.staged, rows, tiles)

    def run(self, read_again=False):
        cuda_tma.launch(*self.arguments, read_again)

    def copy(self):
        for staged, matrix in zip(self.staged, self.matrices, strict=True):
            staged.copy_(matrix)

    def check(self):
        for read_again in (False, True):
            for staged in self.staged:
                staged.fill_(torch.nan)
            self.run(read_again)
            assert all(map(torch.equal, self.staged, self.matrices))


def check_every_size(device):
    """Sizes, stages and types: the keys and values that went through the pipeline are those that come out."""
    for d, stages in itertools.product(HEAD_DIMS, (2, 3, 4)):
        kernel = compile_kernel(device, f"stage_tiles<{d}, {stages}>")
        for rows, dtype in itertools.product((64, 128), (torch.float16, torch.bfloat16)):
            Staging(device, kernel, dtype, d, rows, stages, ctas=7).check()


def figures():
    """What was measured, checked first: (case, rival, ours_ms, rival_ms, flops, moved_bytes)."""
    device = cuda_tma.Device()
    device.set_current()
    for d in HEAD_DIMS:
        kernel = compile_kernel(device, f"stage_tiles<{d}, {STAGES}>")
        large = Staging(device, kernel, torch.bfloat16, d, ROWS, STAGES, tiles=8192 // ROWS)
        large.check()
        once_ms, again_ms, copy_ms = median_ms([large.run, lambda large=large: large.run(True), large.copy])
        for case, ours_ms in ((f"d {d}", once_ms), (f"d {d}, kept in L2", again_ms)):
            yield case, "torch.Tensor.copy_", ours_ms, copy_ms, 0, 4 * large.staged[0].nbytes  # K and V, in and out


def main():
    device = cuda_tma.Device()
    device.set_current()

    kernel = compile_kernel(device, "sweep")
    boxes = [(dtype, width) for dtype in (torch.float16, torch.bfloat16) for width in (64, 32)] + [(torch.float32, 32)]
    cases = itertools.product(boxes, HEAD_DIMS, (64, 128))
    count = sum(check_every_coordinate(device, kernel, dtype, d, rows, width) for (dtype, width), d, rows in cases)
    print(f"ok: {count} boxes, at every legal coordinate in and around the matrix")
    check_every_size(device)

    for case, rival, ours_ms, rival_ms, _, moved_bytes in figures():
        ours, theirs = (moved_bytes / ms / 1e9 for ms in (ours_ms, rival_ms))
        print(f"ok: {case}: {ours:.3f} TB/s, staged and written back; {rival} {theirs:.3f} TB/s; {ours / theirs:.1%}")


if __name__ == "__main__":
    main()
