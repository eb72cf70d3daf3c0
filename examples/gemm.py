"""C = A @ B.T in bfloat16, against torch.matmul (cuBLAS): TMA loads, tensor cores, TMA stores, all at once.

A is (M, K), B is (N, K), C is (M, N), rows contiguous; K and N are multiples of 8, as TMA wants rows of a multiple of
16 bytes. Otherwise any size: beyond the edges loads read zeros, and stores drop what they are given. Sums are float32.

One CTA on each multiprocessor stays there, and computes one tile of C after the other:

    a thread          loads A and B into a ring of stages, 64 elements of K each, as far ahead as there is room
    two warpgroups    multiply what has arrived: each has half of the tile, 64 x 256 sums, in its registers ...
                      ... and meanwhile send the tile before away: rounded, swizzled in shared memory, by TMA

What brought it past cuBLAS, in million clock cycles at M = N = K = 8192, where cuBLAS takes 2.22 (one H200; that long
the tensor cores of its 132 multiprocessors would need at least 2.03, and 2.10 if each has a whole number of tiles):

    2.41 to 2.16    two CTAs in a cluster, with tiles one below the other, load half of their common B each, for both
    3.58 to 2.16    they tell each other that a stage is free by an arrival that orders nothing between CTAs
    2.18 to 2.16    a tile is stored during the multiplications of the next
    2.18 to 2.16    four stages instead of three, the shared memory for C being small

After a moment of work the clock of such a kernel, and of cuBLAS, is set by the power that the GPU may draw: about 1.45
GHz of 1.98. Then what saves energy saves time, at 8192 and 4096:

    1.6%, 1.9%      what is loaded stays in L2 (evict_last)
    1.3%, 1.0%      no more CTAs than the last round needs, so that all have equally many tiles
    0.8%, 1.8%      every other tile from the end of K to its start: L2 has the end still, from the tile before
                    (measured with bands that alternate between left and right, which by itself changed nothing)
"""

from functools import partial

from _example import dtype_of, short_name, start_cases, torch
from cuda.core import LaunchConfig

import cuda_tma

SMALL = ((128, 256, 64), (1, 8, 8), (1000, 520, 200), (777, 2048, 72), (2000, 4104, 1000))  # m, n, k
LARGE = ((3072, 3072, 3072), (4096, 4096, 4096), (8192, 8192, 8192))  # at 3072 the last round of tiles is half empty
TARGETS = ("sm_90a",)
SOURCE = r"""
#include <cuda_tma/pipeline.cuh>
#include <cuda_tma/tile.cuh>
#include <cuda_tma/wgmma.cuh>
using namespace cuda_tma;

constexpr DataType TYPE = BFLOAT16;   // or FLOAT16; the sums are floats
constexpr int TILE_M = 128, TILE_N = 256, TILE_K = 64;   // of one CTA
constexpr int CLUSTER = 2;     // CTAs, one below the other, that share B
constexpr int STAGES = 4;      // of the ring, 48 KB each
constexpr int BAND = 8;        // clusters, one below the other, that run at the same time
constexpr int CONSUMERS = 2;   // warpgroups of 128 threads, each with 64 rows of the tile
constexpr int PART = 64;       // C leaves in parts: a warp's 16 rows x 128 bytes, the span of the swizzle
constexpr int BUFFERS = 2;     // parts of each warp that may be on their way

using A = Tile<TYPE, Box<TILE_M, TILE_K>, SWIZZLE_128B>;
using B = Tile<TYPE, Box<TILE_N, TILE_K>, SWIZZLE_128B>;
using BShare = Tile<TYPE, Box<TILE_N / CLUSTER, TILE_K>, SWIZZLE_128B>;   // which a CTA loads, into all
using C = Tile<TYPE, Box<16, PART>, SWIZZLE_128B>;

template <typename TileType>
using MapOf = TiledMap<TileType, OOB_FILL_NONE, L2_PROMOTION_128B>;

struct Shared {
    A a[STAGES];
    B b[STAGES];
    C c[CONSUMERS * 4][BUFFERS];   // of each warp
    Pipeline<STAGES> ring;
};

// Two sums, rounded, as registers hold them.
__device__ unsigned rounded(float first, float second) {
    if constexpr (TYPE == FLOAT16) return f16x2(first, second);
    else return bf16x2(first, second);
}

// The CTA's tiles of C: where the i-th of its cluster starts. Clusters take them in turn, down a band and then to the
// right: those that run at the same time so cover a part of C about as high as wide, and share much of A and B in L2.
struct Corner { int m, n; };
struct Tiles {
    int clusters_down, across;

    __device__ int count() const { return clusters_down * across; }

    __device__ Corner operator[](int i) const {
        const int band = i / (BAND * across), rest = i % (BAND * across);
        const int height = min(BAND, clusters_down - BAND * band);   // the last band may be lower
        const int down = (BAND * band + rest % height) * CLUSTER + int(cluster_cta_rank());
        return {down * TILE_M, rest / height * TILE_N};
    }
};

// The last tile, on its way out: a warp's 16 rows of it. In registers, which no variable can index.
struct Output {
    static constexpr int PARTS = TILE_N / PART;
    unsigned pairs[TILE_N / 4];   // the sums of a thread, rounded, two in each
    int m, n, stored = PARTS;     // where it lies in C; how many parts have left

    __device__ void take(const float (&sums)[TILE_N / 2], Corner tile) {
#pragma unroll
        for (int i = 0; i < TILE_N / 4; ++i) pairs[i] = rounded(sums[2 * i], sums[2 * i + 1]);
        m = tile.m + threadIdx.x / 32 * 16;
        n = tile.n;
        stored = 0;
    }

    template <int Part>
    __device__ void store_part(C (&buffers)[BUFFERS], const TiledMap<C>& c_map) const {
        const int lane = threadIdx.x % 32;
        C& buffer = buffers[Part % BUFFERS];
        // The store before last has read this buffer. The thread that issued it knows, and then the others.
        if (lane == 0) wait_group_read<BUFFERS - 1>();
        __syncwarp();
#pragma unroll
        for (int i = 0; i < PART / 16; ++i) {
            // 16 x 16 elements. The swizzle spreads the 8 rows of a matrix over all banks.
            const unsigned* m = pairs + Part * PART / 4 + 4 * i;
            store_matrices(buffer.address(lane % 16, 16 * i + lane / 16 * 8), m[0], m[1], m[2], m[3]);
        }
        fence_proxy_async();   // each thread: what it wrote is for the TMA unit ...
        __syncwarp();          // ... which starts when all have written
        if (lane == 0) {
            store(c_map, Coordinates{n + Part * PART, m}, buffer);
            commit_group();
        }
    }

    template <int Part = 0>   // a function for each part, as each has its own registers
    __device__ void store_next(C (&buffers)[BUFFERS], const TiledMap<C>& c_map) {
        if constexpr (Part < PARTS) {
            if (stored != Part) return store_next<Part + 1>(buffers, c_map);
            store_part<Part>(buffers, c_map);
            ++stored;
        }
    }

    __device__ void store_rest(C (&buffers)[BUFFERS], const TiledMap<C>& c_map) {
        while (stored < PARTS) store_next(buffers, c_map);
    }
};

__device__ void produce(Shared& shared, const MapOf<A>& a_map, const MapOf<BShare>& b_map, Tiles tiles, int k_tiles) {
    const int share = BShare::extent(0) * cluster_cta_rank();
    const CachePolicy keep = evict_last();    // in L2: other clusters load the same
    const int step = gridDim.x / CLUSTER;
    Stage<STAGES> at;
    for (int i = blockIdx.x / CLUSTER; i < tiles.count(); i += step) {
        const Corner tile = tiles[i];
        const bool backwards = i / step % 2;
        for (int j = 0; j < k_tiles; ++j, at.next()) {
            const int k = (backwards ? k_tiles - 1 - j : j) * TILE_K;
            // Waits until the consumers of both CTAs have released the stage, as this CTA's share of B goes to both.
            // The other's share may arrive before the bytes are expected: the count is then below zero for a while,
            // but the phase cannot end before this thread's arrival.
            Barrier& full = shared.ring.acquire(at, shared.a[0], shared.b[0]);
            load(shared.a[at.index], a_map, full, Coordinates{k, tile.m}, keep);
            load_multicast(shared.b[at.index].rows<TILE_N / CLUSTER>(share), b_map, full,
                           Coordinates{k, tile.n + share}, (1 << CLUSTER) - 1, keep);
        }
    }
}

__device__ void consume(Shared& shared, const TiledMap<C>& c_map, Tiles tiles, int k_tiles) {
    const int half = threadIdx.x / 128;
    auto& buffers = shared.c[threadIdx.x / 32];
    const auto release = [&](int index) {   // at each CTA: one arrival for the warpgroup, whose wgmma it waited for
        if (threadIdx.x % 128 < CLUSTER) shared.ring.empty[index].in_cta(threadIdx.x % 128).release_async_read();
    };
    Output output;
    Stage<STAGES> at;
    for (int i = blockIdx.x / CLUSTER; i < tiles.count(); i += gridDim.x / CLUSTER) {
        float sums[TILE_N / 2];
        int before = 0;
        for (int k = 0; k < k_tiles; ++k, at.next()) {
            shared.ring.wait(at);
            const A& a = shared.a[at.index];
            const B& b = shared.b[at.index];
            wgmma_fence();   // before this, other instructions may have read the sums: output.take() did
#pragma unroll
            for (int j = 0; j < TILE_K; j += 16) wgmma(sums, k_major(a, 64 * half, j), k_major(b, 0, j), k + j > 0);
            wgmma_commit();
            wgmma_wait<1>();   // this step goes on; the one before is done, and its stage has been read
            if (k > 0) release(before);
            before = at.index;
            output.store_next(buffers, c_map);   // after the release, which the producers of both CTAs wait for
        }
        wgmma_wait<0>(sums);
        release(before);
        output.store_rest(buffers, c_map);   // where there were fewer steps than parts
        output.take(sums, tiles[i]);
    }
    output.store_rest(buffers, c_map);   // of the last tile
    wait_group_read();   // a CTA that ends gives up its shared memory: not before the last stores have read it
}

extern "C" __global__ void __cluster_dims__(CLUSTER) __launch_bounds__((CONSUMERS + 1) * 128, 1)
gemm(const __grid_constant__ MapOf<A> a_map, const __grid_constant__ MapOf<BShare> b_map,
     const __grid_constant__ TiledMap<C> c_map, int clusters_down, int across, int k_tiles) {
    Shared& shared = dynamic_shared<Shared>();
    if (threadIdx.x == 0) shared.ring.init(CONSUMERS * CLUSTER);
    const Tiles tiles{clusters_down, across};
    __syncwarp();     // thread 0 comes back to its warp: the instruction wants whole warps (.aligned)
    cluster_sync();   // nobody uses a barrier, here or in the other CTA, that is not yet initialised

    if (threadIdx.x / 128 == CONSUMERS) {
        register_dealloc<24>();   // for the consumers: 128 sums, 64 pairs and the rest are more than 65536 / 384
        if (threadIdx.x % 128 == 0) produce(shared, a_map, b_map, tiles, k_tiles);
    } else {
        register_alloc<240>();
        consume(shared, c_map, tiles, k_tiles);
    }
    __syncwarp();
    cluster_sync();   // nor ends while the other CTA may still write to its shared memory or arrive at its barriers
}
"""


def compiled():
    """The kernel, which knows its tiles and its shared memory, and what a launch needs beside."""
    return cuda_tma.compile(SOURCE, "gemm", constants={"cluster": "CLUSTER", "threads": "(CONSUMERS + 1) * 128"})


def prepare(device, kernel, a, b, c):
    """What launches c = a @ b.T."""
    parameters = cuda_tma.parameters_of(kernel)
    cluster, threads = (parameters.constants[name] for name in ("cluster", "threads"))
    (tile_m, tile_k), (share_n, _) = (parameters[name].map_type.tile_dim for name in ("a_map", "b_map"))
    (m, k), (n, _) = a.shape, b.shape
    down, across, deep = -(-m // (tile_m * cluster)), -(-n // (share_n * cluster)), -(-k // tile_k)
    rounds = -(-down * across // (device.properties.multiprocessor_count // cluster))
    clusters = -(-down * across // rounds)  # no more: a multiprocessor that waits for the others draws power
    config = LaunchConfig(grid=clusters * cluster, block=threads)
    return partial(cuda_tma.prepare(kernel, config, a, b, c, down, across, deep), device.default_stream)


def check(c, a, b, units=1):
    """Every element, against float32: units of bfloat16's last place, and what the order of K sums may change."""
    expected = a.float() @ b.float().T
    error = (c.float() - expected).abs()
    tolerance = units * (expected.abs() * 2**-8 + a.shape[1] ** 0.5 * 2**-15)
    assert (error <= tolerance).all(), f"{tuple(c.shape)}: off by up to {error.max()}"  # NaN fails too


def cases(sizes):
    """As `_example` says; what comes after `yield` checks what the last runs left."""
    device = cuda_tma.Device()
    device.set_current()
    kernel = compiled()
    dtype = dtype_of(cuda_tma.parameters_of(kernel)["a_map"].map_type)
    for m, n, k in sizes:
        a, b = (torch.randn(rows, k, device="cuda", dtype=dtype) for rows in (m, n))
        c, other = (a.new_full((m, n), torch.nan) for _ in range(2))
        rivals = {"torch.matmul": partial(torch.matmul, a, b.T, out=other)}
        run = prepare(device, kernel, a, b, c)
        yield f"{m} x {n} x {k} {short_name(dtype)}", run, rivals, 2 * m * n * k, 2 * (m * k + n * k + m * n)
        check(c, a, b)
        check(other, a, b, units=4)  # cuBLAS may add up parts that it has rounded


if __name__ == "__main__":
    start_cases(cases, SMALL, LARGE, __doc__)
