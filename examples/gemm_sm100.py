"""Compute C = A @ B.T in bfloat16 on compute capability 10, with tensor memory and a scheduler in hardware.

A is (M, K), B is (N, K) and C is (M, N), with contiguous rows. K and N are multiples of 8, because rows have multiples
of 16 bytes. M is free. Beyond the edges, loads read zeros, and stores write nothing. Accumulators are float32.

As in cuBLAS, a pair of CTAs on two multiprocessors computes tiles of 256 x 256, and each CTA computes half of the rows.
The warps have roles, and the roles work on different tiles of C at the same time. One thread loads the CTA's half of A
and B into a ring of stages, 64 elements of K each. One thread of the first CTA issues the products of both CTAs. The
sums of two tiles are in tensor memory. Four warps round the sums of the preceding tile, swizzle the sums in shared
memory, and store them by TMA. One thread requests the next tile. The grid has a pair of CTAs for each tile, and a
running pair takes over the tile of a pair that has not started (clusterlaunchcontrol).

No GPU has run this example. The simulator computes its products as the PTX ISA documents them.
"""

from _example import start, torch
from cuda.core import LaunchConfig

import cuda_tma

SIZES = ((128, 256, 64), (1, 8, 8), (777, 2048, 72), (2000, 4104, 1000), (8192, 8192, 8192))  # Each case is (m, n, k).
TARGETS = ("sm_100a", "sm_103a")
SOURCE = r"""
#include <cuda_tma/cluster_launch.cuh>
#include <cuda_tma/schedule.cuh>
#include <cuda_tma/sm100.cuh>
#include <cuda_tma/tcgen05.cuh>
#include <cuda_tma/tile.cuh>
#include <cuda_tma/warpgroup.cuh>
using namespace cuda_tma;

constexpr int TILE_M = 256, TILE_N = 256, TILE_K = 64;   // the tile of a pair of CTAs
constexpr int STAGES = 6;       // stages of the ring, 32 KB in each CTA
constexpr int PART = 64;        // C is stored in parts: a warp's 32 rows x 128 bytes, the span of the swizzle
constexpr int STORING = 128;    // threads of four warps, each with a quarter of the lanes of tensor memory
constexpr int THREADS = STORING + 96;
enum Role { LOADS = STORING / 32, MULTIPLIES, SCHEDULES };   // the warps after the storing warps

using A = Tile<BFLOAT16, Box<TILE_M / 2, TILE_K>, SWIZZLE_128B>;   // the half of a CTA
using B = Tile<BFLOAT16, Box<TILE_N / 2, TILE_K>, SWIZZLE_128B>;
using C = Tile<BFLOAT16, Box<32, PART>, SWIZZLE_128B>;
using AMap = TiledMap<A, OOB_FILL_NONE, L2_PROMOTION_128B>;
using BMap = TiledMap<B, OOB_FILL_NONE, L2_PROMOTION_128B>;

struct Shared {
    A a[STAGES];
    B b[STAGES];
    C c[STORING / 32][2];          // two parts for each warp, which stores may still read
    Pipeline<STAGES> ring;         // the first CTA's `full` counts the bytes of both
    Pipeline<2> sums;              // of two tiles in tensor memory: a phase of `full` is a completed tile
    Pipeline<2> turns;             // of responses of the scheduler
    LaunchResponse responses[2];
    unsigned slot;
};

// Calls work(tile) for the tile of this pair and for each tile that the pair takes over. Each role calls this function.
template <typename Work>
__device__ __forceinline__ void for_each_tile(Shared& shared, Work work) {
    int tile = blockIdx.x / 2;
    for (Stage<2> turn;; turn.next()) {
        work(tile);
        shared.turns.wait(turn);
        const LaunchResponse response = shared.responses[turn.index];
        if (!is_launch_canceled(response)) return;   // no pair is left
        tile = first_canceled_cta(response).x / 2;
        shared.turns.release(turn, 0);               // with a fence, because the next response is an asynchronous write
    }
}

__device__ void schedule(Shared& shared) {
    Stage<2> next;
    for_each_tile(shared, [&](int) {
        Barrier& full = shared.turns.full[next.index];
        if (cluster_cta_rank() == 0) {
            shared.turns.acquire_cluster(next, sizeof(LaunchResponse));
            try_cancel_launch_multicast(shared.responses[next.index], full);   // responds to both CTAs
        } else {
            full.arrive_expect_tx(sizeof(LaunchResponse));
        }
        next.next();
    });
}

__device__ void produce(Shared& shared, const AMap& a_map, const BMap& b_map, Bands<8> tiles, int k_tiles) {
    const int rank = cluster_cta_rank();
    Stage<STAGES> at;
    for_each_tile(shared, [&](int i) {
        const auto [down, across] = tiles[i];
        for (int k = 0; k < k_tiles; ++k, at.next()) {
            Barrier& full = shared.ring.acquire(at);
            if (rank == 0) full.arrive_expect_tx(2 * (A::tx_bytes() + B::tx_bytes()));
            const ClusterBarrier counting = full.in_cta(0);
            cta_group2::load(&shared.a[at.index], a_map, counting,
                             Coordinates{k * TILE_K, down * TILE_M + rank * A::extent(0)});
            cta_group2::load(&shared.b[at.index], b_map, counting,
                             Coordinates{k * TILE_K, across * TILE_N + rank * B::extent(0)});
        }
    });
}

__device__ void multiply(Shared& shared, const TensorMemory<2 * TILE_N, 2>& memory, int k_tiles) {
    Stage<STAGES> at;
    Stage<2> half;
    for_each_tile(shared, [&](int) {
        const tcgen05::Address sums = memory.column(half.index * TILE_N);
        shared.sums.empty[half.index].wait_cluster(half.parity ^ 1);   // until the tile before the last is stored
        for (int k = 0; k < k_tiles; ++k, at.next()) {
            shared.ring.full[at.index].wait_cluster(at.parity);
            tcgen05::fence_after_thread_sync();
            for (int i = 0; i < TILE_K; i += 16)
                tcgen05::mma<TILE_M, TILE_N, 2>(sums, tcgen05::k_major(shared.a[at.index], 0, i),
                                                tcgen05::k_major(shared.b[at.index], 0, i), k + i > 0);
            tcgen05::commit_multicast<2>(shared.ring.empty[at.index], 3);   // the stages are free after the products
        }
        tcgen05::commit_multicast<2>(shared.sums.full[half.index], 3);
        half.next();
    });
}

__device__ void store_tiles(Shared& shared, const TensorMemory<2 * TILE_N, 2>& memory, const TiledMap<C>& c_map,
                            Bands<8> tiles) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_row = cluster_cta_rank() * (TILE_M / 2) + warp * 32;
    Stage<2> half;
    for_each_tile(shared, [&](int i) {
        const auto [down, across] = tiles[i];
        shared.sums.wait(half);
        tcgen05::fence_after_thread_sync();
        for (int part = 0; part < TILE_N / PART; ++part) {
            float row[PART];
            tcgen05::ld(row, memory.column(half.index * TILE_N + part * PART).of_warp());
            tcgen05::wait_ld(row);
            C& c = shared.c[warp][part % 2];
            if (lane == 0) wait_group_read<1>();   // of the store from this buffer
            __syncwarp();
#pragma unroll
            for (int j = 0; j < PART; j += 8)
                c.as<uint4>(lane, j) = {bf16x2(row[j], row[j + 1]), bf16x2(row[j + 2], row[j + 3]),
                                        bf16x2(row[j + 4], row[j + 5]), bf16x2(row[j + 6], row[j + 7])};
            fence_proxy_async();
            __syncwarp();
            if (lane == 0) {
                store(c_map, Coordinates{across * TILE_N + part * PART, down * TILE_M + first_row}, c);
                commit_group();
            }
        }
        tcgen05::fence_before_thread_sync();
        shared.sums.release_generic(half, 0);   // the next products overwrite the sums
        half.next();
    });
    if (lane == 0) wait_group();
}

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(THREADS, 1)
gemm(const __grid_constant__ AMap a_map, const __grid_constant__ BMap b_map, const __grid_constant__ TiledMap<C> c_map,
     int down, int across, int k_tiles) {
    Shared& shared = dynamic_shared<Shared>();
    if (threadIdx.x == 0) {
        shared.ring.init(1);
        shared.sums.init(2 * STORING);
        shared.turns.init(2 * STORING + 5);   // all roles of both CTAs read each response; one CTA multiplies
    }
    const TensorMemory<2 * TILE_N, 2> memory(shared.slot);
    __syncwarp();
    cluster_sync();   // no CTA uses a barrier of the other before its init
    const Bands<8> tiles{down, across};
    const int warp = threadIdx.x / 32;
    if (warp < LOADS) store_tiles(shared, memory, c_map, tiles);
    else if (elect_one()) {
        if (warp == LOADS) produce(shared, a_map, b_map, tiles, k_tiles);
        if (warp == MULTIPLIES && cluster_cta_rank() == 0) multiply(shared, memory, k_tiles);
        if (warp == SCHEDULES) schedule(shared);
    }
    __syncwarp();
    cluster_sync();   // no CTA ends before the other has arrived at its barriers and read its tiles
}
"""


def main():
    device = cuda_tma.Device()
    device.set_current()
    kernel = cuda_tma.compile(SOURCE, "gemm", constants={"threads": "THREADS"})
    parameters = cuda_tma.parameters_of(kernel)
    (half_m, tile_k), (half_n, _) = (parameters[name].map_type.tile_dim for name in ("a_map", "b_map"))
    for m, n, k in SIZES:
        a, b = (torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for rows in (m, n))
        c = a.new_full((m, n), torch.nan)
        down, across = -(-m // (2 * half_m)), -(-n // (2 * half_n))
        config = LaunchConfig(grid=2 * down * across, block=parameters.constants["threads"])
        cuda_tma.launch(device.default_stream, config, kernel, a, b, c, down, across, -(-k // tile_k))
        expected = a.float() @ b.float().T
        error = (c.float() - expected).abs()
        assert (error <= expected.abs() * 2**-8 + k**0.5 * 2**-15).all(), f"{m} x {n} x {k}: off by up to {error.max()}"
        print(f"ok: {m} x {n} x {k}, every element")


if __name__ == "__main__":
    start(main, __doc__)
