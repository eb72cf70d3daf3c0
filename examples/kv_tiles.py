"""Stage keys and values as attention kernels do, by a pipeline that loads swizzled tiles of a (seq, d) matrix.

A box with SWIZZLE_128B is at most 128 bytes wide, which are 64 elements of 16 bits. A tile of 128 elements therefore
has two boxes, which are separate in shared memory. The type of the tile computes their places, and `load` issues both
loads. A tile of 96 also has two boxes. The second box extends 32 elements beyond the matrix, and contains zeros there.

The small cases load boxes at every legal coordinate, including coordinates around the matrix. The small cases also
stream keys and values through the pipeline in every size, with 2 to 4 stages.
"""

import itertools
from functools import partial

from _example import start_cases, torch
from cuda.core import LaunchConfig

import cuda_tma

HEAD_DIMS = (64, 96, 128)  # The head dimension d is 64, 96 or 128.
# Each case is (d, stages, rows of a tile, type, tiles of each CTA, number of CTAs); None means all concurrent CTAs.
SMALL = tuple((*some, 5, 7) for some in itertools.product(HEAD_DIMS, (2, 3, 4), (64, 128), ("float16", "bfloat16")))
LARGE = tuple((d, 3, 64, "bfloat16", 128, None) for d in HEAD_DIMS)
# The program reads the values of the constants in the kernel, such as CONSUMERS.
THREADS = {"consumers": "CONSUMERS", "threads": "CONSUMERS + 32"}
TARGETS = ("sm_90a", "sm_100a", "sm_120a")
SOURCE = r"""
#include <cuda_tma/pipeline.cuh>
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;

constexpr int CONSUMERS = 128;   // threads; one warp more is the producer

// Copies a tile from shared memory to rows of `out`, 16 bytes at a time: the swizzle keeps them together. Successive
// threads write successive bytes, also where a row continues in the next box, so that memory gets whole rows.
template <typename TileType>
__device__ void read_back(const TileType& tile, char* out, int thread) {
    constexpr int CHUNK = 16 / sizeof(typename TileType::Element), CHUNKS = TileType::width() / CHUNK;   // per row
    for (int i = thread; i < TileType::row_count() * CHUNKS; i += CONSUMERS)
        reinterpret_cast<uint4*>(out)[i] = tile.template as<uint4>(i / CHUNKS, i % CHUNKS * CHUNK);
}

// CTA (x, y) loads the box at d = first_d + x * step_d, seq = first_seq + y. A coordinate in d is a multiple of 16
// bytes, also where it is negative; one in seq is any number.
template <DataType Type, int Rows, int Width>
using Swept = Tile<Type, Box<Rows, Width>, SWIZZLE_128B>;

template <DataType Type, int Rows, int Width>
__global__ void sweep(const __grid_constant__ TiledMap<Swept<Type, Rows, Width>> map, char* out, int first_d,
                      int step_d, int first_seq) {
    __shared__ Swept<Type, Rows, Width> tile;
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile);
        load(tile, map, full, Coordinates{first_d + int(blockIdx.x) * step_d, first_seq + int(blockIdx.y)});
    }
    __syncthreads();
    full.wait(0);
    const long long number = blockIdx.y * gridDim.x + blockIdx.x;
    read_back(tile, out + number * tile.tx_bytes(), threadIdx.x);
}

// `Rows` keys or values.
template <DataType Type, int D, int Rows>
using Staged = Tile<Type, Box<Rows, D>, SWIZZLE_128B>;
template <DataType Type, int D, int Rows>
using StagedMap = TiledMap<Staged<Type, D, Rows>, OOB_FILL_NONE, L2_PROMOTION_256B>;

template <typename TileType, int Stages>
struct Shared {
    TileType ring[Stages];
    Pipeline<Stages> pipeline;
};

// A CTA stages a run of tiles, K and V in turn, and writes them to k_out and v_out; attention would use them here.
template <DataType Type, int D, int Rows, int Stages>
__global__ void stage_tiles(const __grid_constant__ StagedMap<Type, D, Rows> k_map,
                            const __grid_constant__ StagedMap<Type, D, Rows> v_map, char* k_out, char* v_out,
                            int tiles, bool read_again) {
    using K = Staged<Type, D, Rows>;
    constexpr int ROWS = K::extent(0), ROW_BYTES = D * sizeof(typename K::Element);
    auto& [ring, pipeline] = dynamic_shared<Shared<K, Stages>>();
    if (threadIdx.x == 0) pipeline.init(CONSUMERS);
    __syncthreads();   // no thread waits on a barrier that is not yet initialized

    const int first_seq = blockIdx.x * tiles * ROWS;
    Stage<Stages> at;
    if (threadIdx.x < CONSUMERS) {
        for (int i = 0; i < 2 * tiles; ++i, at.next()) {
            const long long seq = first_seq + i / 2 * ROWS;
            pipeline.wait(at);
            read_back(ring[at.index], (i % 2 ? v_out : k_out) + seq * ROW_BYTES, threadIdx.x);
            pipeline.release(at);
        }
    } else if (threadIdx.x == CONSUMERS) {
        // Keep data in L2 that other CTAs also read, such as heads that share K and V. (Observed on sm_90: this helps
        // even if nothing is read again, as here, because L2 then evicts written data in its order; and evict_first()
        // costs a fifth of the speed.)
        const CachePolicy policy = read_again ? evict_last() : evict_normal();
        for (int i = 0; i < 2 * tiles; ++i, at.next()) {
            auto& tile = ring[at.index];
            const Coordinates where{0, first_seq + i / 2 * ROWS};
            load(tile, i % 2 ? v_map : k_map, pipeline.acquire(at, tile), where, policy);   // all boxes in one phase
        }
    }
}
"""


def data_type_of(dtype):
    """Return the torch dtype for its name in the kernel's types."""
    return cuda_tma.TensorMapDataType[str(dtype).removeprefix("torch.").upper()].name


def every_coordinate(device, dtype, d, rows, width):
    """Return a case with boxes at every row and every 16 bytes, from just before the matrix to just after it."""
    kernel = cuda_tma.compile(SOURCE, f"sweep<{data_type_of(dtype)}, {rows}, {width}>", constants=THREADS)
    seq, step = 150, 16 // dtype.itemsize
    matrix = torch.randn(seq, d, device="cuda").to(dtype)
    padded = torch.nn.functional.pad(matrix, (width, width, rows, rows))
    # Element (i, j) of the view is the expected box for the coordinates (i, j).
    expected = padded.unfold(0, rows, 1).unfold(1, width, step)
    out = torch.full(expected.shape, torch.nan, device="cuda", dtype=dtype)
    threads = cuda_tma.parameters_of(kernel).constants["consumers"]
    config = LaunchConfig(grid=tuple(expected.shape[1::-1]), block=threads)
    run = partial(cuda_tma.prepare(kernel, config, matrix, out, -width, step, -rows), device.default_stream)
    yield f"boxes {rows} x {width} of {dtype}, d {d}, at every coordinate", run, {}, 0, 2 * out.nbytes
    assert torch.equal(out, expected), f"{dtype}, d={d}, box {rows} x {width}"


class Staging:
    """Keys and values, their copies, and the kernel that stages keys and values and writes the copies."""

    def __init__(self, device, dtype, d, rows, stages, tiles, ctas):
        name = f"stage_tiles<{data_type_of(dtype)}, {d}, {rows}, {stages}>"
        kernel = cuda_tma.compile(SOURCE, name, constants=THREADS)
        parameters = cuda_tma.parameters_of(kernel)
        threads, smem_bytes = parameters.constants["threads"], parameters.dynamic_shared_bytes
        rows, _ = parameters["k_map"].map_type.tile_dim
        at_once = kernel.occupancy.max_active_blocks_per_multiprocessor(threads, smem_bytes)
        ctas = ctas or at_once * device.properties.multiprocessor_count
        # The heads follow each other in memory, so a tile must not contain rows of two heads.
        shape = ctas * tiles * rows, d
        self.matrices = [torch.randn(shape, device="cuda", dtype=dtype) for _ in "kv"]
        self.staged, self.copies = ([torch.full_like(x, torch.nan) for x in self.matrices] for _ in range(2))
        config = LaunchConfig(grid=ctas, block=threads)
        arguments = *self.matrices, *self.staged, tiles
        self.launches = [cuda_tma.prepare(kernel, config, *arguments, read_again) for read_again in (False, True)]
        self.stream = device.default_stream

    def run(self, read_again=False):
        self.launches[read_again](self.stream)

    def copy(self):
        for copied, matrix in zip(self.copies, self.matrices, strict=True):
            copied.copy_(matrix)

    def check(self):
        """Check the results of the last run, and clear the results."""
        for staged, matrix in zip(self.staged, self.matrices, strict=True):
            assert torch.equal(staged, matrix)
            staged.fill_(torch.nan)


def cases(sizes):
    """Yield cases as `_example` describes them. The code after `yield` checks the results of the last runs."""
    device = cuda_tma.Device()
    device.set_current()
    if sizes is SMALL:
        boxes = [(dtype, width) for dtype in (torch.float16, torch.bfloat16) for width in (64, 32)]
        some = itertools.product([*boxes, (torch.float32, 32)], HEAD_DIMS, (64, 128))
        for (dtype, width), d, rows in some:
            yield from every_coordinate(device, dtype, d, rows, width)
    for d, stages, rows, dtype, tiles, ctas in sizes:
        staging = Staging(device, getattr(torch, dtype), d, rows, stages, tiles, ctas)
        for read_again, case in ((False, f"d {d}"), (True, f"d {d}, kept in L2")):
            run = partial(staging.run, read_again)
            moved_bytes = 4 * staging.staged[0].nbytes  # The kernel reads and writes both K and V.
            yield case, run, {"torch.Tensor.copy_": staging.copy}, 0, moved_bytes
            staging.check()


if __name__ == "__main__":
    start_cases(cases, SMALL, LARGE, __doc__)
