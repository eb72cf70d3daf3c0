// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/mma.cuh: tensor-core instructions of warps, which every target has, for tiles that TMA loaded. The
// instructions are ldmatrix from swizzled tiles and mma.sync. One function is one PTX instruction. store_matrices() of
// warpgroup.cuh writes results to shared memory.
//
//     __shared__ alignas(1024) unsigned short a[64][64], b[16][64];     // boxes of bf16, loaded with SWIZZLE_128B
//     float sums[2][4] = {};                                            // two tiles of 16 x 8, side by side
//     const auto a_rows = rows_of_a(a), b_rows = rows_of_b(b);
//     for (unsigned k = 0; k < 128; k += 32) {                          // bytes: one instruction covers 32 of K
//         unsigned a_part[4], b_part[4];
//         load_matrices(a_part, a_rows.at(16 * warp, k));               // 16 rows of A
//         load_matrices(b_part, b_rows.at(0, k));                       // 16 rows of B, for two tiles
//         mma(sums[0], a_part, b_part[0], b_part[1]);
//         mma(sums[1], a_part, b_part[2], b_part[3]);
//     }
//
// All 32 threads of a warp call each function together. "ISA" is NVIDIA's "Parallel Thread Execution ISA", cited by
// section title.
#pragma once

#include <cuda_tma/barrier.cuh>
#include <cuda_tma/input.cuh>
#include <cuda_tma/swizzle.cuh>

namespace cuda_tma {

// ---- tiles to registers ----

// ldmatrix (x1, x2 or x4): loads one, two or four 8 x 8 matrices of 16-bit elements. With another element type, a
// matrix has 8 rows of 16 bytes. Lane i passes the address of row i % 8 of matrix i / 8 (16 bytes, aligned). In m[j],
// lane i receives four bytes of row i / 4 of matrix j, from byte i % 4 * 4 on. ISA: "ldmatrix".
__device__ __forceinline__ void load_matrices(unsigned (&m)[1], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(m[0]) : "r"(address) : "memory");
}
__device__ __forceinline__ void load_matrices(unsigned (&m)[2], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(m[0]), "=r"(m[1]) : "r"(address) : "memory");
}
__device__ __forceinline__ void load_matrices(unsigned (&m)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(address) : "memory");
}

// ldmatrix.trans: transposes each matrix. Lane i receives the 16-bit elements (i % 4 * 2, i / 4) and (i % 4 * 2 + 1, i
// / 4).
__device__ __forceinline__ void load_matrices_transposed(unsigned (&m)[1], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(m[0]) : "r"(address) : "memory");
}
__device__ __forceinline__ void load_matrices_transposed(unsigned (&m)[2], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(m[0]), "=r"(m[1]) : "r"(address) : "memory");
}
__device__ __forceinline__ void load_matrices_transposed(unsigned (&m)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(address) : "memory");
}

// ---- addresses in a swizzled tile ----

// The addresses that this lane passes to load_matrices() for 16 rows of 32 bytes anywhere in a tile. A swizzle flips
// bits of the offset in a row. In every eighth row the swizzle flips the same bits, so the flips are computed once.
// BoxBytes is the distance between two boxes in a tile that is wider than the span of its swizzle.
template <Swizzle Mode, unsigned PitchBytes, unsigned BoxBytes = 0>
struct MatrixRows {
    static_assert(Mode != SWIZZLE_128B_ATOM_32B_FLIP_8B, "ldmatrix reads 16 bytes, which this swizzle tears apart");
    unsigned row_address;   // this lane's row
    unsigned byte;          // the offset in the row, after the swizzle flips bits

    // Lanes 0 to 7 pass the rows of the first of four matrices, lanes 8 to 15 the rows of the second, and so on. The
    // second matrix is 8 rows below the first, or 16 bytes to the right of the first.
    __device__ static constexpr MatrixRows of(unsigned tile_address, bool down_first, unsigned lane) {
        const unsigned second = lane / 8 % 2, third = lane / 16;
        const unsigned row = lane % 8 + 8 * (down_first ? second : third), right = down_first ? third : second;
        const unsigned first = row * PitchBytes;
        return {tile_address + first, 16 * right ^ first ^ swizzle<Mode>(first)};
    }
    __device__ static MatrixRows of(const void* tile, bool down_first) {
        unsigned lane;
        asm("mov.u32 %0, %%laneid;" : "=r"(lane));
        return of(smem_address(tile), down_first, lane);
    }

    // Returns the address of byte `first_byte` (a multiple of 32) in row `row` (a multiple of 8).
    __device__ constexpr unsigned at(unsigned row, unsigned first_byte) const {
        const unsigned box = BoxBytes == 0 ? 0 : first_byte / PitchBytes * BoxBytes;
        const unsigned in_box = BoxBytes == 0 ? first_byte : first_byte % PitchBytes;
        return row_address + row * PitchBytes + box + (byte ^ in_box);
    }
};

// Returns the addresses of 16 rows of A, or of 16 columns of B, by 32 bytes of K, in a tile whose innermost index is K.
// With Major::MN each row of the tile is one index of K, `row` is an index of K, and load_matrices_transposed()
// transposes the 16-bit elements.
template <Major Index = Major::k, Swizzle Mode = SWIZZLE_128B>
__device__ MatrixRows<Mode, swizzle_span<Mode>()> rows_of_a(const void* tile) {
    return MatrixRows<Mode, swizzle_span<Mode>()>::of(tile, Index == Major::k);
}
template <Major Index = Major::k, Swizzle Mode = SWIZZLE_128B>
__device__ MatrixRows<Mode, swizzle_span<Mode>()> rows_of_b(const void* tile) {
    return MatrixRows<Mode, swizzle_span<Mode>()>::of(tile, Index == Major::mn);
}

// Returns the same addresses for a typed tile (tile.cuh), whose type contains the template arguments.
template <typename Tile>
using MatrixRowsOf = MatrixRows<Tile::swizzle(), Tile::pitch_bytes(), Tile::boxes() == 1 ? 0 : Tile::box_bytes()>;

template <Major Index = Major::k, typename Tile, Swizzle = Tile::swizzle()>
__device__ MatrixRowsOf<Tile> rows_of_a(const Tile& tile) {
    return MatrixRowsOf<Tile>::of(tile.storage, Index == Major::k);
}
template <Major Index = Major::k, typename Tile, Swizzle = Tile::swizzle()>
__device__ MatrixRowsOf<Tile> rows_of_b(const Tile& tile) {
    return MatrixRowsOf<Tile>::of(tile.storage, Index == Major::mn);
}

// ---- multiply and accumulate ----

#define CUDA_TMA_MMA(types, held, ...)                                                                             \
    asm volatile("mma.sync.aligned.m16n8" types " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : held(sums[0]), held(sums[1]), held(sums[2]), held(sums[3])                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1)__VA_ARGS__)
#define CUDA_TMA_MMA_F16(types, ...)                                                                               \
    asm volatile("mma.sync.aligned.m16n8" types " {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"                 \
                 : "+r"(sums[0]), "+r"(sums[1])                                                                    \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1)__VA_ARGS__)
#define CUDA_TMA_MMA_INT(type_a, type_b)                                                                           \
    if constexpr (TypeA == Input::type_a && TypeB == Input::type_b && Satfinite)                                   \
        CUDA_TMA_MMA("k32.row.col.satfinite.s32." #type_a "." #type_b ".s32", "+r");                               \
    else if constexpr (TypeA == Input::type_a && TypeB == Input::type_b)                                           \
        CUDA_TMA_MMA("k32.row.col.s32." #type_a "." #type_b ".s32", "+r")
#define CUDA_TMA_DIGITS                                                                                            \
    , "n"(exponent_bits(TypeA)), "n"(7 - exponent_bits(TypeA)), "n"(exponent_bits(TypeB)), "n"(7 - exponent_bits(TypeB))

template <Input TypeA, Input TypeB, bool Satfinite, typename Sum, int Count>
__device__ __forceinline__ void mma_of(Sum (&sums)[Count], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    constexpr Product kind = product_of(sums_of<Sum>, TypeA, TypeB);
    require_product<kind>();
    static_assert(Count == (kind == Product::f16_sums ? 2 : 4), "mma: four sums in each thread, of f16 two pairs");
    if constexpr (kind == Product::bf16_or_f16 && TypeA == Input::bf16) {
        CUDA_TMA_MMA("k16.row.col.f32.bf16.bf16.f32", "+f");
    } else if constexpr (kind == Product::bf16_or_f16) {
        CUDA_TMA_MMA("k16.row.col.f32.f16.f16.f32", "+f");
    } else if constexpr (kind == Product::tf32) {
        CUDA_TMA_MMA("k8.row.col.f32.tf32.tf32.f32", "+f");
    } else if constexpr (kind == Product::fp8) {
        CUDA_TMA_MMA("k32.row.col.f32.e%10m%11.e%12m%13.f32", "+f", CUDA_TMA_DIGITS);
    } else if constexpr (kind == Product::s32_sums) {
        CUDA_TMA_MMA_INT(s8, s8);
        CUDA_TMA_MMA_INT(s8, u8);
        CUDA_TMA_MMA_INT(u8, s8);
        CUDA_TMA_MMA_INT(u8, u8);
    } else if constexpr (kind == Product::f16_sums && TypeA == Input::f16) {
        CUDA_TMA_MMA_F16("k16.row.col.f16.f16.f16.f16");
    } else if constexpr (kind == Product::f16_sums) {
        CUDA_TMA_MMA_F16("k32.row.col.f16.e%8m%9.e%10m%11.f16", CUDA_TMA_DIGITS);
    }
}

#undef CUDA_TMA_DIGITS
#undef CUDA_TMA_MMA_INT
#undef CUDA_TMA_MMA_F16
#undef CUDA_TMA_MMA

// mma.sync, m16n8kK: adds A (16 x K) times B (K x 8) to the sums. K is 32 bytes. In lane i, a[0] contains four bytes of
// row i / 4 of A, from byte i % 4 * 4 on, and a[2] contains the four bytes that start 16 bytes later. a[1] and a[3]
// contain the same bytes of row i / 4 + 8. b0 and b1 contain bytes of column i / 4 of B, at the positions of a[0] and
// a[2] along K. sums[0] and sums[1] belong to row i / 4 and to the columns from i % 4 * 2 on; sums[2] and sums[3]
// belong to row i / 4 + 8. ISA: "Matrix Fragments for mma.m16n8k16 with floating point type". (Observed: CUDA 12.0
// refuses e4m3 and e5m2, 12.4 accepts them with f32 sums, and 12.8 also with f16 sums.)
template <Input TypeA = Input::bf16, Input TypeB = TypeA, typename Sum, int Count>
__device__ __forceinline__ void mma(Sum (&sums)[Count], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    mma_of<TypeA, TypeB, false>(sums, a, b0, b1);
}

// mma.sync.satfinite: clamps sums of s8 and u8 to the range of int; sums of mma() wrap.
template <Input TypeA, Input TypeB = TypeA>
__device__ __forceinline__ void mma_satfinite(int (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    mma_of<TypeA, TypeB, true>(sums, a, b0, b1);
}

}  // namespace cuda_tma
