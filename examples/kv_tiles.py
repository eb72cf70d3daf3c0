"""Keys and values staged as attention kernels do: tiles of a (seq, d) matrix, swizzled, through a pipeline.

A box with SWIZZLE_128B is at most 128 bytes wide, 64 elements of 16 bits, so that a tile of 128 elements comes as two
boxes, and one of 96 as a box of 64 and one of 32. Each box lies apart in shared memory. There the narrow box takes as
much space as the wide one, a row each 128 bytes, since that is the span that the swizzle permutes; its load delivers,
and expect_tx counts, only half of it.

The small cases load boxes at every legal coordinate, also around the matrix, and stream keys and values through the
pipeline in every size, with 2 to 4 stages.
"""

import itertools
from functools import partial

from _example import compile_kernel, start_cases, torch
from cuda.core import LaunchConfig

import cuda_tma

HEAD_DIMS = (64, 96, 128)  # d
# (d, stages, rows of a tile, type, tiles of each CTA, CTAs: None for as many as run at once)
SMALL = tuple((*some, 5, 7) for some in itertools.product(HEAD_DIMS, (2, 3, 4), (64, 128), ("float16", "bfloat16")))
LARGE = tuple((d, 3, 64, "bfloat16", 128, None) for d in HEAD_DIMS)
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


def every_coordinate(device, kernel, dtype, d, rows, width):
    """A case: boxes from just before the matrix to just behind it: every row, and every 16 bytes of a row."""
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
    run = partial(cuda_tma.launch, device.default_stream, config, kernel, *arguments)
    yield f"boxes {rows} x {width} of {dtype}, d {d}, at every coordinate", run, {}, 0, 2 * out.nbytes
    assert torch.equal(out, expected), f"{dtype}, d={d}, box {rows} x {width}"


def widths(d):
    """Of the boxes of a tile, in elements of 16 bits: 64, and what remains for the last."""
    return 64, d % 64 or 64


def smem_bytes_of(d, stages, rows):
    """What the stages and their barriers take."""
    return stages * -(-d // 64) * rows * SPAN_BYTES + BARRIERS_BYTES


class Staging:
    """Keys and values, their copies, and the kernel that stages the former and writes the latter."""

    def __init__(self, device, kernel, dtype, d, rows, stages, tiles, ctas):
        smem_bytes = smem_bytes_of(d, stages, rows)
        threads = CONSUMERS + 32
        at_once = kernel.occupancy.max_active_blocks_per_multiprocessor(threads, smem_bytes)
        ctas = ctas or at_once * device.properties.multiprocessor_count
        shape = ctas * tiles * rows, d  # one head's rows after the other's: a tile must not lie in two
        self.matrices = [torch.randn(shape, device="cuda", dtype=dtype) for _ in "kv"]
        self.staged, self.copies = ([torch.full_like(x, torch.nan) for x in self.matrices] for _ in range(2))
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
        for copied, matrix in zip(self.copies, self.matrices, strict=True):
            copied.copy_(matrix)

    def check(self):
        """What the last run left, which then is forgotten."""
        for staged, matrix in zip(self.staged, self.matrices, strict=True):
            assert torch.equal(staged, matrix)
            staged.fill_(torch.nan)


def cases(sizes):
    """As `_example` says; what comes after `yield` checks what the last runs left."""
    device = cuda_tma.Device()
    device.set_current()
    if sizes is SMALL:
        kernel = compile_kernel(device, SOURCE, "sweep")
        boxes = [(dtype, width) for dtype in (torch.float16, torch.bfloat16) for width in (64, 32)]
        some = itertools.product([*boxes, (torch.float32, 32)], HEAD_DIMS, (64, 128))
        for (dtype, width), d, rows in some:
            yield from every_coordinate(device, kernel, dtype, d, rows, width)
    for d, stages, rows, dtype, tiles, ctas in sizes:
        kernel = compile_kernel(device, SOURCE, f"stage_tiles<{d}, {stages}>", smem_bytes_of(d, stages, rows))
        staging = Staging(device, kernel, getattr(torch, dtype), d, rows, stages, tiles, ctas)
        for read_again, case in ((False, f"d {d}"), (True, f"d {d}, kept in L2")):
            run = partial(staging.run, read_again)
            moved_bytes = 4 * staging.staged[0].nbytes  # K and V, in and out
            yield case, run, {"torch.Tensor.copy_": staging.copy}, 0, moved_bytes
            staging.check()


if __name__ == "__main__":
    start_cases(cases, SMALL, LARGE, __doc__)
