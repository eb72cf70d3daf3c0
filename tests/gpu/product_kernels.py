"""Kernels that multiply two tiles with wgmma or mma.sync, and matrices of small integers, whose sums are exact."""

import dataclasses
from itertools import product

from . import modules

PRELUDE = r"""
#include <cuda_tma/mma.cuh>
#include <cuda_tma/tile.cuh>
#include <cuda_tma/wgmma.cuh>
#include <cuda_tma/wgmma_f16.cuh>
#include <cuda_tma/wgmma_fp8.cuh>
#include <cuda_tma/wgmma_s8.cuh>
#include <cuda_tma/wgmma_tf32.cuh>
using namespace cuda_tma;

// A barrier that never completes should fail the test, not hang it. The limit is a minute, because tools slow
// everything.
__device__ void wait_or_trap(Barrier& full) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    while (!full.try_wait(0, 1000000)) {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        if (now - start > 60000000000ull) __trap();
    }
}

// Loads with boxes that one thread starts are complete when this returns.
template <typename Start>
__device__ void loaded(unsigned bytes, Start start) {
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(bytes);
        start(full);
    }
    __syncthreads();
    wait_or_trap(full);
}

// Stores a thread's accumulators in a row-major matrix of N columns, of which each warp has 16 rows.
template <int N, typename Sum, int Count>
__device__ void show(Sum* out, const Sum (&sums)[Count]) {
    const int t = threadIdx.x;
#pragma unroll
    for (int i = 0; i < Count; ++i) {
        const int each = sums_of<Sum> == Sums::f16 ? 2 * i : i;   // the first of two in an `unsigned`
        const int row = t / 32 * 16 + each / 2 % 2 * 8 + t % 32 / 4, column = each / 4 * 8 + t % 4 * 2 + each % 2;
        out[(row * N + column) / (sums_of<Sum> == Sums::f16 ? 2 : 1)] = sums[i];
    }
}

"""
# K fills the span of SWIZZLE_128B, so each type needs four instructions.
SOURCE = (
    PRELUDE
    + r"""
template <bool Satfinite, typename Sum, int Count, typename A, typename B>
__device__ void multiply(Sum (&sums)[Count], const A& a, const B& b) {
    if constexpr (Satfinite) wgmma_satfinite(sums, a, b);
    else wgmma(sums, a, b);
}

// start + A B for a (64, 128 bytes) and an (N, 128 bytes) tile. Negated: start - A B.
template <int N, Input A, Input B, typename Sum, bool Registers, bool Negated, bool Satfinite>
__global__ void wgmma_product(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
                              Sum start, Sum* out) {
    extern __shared__ __align__(1024) char a[];
    char* b = a + 64 * 128;
    loaded((64 + N) * 128, [&](Barrier& full) {
        load(a, a_map, full, Coordinates{0, 0});
        load(b, b_map, full, Coordinates{0, 0});
    });
    constexpr int count = (sums_of<Sum> == Sums::f16 ? N / 4 : N / 2);
    Sum sums[count];
    for (int i = 0; i < count; ++i) sums[i] = start;
    unsigned part[4][4];
    const auto rows = rows_of_a(a);
    for (int k = 0; k < 4; ++k) load_matrices(part[k], rows.at(threadIdx.x / 32 * 16, 32 * k));

    const MatrixOf<A> x{k_major(a)};
    const MatrixOf<B> y{k_major(b)};
    wgmma_fence(sums, part);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        if constexpr (Registers && Negated) multiply<Satfinite>(sums, FragmentOf<A>{part[k]}, -y.advance(32 * k));
        else if constexpr (Registers) multiply<Satfinite>(sums, FragmentOf<A>{part[k]}, y.advance(32 * k));
        else if constexpr (Negated) multiply<Satfinite>(sums, -x.advance(32 * k), y.advance(32 * k));
        else multiply<Satfinite>(sums, x.advance(32 * k), y.advance(32 * k));
    }
    wgmma_commit();
    wgmma_wait<0>(sums, part);
    show<N>(out, sums);
}

// bf16 without a swizzle: consecutive boxes of 16 bytes, K or M and N innermost.
template <Major A, Major B>
__global__ void plain_product(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
                              float* out) {
    extern __shared__ __align__(1024) char a[];
    constexpr int N = 96, K = 32;
    char* b = a + 64 * K * 2;
    loaded((64 + N) * K * 2, [&](Barrier& full) {
        const auto fill = [&](char* tile, const TensorMap& map, int rows, int columns) {
            for (int column = 0; column < columns; column += 8)
                load(tile + column / 8 * rows * 16, map, full, Coordinates{column, 0});
        };
        fill(a, a_map, A == Major::K ? 64 : K, A == Major::K ? K : 64);
        fill(b, b_map, B == Major::K ? N : K, B == Major::K ? K : N);
    });
    const auto matrix = [](char* tile, Major major, int mn) {
        if (major == Major::K) return k_major<SWIZZLE_NONE>(tile, mn * 16, 128);
        return mn_major<SWIZZLE_NONE>(tile, 128, K * 16);
    };
    float sums[N / 2];
    wgmma_fence();
    for (int k = 0; k < K; k += 16)
        wgmma<Input::bf16, A, B>(sums, matrix(a, A, 64).advance(k / 8 * (A == Major::K ? 64 * 16 : 128)),
                                 matrix(b, B, N).advance(k / 8 * (B == Major::K ? N * 16 : 128)), k > 0);
    wgmma_commit();
    wgmma_wait<0>(sums);
    show<N>(out, sums);
}

// f16 from typed tiles of several boxes: A (64, 128), K innermost; B (128, 128), N innermost.
using TileA = Tile<FLOAT16, Box<64, 128>, SWIZZLE_128B>;
using TileB = Tile<FLOAT16, Box<128, 128>, SWIZZLE_64B>;
template <int N>
__global__ void typed_product(const __grid_constant__ TiledMap<TileA> a_map,
                              const __grid_constant__ TiledMap<TileB> b_map, float* out) {
    extern __shared__ __align__(1024) char raw[];
    auto& a = *reinterpret_cast<TileA*>(raw);
    auto& b = *reinterpret_cast<TileB*>(raw + sizeof(TileA));
    loaded(TileA::tx_bytes() + TileB::tx_bytes(), [&](Barrier& full) {
        load(a, a_map, full, Coordinates{0, 0});
        load(b, b_map, full, Coordinates{0, 0});
    });
    float sums[N / 2];
    wgmma_fence();
    for (int k = 0; k < 128; k += 16) wgmma(sums, k_major(a, 0, k), mn_major(b, k), k > 0);
    wgmma_commit();
    wgmma_wait<0>(sums);
    show<N>(out, sums);
}

// start + A B by four warps of 16 rows each, N = 16: two products side by side. MN: tiles of (64 rows of K, 128 bytes).
template <Input A, Input B, typename Sum, bool Satfinite, Major Index>
__global__ void mma_product(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map, Sum start,
                            Sum* out) {
    __shared__ alignas(1024) char a[64 * 128], b[64 * 128];
    loaded(2 * 64 * 128, [&](Barrier& full) {
        load(a, a_map, full, Coordinates{0, 0});
        load(b, b_map, full, Coordinates{0, 0});
    });
    constexpr int count = sums_of<Sum> == Sums::f16 ? 2 : 4;
    Sum sums[2][count];
    for (int i = 0; i < 2 * count; ++i) sums[i / count][i % count] = start;
    const auto a_rows = rows_of_a<Index>(a), b_rows = rows_of_b<Index>(b);
    const unsigned row = threadIdx.x / 32 * 16;
    for (int k = 0; k < 4; ++k) {
        unsigned x[4], y[4];
        if constexpr (Index == Major::K) {
            load_matrices(x, a_rows.at(row, 32 * k));
            load_matrices(y, b_rows.at(0, 32 * k));
        } else {
            load_matrices_transposed(x, a_rows.at(16 * k, 2 * row));
            load_matrices_transposed(y, b_rows.at(16 * k, 0));
        }
        for (int i = 0; i < 2; ++i) {
            if constexpr (Satfinite) mma_satfinite<A, B>(sums[i], x, y[2 * i], y[2 * i + 1]);
            else mma<A, B>(sums[i], x, y[2 * i], y[2 * i + 1]);
        }
    }
    Sum both[2 * count];
    for (int i = 0; i < 2 * count; ++i) both[i] = sums[i / count][i % count];
    show<16>(out, both);
}
"""
)

FP8, INT8 = ("e4m3", "e5m2"), ("s8", "u8")


@dataclasses.dataclass(frozen=True)
class Form:
    """The data types of a matrix product's operands A and B, and of a thread's accumulators."""

    a: str
    b: str
    held: str
    satfinite: bool = False

    def __str__(self):
        return f"{self.a}-{self.b}-{self.held}{'-satfinite' * self.satfinite}"


FORMS = [
    *(Form(t, t, "float") for t in ("bf16", "f16", "tf32")),
    Form("f16", "f16", "unsigned"),
    *(Form(a, b, held) for a, b, held in product(FP8, FP8, ("float", "unsigned"))),
    *(Form(a, b, "int", satfinite) for a, b, satfinite in product(INT8, INT8, (False, True))),
]


def wgmma_name(form, n, in_registers=False, negated=False):
    flags = ", ".join(str(flag).lower() for flag in (in_registers, negated, form.satfinite))
    return f"wgmma_product<{n}, Input::{form.a}, Input::{form.b}, {form.held}, {flags}>"


def mma_name(form, major="K"):
    return f"mma_product<Input::{form.a}, Input::{form.b}, {form.held}, {str(form.satfinite).lower()}, Major::{major}>"


def plain_name(a, b):
    return f"plain_product<Major::{a}, Major::{b}>"


def compiled(names):
    """Return the kernels with the given names from one compilation."""
    return modules.compiled(SOURCE, "90a", names)
