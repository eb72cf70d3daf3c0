"""Compute C = A @ B.T in bfloat16 with TMA loads, tensor cores and TMA stores at once, in comparison with torch.matmul
(cuBLAS).

A is (M, K), B is (N, K) and C is (M, N), with contiguous rows. K and N are multiples of 8, because rows have multiples
of 16 bytes. M is free. Beyond the edges, loads read zeros, and stores write nothing. Accumulators are float32.

One CTA runs on each multiprocessor, and computes several tiles of C in sequence. One thread loads A and B into a ring
of stages, 64 elements of K each, whenever a stage is free. Two warpgroups multiply loaded stages. Each warpgroup has
half of the tile, 64 x 256 sums, in its registers. Meanwhile the warpgroups round the preceding tile, swizzle it in
shared memory, and store it by TMA. The page docs/kernels.md lists the gain of each optimization of the kernel.
"""

from functools import partial

from _example import dtype_of, short_name, start_cases, torch
from cuda.core import LaunchConfig

import cuda_tma

SMALL = ((128, 256, 64), (1, 8, 8), (1000, 520, 200), (777, 2048, 72), (2000, 4104, 1000))  # Each case is (m, n, k).
LARGE = ((3072, 3072, 3072), (4096, 4096, 4096), (8192, 8192, 8192))  # For 3072, half of the last round is idle.
TARGETS = ("sm_90a",)
SOURCE = r"""
#include <cuda_tma/epilogue.cuh>
#include <cuda_tma/mainloop.cuh>
#include <cuda_tma/roles.cuh>
#include <cuda_tma/schedule.cuh>
using namespace cuda_tma;

constexpr DataType TYPE = BFLOAT16;   // or FLOAT16; the accumulators are floats
constexpr int TILE_M = 128, TILE_N = 256, TILE_K = 64;   // the tile of one CTA
constexpr int CLUSTER = 2;     // CTAs of a cluster, one above the other, that share B
constexpr int STAGES = 4;      // stages of the ring, 48 KB each
constexpr int CONSUMERS = 2;   // warpgroups of 128 threads, each with 64 rows of the tile
constexpr int PART = 64;       // C is stored in parts: a warp's 16 rows x 128 bytes, the span of the swizzle

using A = Tile<TYPE, Box<TILE_M, TILE_K>, SWIZZLE_128B>;
using B = Tile<TYPE, Box<TILE_N, TILE_K>, SWIZZLE_128B>;
using BShare = Tile<TYPE, Box<TILE_N / CLUSTER, TILE_K>, SWIZZLE_128B>;   // the share that a CTA loads into all CTAs
using C = Tile<TYPE, Box<16, PART>, SWIZZLE_128B>;
using AMap = TiledMap<A, OOB_FILL_NONE, L2_PROMOTION_128B>;
using BMap = TiledMap<BShare, OOB_FILL_NONE, L2_PROMOTION_128B>;

struct Shared {
    A a[STAGES];
    B b[STAGES];
    C c[CONSUMERS * 4][2];   // two parts for each warp, which stores may still read
    Pipeline<STAGES> ring;
};

// The CTA's tiles of C: the start of the i-th tile of its cluster.
struct Corner { int m, n; };
struct Tiles : Bands<8> {
    __device__ Corner operator[](int i) const {
        const Place cluster = Bands::operator[](i);
        return {(cluster.down * CLUSTER + int(cluster_cta_rank())) * TILE_M, cluster.across * TILE_N};
    }
};

__device__ void produce(Shared& shared, const AMap& a_map, const BMap& b_map, Tiles tiles, int k_tiles) {
    const int share = BShare::extent(0) * cluster_cta_rank();
    const CachePolicy keep = evict_last();    // in L2: other clusters load the same data
    const int step = gridDim.x / CLUSTER;
    Stage<STAGES> at;
    for (int i = blockIdx.x / CLUSTER; i < tiles.count(); i += step) {
        const Corner tile = tiles[i];
        const bool backwards = i / step % 2;
        for (int j = 0; j < k_tiles; ++j, at.next()) {
            const int k = (backwards ? k_tiles - 1 - j : j) * TILE_K;
            // Waits until the consumers of both CTAs have released the stage, because both receive this CTA's share of
            // B. The other share may arrive before the expect_tx: the count is then below zero for a while, but the
            // phase cannot end before this thread's arrival.
            Barrier& full = shared.ring.acquire(at, shared.a[0], shared.b[0]);
            load(shared.a[at.index], a_map, full, Coordinates{k, tile.m}, keep);
            load_multicast(shared.b[at.index].rows<TILE_N / CLUSTER>(share), b_map, full,
                           Coordinates{k, tile.n + share}, (1 << CLUSTER) - 1, keep);
        }
    }
}

__device__ void consume(Shared& shared, const TiledMap<C>& c_map, Tiles tiles, int k_tiles) {
    const int first_row = threadIdx.x / 128 * 64;   // of the warpgroup
    Epilogue<C, TILE_N / PART> out(shared.c[threadIdx.x / 32]);
    float sums[TILE_N / 2] = {};   // of the present tile: its first step overwrites them
    Stage<STAGES> at;
    for (int i = blockIdx.x / CLUSTER; i < tiles.count(); i += gridDim.x / CLUSTER) {
        const auto multiply = [&](int stage, int step) {
            const A& a = shared.a[stage];
            const B& b = shared.b[stage];
#pragma unroll
            for (int k = 0; k < TILE_K; k += 16) wgmma(sums, k_major(a, first_row, k), k_major(b, 0, k), step + k > 0);
        };
        accumulate<CLUSTER>(sums, shared.ring, at, k_tiles, multiply, [&] { out.store_next(); });
        const Corner tile = tiles[i];
        out.take(sums, c_map, Coordinates{tile.n, tile.m + first_row});   // stored during the next tile
    }
    out.finish();
}

extern "C" __global__ void __cluster_dims__(CLUSTER) __launch_bounds__((CONSUMERS + 1) * 128, 1)
gemm(const __grid_constant__ AMap a_map, const __grid_constant__ BMap b_map, const __grid_constant__ TiledMap<C> c_map,
     int clusters_down, int across, int k_tiles) {
    Shared& shared = dynamic_shared<Shared>();
    if (threadIdx.x == 0) shared.ring.init(CONSUMERS * CLUSTER);
    const Tiles tiles{clusters_down, across};
    // Registers: the consumers' 128 accumulators, 64 pairs and the rest are more than 65536 / 384.
    in_roles<CONSUMERS, 24, 240>([&] { produce(shared, a_map, b_map, tiles, k_tiles); },
                                 [&] { consume(shared, c_map, tiles, k_tiles); });
}
"""


def compiled():
    """Return the kernel, with its tiles, its shared memory, and the other values of a launch."""
    return cuda_tma.compile(SOURCE, "gemm", constants={"cluster": "CLUSTER", "threads": "(CONSUMERS + 1) * 128"})


def prepare(device, kernel, a, b, c):
    """Return a launch of c = a @ b.T."""
    parameters = cuda_tma.parameters_of(kernel)
    cluster, threads = (parameters.constants[name] for name in ("cluster", "threads"))
    (tile_m, tile_k), (share_n, _) = (parameters[name].map_type.tile_dim for name in ("a_map", "b_map"))
    (m, k), (n, _) = a.shape, b.shape
    down, across, deep = -(-m // (tile_m * cluster)), -(-n // (share_n * cluster)), -(-k // tile_k)
    rounds = -(-down * across // (device.properties.multiprocessor_count // cluster))
    clusters = -(-down * across // rounds)  # The grid has no spare CTAs, because a waiting CTA draws power.
    config = LaunchConfig(grid=clusters * cluster, block=threads)
    return partial(cuda_tma.prepare(kernel, config, a, b, c, down, across, deep), device.default_stream)


def check(c, a, b, units=1):
    """Compare every element with float32, within units of bfloat16's last place and the error of K sums."""
    expected = a.float() @ b.float().T
    error = (c.float() - expected).abs()
    tolerance = units * (expected.abs() * 2**-8 + a.shape[1] ** 0.5 * 2**-15)
    assert (error <= tolerance).all(), f"{tuple(c.shape)}: off by up to {error.max()}"  # A NaN is an error.


def matmul(a, b, out):
    """Return a function that runs out = a @ b in torch."""
    return partial(torch.matmul, a, b, out=out)


RIVALS = {"torch.matmul": matmul}


def cases(sizes):
    """Yield cases as `_example` describes them. The code after `yield` checks the results of the last runs."""
    device = cuda_tma.Device()
    device.set_current()
    kernel = compiled()
    dtype = dtype_of(cuda_tma.parameters_of(kernel)["a_map"].map_type)
    for m, n, k in sizes:
        a, b = (torch.randn(rows, k, device="cuda", dtype=dtype) for rows in (m, n))
        c, *others = (a.new_full((m, n), torch.nan) for _ in range(1 + len(RIVALS)))
        rivals = {name: make(a, b.T, other) for (name, make), other in zip(RIVALS.items(), others, strict=True)}
        run = prepare(device, kernel, a, b, c)
        yield f"{m} x {n} x {k} {short_name(dtype)}", run, rivals, 2 * m * n * k, 2 * (m * k + n * k + m * n)
        check(c, a, b)
        for other in others:
            check(other, a, b, units=4)  # The bound is larger, because cuBLAS may round partial sums.


if __name__ == "__main__":
    start_cases(cases, SMALL, LARGE, __doc__)
