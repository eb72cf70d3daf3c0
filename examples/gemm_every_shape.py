"""Compute C = activation(A @ B.T + bias) of any size, in bfloat16 or float16, in comparison with torch.matmul (cuBLAS).

C is (M, N) with contiguous rows. A (M, K) and B (N, K) have contiguous rows or columns. Contiguous extents are
multiples of 8, because TMA requires 16 bytes. Other extents are free. The bias is a row of N. Accumulators are float32.

The kernel is the kernel of gemm.py, with variables in place of its constants. The variables are the size of a tile, the
CTAs that share loads, the exchange of rows and columns of C, and the number of CTAs that divide K. The module
_gemm_variants.py chooses the numbers for a size.
"""

from functools import cache, partial

from _example import short_name, start_cases, torch
from _gemm_cases import LARGE, SMALL
from _gemm_variants import Problem, choose, clusters_at_once
from cuda.core import LaunchConfig

import cuda_tma

TARGETS = ("sm_90a",)
SOURCE = r"""
#include <cuda_tma/epilogue.cuh>
#include <cuda_tma/mainloop.cuh>
#include <cuda_tma/roles.cuh>
#include <cuda_tma/schedule.cuh>
#include <cuda_tma/store_async.cuh>
using namespace cuda_tma;

#ifndef ROWS   // a variant, from _gemm_variants.py
#define TYPE BFLOAT16           // or FLOAT16; the accumulators are floats
#define ROWS 128                // rows of a CTA's tile: 64 or 128
#define COLUMNS 256             // ...: 8, 16, 32, ... 256
#define DOWN 2                  // CTAs of a cluster, one above the other, that share the right operand
#define ACROSS 1                // ... side by side, that share the left one
#define SPLITS 1                // ... that have a part of K each, for the same tile
#define TURNED 0                // 1: rows of the accumulators are columns of C
#define LEFT_MAJOR Major::K     // or MN: its columns are contiguous
#define RIGHT_MAJOR Major::K
#define BIAS 0
#define ACTIVATION none         // relu, gelu, silu
#endif

// Rows of the accumulators are those of the left operand, which is A, or B if turned. Columns are the right operand's.
constexpr int DEPTH = 64, CONSUMERS = ROWS / 64;   // warpgroups of 128 threads, each with 64 rows
constexpr int SHARING = DOWN * ACROSS, CLUSTER = SHARING * SPLITS;   // its CTAs: down, across, splits

// CTAs of a split store at most one piece of the tile each, 16 * n columns or all, in parts.
__device__ constexpr int pieces(int most) { return most == 1 || COLUMNS % (16 * most) == 0 ? most : pieces(most - 1); }
constexpr int PIECES = pieces(SPLITS), PIECE = COLUMNS / PIECES;
constexpr int PART = PIECE % 64 == 0 ? 64 : PIECE % 32 == 0 ? 32 : PIECE % 16 == 0 ? 16 : 8;
constexpr auto SWIZZLE = PART == 64 ? SWIZZLE_128B : PART == 32 ? SWIZZLE_64B : PART == 16 ? SWIZZLE_32B : SWIZZLE_NONE;
constexpr bool IS_TURNED = TURNED;

template <Major Innermost, int Extent, int Depth> struct BoxOf { using Type = Box<Extent, Depth>; };
template <int Extent, int Depth> struct BoxOf<Major::MN, Extent, Depth> { using Type = Box<Depth, Extent>; };

// An operand's tile, and the share that each of some CTAs loads for all, along the outermost dimension.
template <Major Innermost, int Extent, int Sharers>
struct Operand {
    static constexpr bool is_k_major = Innermost == Major::K;
    static constexpr int share = (is_k_major ? Extent : DEPTH) / Sharers;
    using Whole = Tile<TYPE, typename BoxOf<Innermost, Extent, DEPTH>::Type, SWIZZLE_128B>;
    using Share = Tile<TYPE, typename BoxOf<Innermost, is_k_major ? share : Extent, is_k_major ? DEPTH : share>::Type,
                       SWIZZLE_128B>;
    using Map = TiledMap<Share, OOB_FILL_NONE, L2_PROMOTION_128B>;

    __device__ static Coordinates<2> place(int mn, int k, int number) {
        return is_k_major ? Coordinates{k, mn + number * share} : Coordinates{mn, k + number * share};
    }

    // Loads share `number` of the tile at (mn, k) into the CTAs of the mask.
    __device__ static void load_share(Whole& tile, const Map& map, Barrier& full, int mn, int k, int number,
                                      unsigned short ctas, CachePolicy policy) {
        auto&& part = tile.template rows<share>(number * share);
        if constexpr (Sharers == 1) load(part, map, full, place(mn, k, number), policy);
        else load_multicast(part, map, full, place(mn, k, number), ctas, policy);
    }

    // Loads all shares, only into this CTA.
    __device__ static void load_alone(Whole& tile, const Map& map, Barrier& full, int mn, int k, CachePolicy policy) {
#pragma unroll
        for (int i = 0; i < Sharers; ++i)
            load(tile.template rows<share>(i * share), map, full, place(mn, k, i), policy);
    }

    // Returns the matrix of one wgmma, from row or column `mn` on.
    __device__ static auto matrix(const Whole& tile, int mn, int k) {
        if constexpr (is_k_major) return k_major(tile, mn, k);
        else return mn_major(tile, k, mn);
    }
};
using Left = Operand<LEFT_MAJOR, ROWS, ACROSS>;
using Right = Operand<RIGHT_MAJOR, COLUMNS, DOWN>;

// A warp's 16 rows; if turned, a warpgroup's 64, which are contiguous in C.
template <bool Turned> struct PartOf {
    using Type = Tile<TYPE, Box<16, PART>, SWIZZLE>;
    static constexpr int makers = 4 * CONSUMERS;
};
template <> struct PartOf<true> {
    using Type = Tile<TYPE, Box<PART, 64>, SWIZZLE_128B>;
    static constexpr int makers = CONSUMERS;
};
using Part = PartOf<IS_TURNED>::Type;
using Output = Epilogue<Part, PIECE / PART, IS_TURNED ? Turn::transposed : Turn::none>;

struct Kept {   // separate from the ring
    Part parts[PartOf<IS_TURNED>::makers][2];
    float4 sums[SPLITS > 1 ? SPLITS - 1 : 1][SPLITS > 1 ? PIECE / 8 : 1][128 * CONSUMERS];   // from the other splits
};
constexpr int ROOM = 232448 - 1024 - sizeof(Kept), STAGE = sizeof(Left::Whole) + sizeof(Right::Whole);
constexpr int STAGES = ROOM / STAGE < 12 ? ROOM / STAGE : 12;
constexpr int EARLY = SHARING > 1 ? 1 : STAGES;   // stages that are loaded before the cluster barrier, and not shared

struct Shared {
    Left::Whole left[STAGES];
    Right::Whole right[STAGES];
    Kept kept;
    Pipeline<STAGES> ring;
    Barrier added;   // counts the sums of the other splits
};

// This CTA's place in its cluster; the masks of the CTAs that share an operand with it.
struct Member {
    int rank = cluster_cta_rank(), down = rank % DOWN, across = rank / DOWN % ACROSS, split = rank / SHARING;

    __device__ int first() const { return split * SHARING; }   // first CTA that shares any operand
    __device__ unsigned short column() const { return ((1 << DOWN) - 1) << (first() + across * DOWN); }
    __device__ unsigned short row() const { return ((1 << SHARING) - 1) / ((1 << DOWN) - 1) << (first() + down); }
};

// The work: the tiles of the clusters, and the steps of K.
struct Corner { int row, column; };
struct Work : Bands<8> {
    int steps;   // for all of K

    __device__ Corner corner(int i, Member cta) const {
        const Place cluster = Bands::operator[](i);
        return {(cluster.down * DOWN + cta.down) * ROWS, (cluster.across * ACROSS + cta.across) * COLUMNS};
    }
    __device__ int first_step(int split) const { return steps * split / SPLITS; }
};

struct Maps { const Left::Map& left; const Right::Map& right; };

// A CTA's loads: begin(), before the cluster barrier, and then go_on().
struct Producer {
    Shared& shared;
    const Maps& maps;
    const Work& work;
    const Member cta{};
    // Keeps data in L2, if other clusters also load it.
    const CachePolicy left_policy = work.across > 1 ? evict_last() : evict_first();
    const CachePolicy right_policy = work.down > 1 ? evict_last() : evict_first();
    const int first = work.first_step(cta.split), steps = work.first_step(cta.split + 1) - first;
    const int begun = min(EARLY, steps);

    // Other CTAs' barriers may not be initialized yet: this CTA loads all that it needs by itself.
    __device__ void begin() {
        const Corner tile = work.corner(blockIdx.x / CLUSTER, cta);
        for (Stage<STAGES> at; at.index < begun; ++at.index) {
            const int k = (first + at.index) * DEPTH;
            Barrier& full = shared.ring.acquire(at, shared.left[0], shared.right[0]);
            Left::load_alone(shared.left[at.index], maps.left, full, tile.row, k, left_policy);
            Right::load_alone(shared.right[at.index], maps.right, full, tile.column, k, right_policy);
        }
    }

    __device__ void go_on() {
        const int stride = gridDim.x / CLUSTER;
        Stage<STAGES> at{begun % STAGES, unsigned(begun / STAGES)};
        int step = begun;
        for (int i = blockIdx.x / CLUSTER; i < work.count(); i += stride, step = 0) {
            const Corner tile = work.corner(i, cta);
            const bool backwards = i / stride % 2;   // L2 still contains the end of K from the preceding tile
            for (; step < steps; ++step, at.next()) {
                const int k = (first + (backwards ? steps - 1 - step : step)) * DEPTH;
                Barrier& full = shared.ring.acquire(at, shared.left[0], shared.right[0]);
                Left::load_share(shared.left[at.index], maps.left, full, tile.row, k, cta.across, cta.row(),
                                 left_policy);
                Right::load_share(shared.right[at.index], maps.right, full, tile.column, k, cta.down, cta.column(),
                                  right_policy);
            }
        }
        shared.ring.drain(at);
    }
};

// Each CTA of a split sends pieces to the other CTAs, and adds their sums to its own piece, in a fixed order that
// begins with its own sums.
__device__ void add_splits(Shared& shared, float (&sums)[COLUMNS / 2]) {
    const Member cta;   // read here: addresses that were known before the mainloop would take its registers
#pragma unroll
    for (int piece = 0; piece < PIECES; ++piece) {
        const float* from = sums + piece * PIECE / 2;
        if (piece == cta.split) continue;
        auto& to = shared.kept.sums[cta.split - (cta.split > piece)];
#pragma unroll
        for (int i = 0; i < PIECE / 2; i += 4)
            store_async(&to[i / 4][threadIdx.x], cta.rank + (piece - cta.split) * SHARING,
                        float4{from[i], from[i + 1], from[i + 2], from[i + 3]}, shared.added);
    }
    if (cta.split >= PIECES) return;
#pragma unroll
    for (int piece = 1; piece < PIECES; ++piece)   // in registers, which a variable cannot index
#pragma unroll
        for (int i = 0; i < PIECE / 2; ++i) sums[i] = piece == cta.split ? sums[piece * PIECE / 2 + i] : sums[i];
    shared.added.wait_cluster(0);
    for (int other = 0; other < SPLITS - 1; ++other) {
#pragma unroll
        for (int i = 0; i < PIECE / 2; i += 4) {
            const float4 more = shared.kept.sums[other][i / 4][threadIdx.x];
            sums[i] += more.x, sums[i + 1] += more.y, sums[i + 2] += more.z, sums[i + 3] += more.w;
        }
    }
}

enum class Activation { none, relu, gelu, silu };

__device__ float activated(float x) {
    constexpr Activation kind = Activation::ACTIVATION;
    if (kind == Activation::relu) return fmaxf(x, 0);
    if (kind == Activation::gelu) return 0.5f * x * (1 + erff(x * 0.70710678f));
    if (kind == Activation::silu) return __fdividef(x, 1 + __expf(-x));
    return x;
}

__device__ float widened(unsigned short bits) {
    if constexpr (TYPE == BFLOAT16) return __uint_as_float(unsigned(bits) << 16);
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

// `n` is the column of the warpgroup's first accumulator in C, which has `end`. (wgmma.cuh gives the others.)
__device__ void complete(float (&sums)[PIECE / 2], const unsigned short* bias, int n, int end) {
    const int lane = threadIdx.x % 32;
    n += IS_TURNED ? threadIdx.x % 128 / 32 * 16 + lane / 4 : lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < PIECE / 2; ++i) {
        const int at = n + (IS_TURNED ? i / 2 % 2 * 8 : i / 4 * 8 + i % 2);
        if (BIAS && at < end) sums[i] += widened(__ldg(bias + at));
        sums[i] = activated(sums[i]);
    }
}

__device__ void consume(Shared& shared, const Output::Map& c_map, const Work& work, const unsigned short* bias, int n) {
    const Member cta;
    const int first_row = threadIdx.x / 128 * 64;   // of the warpgroup
    const int steps = work.first_step(cta.split + 1) - work.first_step(cta.split);
    const int maker = threadIdx.x * PartOf<IS_TURNED>::makers / (128 * CONSUMERS);   // threads with a part of their own
    Output out(shared.kept.parts[maker]);
    float sums[COLUMNS / 2] = {};   // of the present tile: its first step overwrites them
    Stage<STAGES> at;
    for (int i = blockIdx.x / CLUSTER; i < work.count(); i += gridDim.x / CLUSTER) {
        Corner tile = work.corner(i, cta);
        pin(tile.row), pin(tile.column);   // now, while the first loads are in flight
        const auto multiply = [&](int stage, int step) {
#pragma unroll
            for (int k = 0; k < DEPTH; k += 16)
                wgmma(sums, Left::matrix(shared.left[stage], first_row, k), Right::matrix(shared.right[stage], 0, k),
                      step + k > 0);
        };
        accumulate<SHARING>(sums, shared.ring, at, steps, multiply, [&] { if (SPLITS == 1) out.store_next(); },
                            cta.first());
        if (SPLITS > 1) add_splits(shared, sums);
        if (cta.split >= PIECES) continue;
        float (&piece)[PIECE / 2] = reinterpret_cast<float (&)[PIECE / 2]>(sums);
        const int row = tile.row + first_row, column = tile.column + cta.split * PIECE;
        if (BIAS || Activation::ACTIVATION != Activation::none) complete(piece, bias, IS_TURNED ? row : column, n);
        out.take(piece, c_map, IS_TURNED ? Coordinates{row, column} : Coordinates{column, row});   // in the next tile
    }
    // At the end the ring is free: the last tile's parts fit there without waiting for each other.
    fence_proxy_async();
    named_barrier_sync<CONSUMERS + 1>(128 * CONSUMERS);
    out.finish(reinterpret_cast<Part (*)[PIECE / PART]>(shared.left)[maker]);
}

// With splits each cluster has one tile: there is space for the sums of one.
extern "C" __global__ void __cluster_dims__(CLUSTER) __launch_bounds__((CONSUMERS + 1) * 128, 1)
gemm(const __grid_constant__ Left::Map left_map, const __grid_constant__ Right::Map right_map,
     const __grid_constant__ TiledMap<Part> c_map, const unsigned short* bias, int n, int down, int across, int steps) {
    Shared& shared = dynamic_shared<Shared>();
    const Maps maps{left_map, right_map};
    const Work work{{down, across}, steps};
    if (is_producer<CONSUMERS>()) {
        prefetch_tensor_map(left_map);
        prefetch_tensor_map(right_map);
        shared.added.init(1);
        shared.ring.init(CONSUMERS * SHARING);
        if (SPLITS > 1) shared.added.arrive_expect_tx((SPLITS - 1) * sizeof(shared.kept.sums[0]));
        fence_proxy_async();   // loads may arrive before another thread has polled
    }
    in_roles<CONSUMERS, 40, 232>([&] { Producer{shared, maps, work}.begin(); },
                                 [&] { Producer{shared, maps, work}.go_on(); },
                                 [&] { consume(shared, c_map, work, bias, n); });
}
"""
MAJORS = {True: "Major::K", False: "Major::MN"}


@cache
def compiled(variant, dtype, left_is_k_major, right_is_k_major, has_bias, activation):
    """Return the kernel, with its tiles and its shared memory."""
    numbers = dict(zip(("ROWS", "COLUMNS", "DOWN", "ACROSS", "SPLITS"), variant[:5], strict=True))
    words = {
        "TYPE": dtype,
        "TURNED": variant.is_turned,
        "LEFT_MAJOR": MAJORS[left_is_k_major],
        "RIGHT_MAJOR": MAJORS[right_is_k_major],
        "BIAS": has_bias,
        "ACTIVATION": activation or "none",
    }
    constants = {"threads": "(CONSUMERS + 1) * 128"}
    return cuda_tma.compile(SOURCE, "gemm", defines={**numbers, **words}, constants=constants)


def prepare(device, a, b, c, bias=None, activation=None, variant=None):
    """Return a launch of c = activation(a @ b.T + bias), by the given variant or the best variant."""
    (m, k), (n, _) = a.shape, b.shape
    a_is_k_major, b_is_k_major = (operand.stride(1) == 1 for operand in (a, b))
    problem = Problem(m, n, k, a_is_k_major, b_is_k_major)
    variant = variant or choose(problem, device.properties.multiprocessor_count)
    operands = (a, a_is_k_major), (b, b_is_k_major)
    (left, left_is_k_major), (right, right_is_k_major) = reversed(operands) if variant.is_turned else operands
    dtype = str(a.dtype).removeprefix("torch.").upper()
    kernel = compiled(variant, dtype, left_is_k_major, right_is_k_major, bias is not None, activation)
    down, across, steps = variant.grid(problem)
    clusters = down * across
    if variant.splits == 1:
        at_once = clusters_at_once(device.properties.multiprocessor_count, variant.cluster)
        # The grid has no spare CTAs, because a waiting CTA draws power.
        clusters = -(-clusters // -(-clusters // at_once))
    config = LaunchConfig(grid=clusters * variant.cluster, block=cuda_tma.parameters_of(kernel).constants["threads"])
    left, right = (as_it_lies(x, y) for x, y in ((left, left_is_k_major), (right, right_is_k_major)))
    arguments = left, right, c, 0 if bias is None else bias, n, down, across, steps
    return partial(cuda_tma.prepare(kernel, config, *arguments), device.default_stream)


def as_it_lies(operand, is_k_major):
    """Return the operand with contiguous rows, as in a tensor map."""
    return operand if is_k_major else operand.T


def matmul(a, b, out):
    """Return a function that runs out = a @ b in torch."""
    return partial(torch.matmul, a, b, out=out)


RIVALS = {"torch.matmul": matmul}  # The function torch.matmul computes no bias and no activation.


def check(c, a, b, bias, activation, units=1):
    """Compare every element with float32, within units of the last place and the error of K sums."""
    expected = a.float() @ b.float().T
    k = a.shape[1]
    slack = max(k**0.5 * 2**-15, k**1.5 * 2**-28)  # Tensor cores truncate the last bits in each of K / 16 additions.
    if bias is not None:
        expected += bias.float()
    if activation is not None:
        expected = getattr(torch.nn.functional, activation)(expected)
    error = (c.float() - expected).abs()
    assert (error <= units * (expected.abs() * 2**-8 + slack)).all(), f"{tuple(c.shape)}: off by up to {error.max()}"


def operand(rows, k, is_k_major, dtype):
    """Return a random operand."""
    shape = (rows, k) if is_k_major else (k, rows)
    return as_it_lies(torch.randn(*shape, device="cuda", dtype=dtype), is_k_major)


def cases(problems):
    """Yield cases as `_example` describes them. The code after `yield` checks the results of the last runs."""
    device = cuda_tma.Device()
    device.set_current()
    for (m, n, k, a_is_k_major, b_is_k_major), dtype, has_bias, activation in problems:
        dtype = getattr(torch, dtype)
        a, b = operand(m, k, a_is_k_major, dtype), operand(n, k, b_is_k_major, dtype)
        bias = torch.randn(n, device="cuda", dtype=dtype) if has_bias else None
        rivals = RIVALS if bias is None and activation is None else {}
        c, *others = (a.new_full((m, n), torch.nan) for _ in range(1 + len(rivals)))
        rivals = {name: make(a, b.T, other) for (name, make), other in zip(rivals.items(), others, strict=True)}
        run = prepare(device, a, b, c, bias, activation)
        yield f"{m} x {n} x {k} {short_name(dtype)}", run, rivals, 2 * m * n * k, 2 * (m * k + n * k + m * n)
        check(c, a, b, bias, activation)
        for other in others:
            check(other, a, b, None, None, units=4)  # The bound is larger, because cuBLAS may round partial sums.


if __name__ == "__main__":
    start_cases(cases, SMALL, LARGE, __doc__)
