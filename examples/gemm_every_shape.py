"""Compute C = activation(alpha * A @ B.T + beta * C + bias) of any size and type, in comparison with torch.matmul.

A (M, K), B (N, K) and C (M, N) are matrices, or batches of matrices, with contiguous rows or columns. Contiguous
extents are multiples of 16 bytes, which TMA requires. Other extents are free. Operands are bf16, f16, tf32, fp8 or
integers of 8 bits, accumulators f32, f16 or s32, and outputs have 8 to 32 bits. The bias is a row of N.

The kernel is the kernel of gemm.py, with variables in place of its constants. The variables are the size of a tile, the
CTAs that share loads, the exchange of rows and columns of C, and the number of CTAs that divide K. The module
_gemm_variants.py chooses the numbers for a size.
"""

from functools import cache, partial

import numpy as np
from _example import short_name, start_cases, torch
from _gemm_cases import LARGE, SMALL
from _gemm_types import Contract, refusal, unaligned
from _gemm_variants import Problem, choose, clusters_at_once
from cuda.core import LaunchConfig

import cuda_tma

TARGETS = ("sm_90a",)
SOURCE = r"""
#include <cuda_tma/mainloop.cuh>
#include <cuda_tma/operand.cuh>
#include <cuda_tma/output.cuh>
#include <cuda_tma/roles.cuh>
#include <cuda_tma/schedule.cuh>
#include <cuda_tma/store_async.cuh>
#ifdef PRODUCTS
#include PRODUCTS   // the header of wgmma for operands other than f16 and bf16
#endif
using namespace cuda_tma;

#ifndef ROWS   // a variant, from _gemm_variants.py
#define ROWS 128                // rows of a CTA's tile: 64 or 128
#define COLUMNS 256             // ...: 8, 16, 32, ... 256
#define DOWN 2                  // CTAs of a cluster, one above the other, that share the right operand
#define ACROSS 1                // ... side by side, that share the left one
#define SPLITS 1                // ... that have a part of K each, for the same tile
#define TURNED 0                // 1: rows of the accumulators are columns of C
#endif
#ifndef LEFT   // a contract, from _gemm_types.py
#define LEFT bf16               // or f16, tf32, e4m3, e5m2, s8, u8
#define RIGHT bf16
#define LEFT_MAJOR Major::k     // or mn: its columns are contiguous
#define RIGHT_MAJOR Major::k
#define BATCHED 0               // 1: batches of matrices
#define SUM float               // or int, or unsigned for two sums in f16
#define OUTPUT Bf16             // or F16, float, E4m3, E5m2, int, Int8, Uint8
#define SCALED 0                // 1: alpha * A @ B.T + beta * (the former C)
#define BIAS_TYPE void          // or the type of the bias
#define BIAS_OF_ROWS 0          // 1: a bias for each row of C
#define ACTIVATION none         // relu, gelu, silu
#endif

// Rows of the accumulators are those of the left operand, which is A, or B if turned. Columns are the right operand's.
constexpr int CONSUMERS = ROWS / 64;   // warpgroups of 128 threads, each with 64 rows
constexpr int SHARING = DOWN * ACROSS, CLUSTER = SHARING * SPLITS;   // its CTAs: down, across, splits
constexpr bool IS_TURNED = TURNED, IS_BATCHED = BATCHED;
using Left = Operand<Input::LEFT, LEFT_MAJOR, ROWS, ACROSS, IS_BATCHED>;
using Right = Operand<Input::RIGHT, RIGHT_MAJOR, COLUMNS, DOWN, IS_BATCHED>;
constexpr int DEPTH = Left::depth;

// CTAs of a split store at most one piece of the tile each, 16 * n columns or all, in parts.
__device__ constexpr int pieces(int most) { return most == 1 || COLUMNS % (16 * most) == 0 ? most : pieces(most - 1); }
constexpr int PIECES = pieces(SPLITS), PIECE = COLUMNS / PIECES, SIZE = sizeof(OUTPUT);

// A part has the rows of a warp, or, if turned, those of a warpgroup, which are contiguous in C (32 bits: a warp).
__device__ constexpr int widest(int bytes) { return PIECE * SIZE % bytes == 0 ? bytes / SIZE : widest(bytes / 2); }
constexpr int PART = IS_TURNED ? widest(64 * SIZE) : widest(128), PART_ROWS = IS_TURNED && SIZE < 4 ? 64 : 16;
constexpr int MAKERS = CONSUMERS * 64 / PART_ROWS, WIDTH_BYTES = SIZE * (IS_TURNED ? PART_ROWS : PART);
constexpr Swizzle SWIZZLE = WIDTH_BYTES == 128 ? SWIZZLE_128B : WIDTH_BYTES == 64 ? SWIZZLE_64B
                          : WIDTH_BYTES == 32 ? SWIZZLE_32B : SWIZZLE_NONE;
template <bool InBatch>
using PartOf = Tile<data_type_of_element<OUTPUT>,
                    typename BoxInBatch<InBatch, IS_TURNED ? PART : PART_ROWS, IS_TURNED ? PART_ROWS : PART>::Type,
                    SWIZZLE>;
using Part = PartOf<false>;
using PartMap = TiledMap<PartOf<IS_BATCHED>>;

struct ToBatch {
    const PartMap* map = nullptr;
    int batch = 0;

    __device__ void operator()(Coordinates<2> at, const Part& part) const {
        store(as_tensor_map(*map), coordinates<IS_BATCHED>(at.value[0], batch, at.value[1]), &part);
    }
};
constexpr Turn TURN = IS_TURNED ? Turn::transposed : Turn::none;
template <bool IsOf16Bits> struct OutputOf { using Type = Epilogue<Part, PIECE / PART, TURN, 2, ToBatch>; };
template <> struct OutputOf<false> { using Type = DirectEpilogue<OUTPUT, Part, PIECE / PART, TURN, 2, ToBatch>; };
using Output = OutputOf<SIZE == 2>::Type;

template <typename Sum> struct alignas(16) Four { Sum x, y, z, w; };

struct Kept {   // separate from the ring
    Part parts[MAKERS][2];
    Four<SUM> sums[SPLITS > 1 ? SPLITS - 1 : 1][SPLITS > 1 ? PIECE / 8 : 1][128 * CONSUMERS];   // from the other splits
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
struct Work : Bands<8> {
    int steps, batches;   // the steps of all of K

    __device__ int count() const { return IS_BATCHED ? batches * Bands::count() : Bands::count(); }

    __device__ Corner corner(int i, Member cta) const {
        const int batch = IS_BATCHED ? i / Bands::count() : 0;
        const Place cluster = Bands::operator[](i - batch * Bands::count());
        return {(cluster.down * DOWN + cta.down) * ROWS, (cluster.across * ACROSS + cta.across) * COLUMNS, batch};
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
            Left::load_alone(shared.left[at.index], maps.left, full, {tile.row, k, tile.batch}, left_policy);
            Right::load_alone(shared.right[at.index], maps.right, full, {tile.column, k, tile.batch}, right_policy);
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
                Left::load_share(shared.left[at.index], maps.left, full, {tile.row, k, tile.batch}, cta.across,
                                 cta.row(), left_policy);
                Right::load_share(shared.right[at.index], maps.right, full, {tile.column, k, tile.batch}, cta.down,
                                  cta.column(), right_policy);
            }
        }
        shared.ring.drain(at);
    }
};

// Each CTA of a split sends pieces to the other CTAs, and adds their sums to its own piece, in a fixed order that
// begins with its own sums.
template <int Count>
__device__ void add_splits(Shared& shared, SUM (&sums)[Count]) {
    const Member cta;   // read here: addresses that were known before the mainloop would take its registers
#pragma unroll
    for (int piece = 0; piece < PIECES; ++piece) {
        const SUM* from = sums + piece * PIECE / 2;
        if (piece == cta.split) continue;
        auto& to = shared.kept.sums[cta.split - (cta.split > piece)];
#pragma unroll
        for (int i = 0; i < PIECE / 2; i += 4)
            store_async(&to[i / 4][threadIdx.x], cta.rank + (piece - cta.split) * SHARING,
                        Four<SUM>{from[i], from[i + 1], from[i + 2], from[i + 3]}, shared.added);
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
            const Four<SUM> more = shared.kept.sums[other][i / 4][threadIdx.x];
            sums[i] += more.x, sums[i + 1] += more.y, sums[i + 2] += more.z, sums[i + 3] += more.w;
        }
    }
}

using Complete = Completion<OUTPUT, BIAS_TYPE, SCALED, BIAS_OF_ROWS, Activation::ACTIVATION, TURN>;

__device__ void consume(Shared& shared, const PartMap& c_map, const Work& work, const Complete& complete) {
    const Member cta;
    const int first_row = threadIdx.x / 128 * 64;   // of the warpgroup
    const int steps = work.first_step(cta.split + 1) - work.first_step(cta.split);
    const int maker = threadIdx.x * MAKERS / (128 * CONSUMERS);   // threads with a part of their own
    Output out(shared.kept.parts[maker]);
    constexpr int SUMS = sums_of<SUM> == Sums::f16 ? COLUMNS / 4 : COLUMNS / 2;
    SUM sums[SUMS] = {};   // of the present tile: its first step overwrites them
    Stage<STAGES> at;
    for (int i = blockIdx.x / CLUSTER; i < work.count(); i += gridDim.x / CLUSTER) {
        Corner tile = work.corner(i, cta);
        pin(tile.row), pin(tile.column);   // now, while the first loads are in flight
        const auto multiply = [&](int stage, int step) {
#pragma unroll
            for (int k = 0; k < DEPTH; k += DEPTH / 4)
                wgmma(sums, Left::matrix(shared.left[stage], first_row, k), Right::matrix(shared.right[stage], 0, k),
                      step + k > 0);
        };
        accumulate<SHARING>(sums, shared.ring, at, steps, multiply, [&] { if (SPLITS == 1) out.store_next(); },
                            cta.first());
        if constexpr (SPLITS > 1) add_splits(shared, sums);
        if (cta.split >= PIECES) continue;
        SUM (&piece)[SUMS / PIECES] = reinterpret_cast<SUM (&)[SUMS / PIECES]>(sums);
        const int row = tile.row + first_row, column = tile.column + cta.split * PIECE;
        const Corner first = IS_TURNED ? Corner{column, row, tile.batch} : Corner{row, column, tile.batch};
        take(out, piece, complete, ToBatch{&c_map, tile.batch}, first);   // stores of 16 bits follow in the next tile
    }
    // At the end the ring is free: the last tile's parts fit there without waiting for each other.
    fence_proxy_async();
    named_barrier_sync<CONSUMERS + 1>(128 * CONSUMERS);
    out.finish(reinterpret_cast<Part (*)[PIECE / PART]>(shared.left)[maker]);
}

// With splits each cluster has one tile: there is space for the sums of one.
extern "C" __global__ void __cluster_dims__(CLUSTER) __launch_bounds__((CONSUMERS + 1) * 128, 1)
gemm(const __grid_constant__ Left::Map left_map, const __grid_constant__ Right::Map right_map,
     const __grid_constant__ PartMap c_map, float alpha, float beta, const OUTPUT* former, long long former_row,
     long long former_batch, const BIAS_TYPE* bias, int rows, int columns, int down, int across, int steps,
     int batches) {
    Shared& shared = dynamic_shared<Shared>();
    const Maps maps{left_map, right_map};
    const Work work{{down, across}, steps, batches};
    const Complete complete{alpha, beta, former, former_row, former_batch, bias, rows, columns};
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
                                 [&] { consume(shared, c_map, work, complete); });
}
"""


@cache
def compiled(variant, contract):
    """Return the kernel of a variant for a contract."""
    numbers = dict(zip(("ROWS", "COLUMNS", "DOWN", "ACROSS", "SPLITS"), variant[:5], strict=True))
    macros = {**numbers, "TURNED": variant.is_turned, **contract.macros(variant.is_turned)}
    return cuda_tma.compile(SOURCE, "gemm", defines=macros, constants={"threads": "(CONSUMERS + 1) * 128"})


def prepare(
    device, a, b, c, bias=None, activation=None, variant=None, alpha=1.0, beta=0.0, former=None, sums="float32"
):
    """Return a launch of c = activation(alpha * a @ b.mT + beta * former + bias), by a given or the best variant.

    The tensors are matrices, or batches of matrices. C has contiguous rows or columns.
    """
    contract = Contract(
        *map(name_of, (a, b)),
        sums,
        name_of(c),
        *(operand.stride(-1) == 1 for operand in (a, b)),
        c.ndim == 3,
        (alpha, beta) != (1.0, 0.0),
        None if bias is None else name_of(bias),
        activation,
    )
    if c.stride(-1) != 1:  # The transposed C has contiguous rows.
        a, b, c, former, contract = b, a, c.mT, None if former is None else former.mT, contract.turned()
    reason = refusal(contract) or unaligned((("A", as_it_lies(a)), ("B", as_it_lies(b)), ("C", c)))
    if reason:
        raise ValueError(reason)
    problem = problem_of(a, b, c, contract)
    variant = variant or choose(problem, device.properties.multiprocessor_count)
    kernel = compiled(variant, contract)
    down, across, steps = variant.grid(problem)
    clusters = down * across * problem.batch
    if variant.splits == 1:
        at_once = clusters_at_once(device.properties.multiprocessor_count, variant.cluster)
        # The grid has no spare CTAs, because a waiting CTA draws power.
        clusters = -(-clusters // -(-clusters // at_once))
    config = LaunchConfig(grid=clusters * variant.cluster, block=cuda_tma.parameters_of(kernel).constants["threads"])
    left, right = map(as_it_lies, (b, a) if variant.is_turned else (a, b))
    before = (0, 0, 0) if former is None else (former, former.stride(-2), former.stride(0))
    extras = np.float32(alpha), np.float32(beta), *before, 0 if bias is None else bias, *c.shape[-2:]
    arguments = *map(rows_first, (left, right, c)), *extras, down, across, steps, problem.batch
    return partial(cuda_tma.prepare(kernel, config, *arguments), device.default_stream)


def name_of(tensor):
    """Return the name of a tensor's dtype, such as bfloat16."""
    return str(tensor.dtype).removeprefix("torch.")


def problem_of(a, b, c, contract):
    """Return the numbers of a product by which a variant is chosen."""
    batch, majors = c.shape[0] if contract.is_batched else 1, (contract.a_is_k_major, contract.b_is_k_major)
    bytes_each = contract.item_bytes, c.element_size(), contract.sums == "float16"
    return Problem(a.shape[-2], b.shape[-2], a.shape[-1], *majors, batch, *bytes_each)


def as_it_lies(operand):
    """Return the operand with contiguous rows, as in a tensor map."""
    return operand if operand.stride(-1) == 1 else operand.mT


def rows_first(tensor):
    """Return a batch of matrices with the batch as the second dimension, as in the kernel's maps."""
    return tensor if tensor.ndim == 2 else tensor.transpose(0, 1)


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
    drawn = torch.randn(*shape, device="cuda", dtype=dtype)
    return drawn if is_k_major else drawn.T


def cases(problems):
    """Yield cases as `_example` describes them. The code after `yield` checks the results of the last runs."""
    device = cuda_tma.Device()
    device.set_current()
    for (m, n, k, a_is_k_major, b_is_k_major, *_), dtype, has_bias, activation in problems:
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
