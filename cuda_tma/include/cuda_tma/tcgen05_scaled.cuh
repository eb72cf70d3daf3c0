// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/tcgen05_scaled.cuh: products with block scales. Each scale is a factor of 32 adjacent elements along K of
// one row of A or one column of B, or for scales of ue4m3 of 16 elements. Tests run the functions on the simulator; no
// test has run them on hardware.
//
//     __shared__ Tile<U4_ALIGN8B, Box<128, 256>, SWIZZLE_128B> a, b;   // e2m1, two elements in a byte
//     __shared__ alignas(128) unsigned char of_a[512], of_b[512];      // see cp_scales()
//     tcgen05::cp_scales(memory.column(128), of_a);                    // 4 columns for the scales of 128 rows
//     tcgen05::cp_scales(memory.column(132), of_b);
//     const tcgen05::Scales<tcgen05::ScaleType::ue8m0> sa{memory.column(128)}, sb{memory.column(132)};
//     for (int k = 0; k < 128; k += 64)                                // two scales for each instruction
//         tcgen05::mma_block_scale<128, 128>(memory.column(0), tcgen05::k_major<Input::e2m1>(a, 0, k),
//                                            tcgen05::k_major<Input::e2m1>(b, 0, k), sa.skip(k / 32), sb.skip(k / 32),
//                                            k > 0);
//
// The operands and the type of the scales determine the kind:
//
//     e4m3, e5m2, e2m3, e3m2, e2m1 of U4_ALIGN16B      ue8m0    mxf8f6f4   K = 32    1 scale for each instruction
//     e2m1 of U4_ALIGN8B                               ue8m0    mxf4       K = 64    2 scales
//     e2m1 of U4_ALIGN8B                               ue4m3    mxf4nvf4   K = 64    4 scales
#pragma once

#include <cuda_tma/tcgen05.cuh>

namespace cuda_tma {
namespace tcgen05 {

// ---- scales ----

enum class ScaleType { ue4m3, ue8m0 };

// Scales in tensor memory. A cell contains four scales along K of one row of A, or of one column of B. Row r is in lane
// r % 32 of column r / 32, counted from `at`, and each quarter of the lanes contains a copy. ISA: "Scale Factor
// Layout".
template <ScaleType Type>
struct Scales {
    static constexpr ScaleType type = Type;

    Address at;
    unsigned byte = 0;

    // Returns the scales that start `count` (0 to 3) scales later in each cell: an instruction with two scales starts
    // at 0 or 2, and an instruction with four scales starts at 0.
    __device__ constexpr Scales skip(unsigned count) const {
        refuse_scales_outside_their_cell_if(byte + count > (Type == ScaleType::ue8m0 ? 3 : 0));
        return {at, byte + count};
    }
};

// tcgen05.cp.32x128b.warpx4: copies the scales of 128 rows, 512 bytes, to 4 columns of all lanes. Byte 16 * i + 4 * j +
// k of `from` is the scale of row 32 * j + i and of block k along K. For fewer rows, the columns after the last row
// receive unused bytes. The thread that calls mma_block_scale() calls cp_scales() before, and needs no other order.
// After ordinary writes to `from`, the writing threads call fence_proxy_async(). ISA: "tcgen05.cp".
template <int Ctas = 1>
__device__ void cp_scales(Address to, const void* from) {
    require_group<Ctas>();
    asm volatile("tcgen05.cp.cta_group::%2.32x128b.warpx4 [%0], %1;"
                 ::"r"(to.bits), "l"(descriptor_bits<SWIZZLE_NONE>(smem_address(from), 16, 128)), "n"(Ctas) : "memory");
}

// ---- products ----

// The kind and the instruction descriptor, without the positions of the scales. ISA: "Instruction descriptor".
template <int Rows, int Columns, int Ctas, typename Left, typename Right, ScaleType Type>
struct ScaledForm {
    static_assert(is_narrow(Left::type) && is_narrow(Right::type),
                  "tcgen05::mma_block_scale: A and B are of e4m3, e5m2, e2m3, e3m2 and e2m1");
    static_assert(Left::packed == Right::packed || Left::in_lanes,
                  "tcgen05::mma_block_scale: a tile of U4_ALIGN8B multiplies only another; take U4_ALIGN16B for both");
    static_assert(!Right::packed || Left::type == Input::e2m1,
                  "tcgen05::mma_block_scale: a tile of U4_ALIGN8B multiplies only e2m1 in tensor memory");
    static_assert(Right::packed || Type == ScaleType::ue8m0,
                  "tcgen05::mma_block_scale: scales of ue4m3 are for e2m1 in tiles of U4_ALIGN8B");
    static_assert(Rows == 128 || (Rows == 256 && Ctas == 2),
                  "tcgen05::mma_block_scale: M is 128, with a pair of CTAs 128 or 256");
    static_assert(has_columns(Kind::f8f6f4, Columns, Ctas),
                  "tcgen05::mma_block_scale: N is a multiple of 8 up to 256, with a pair of CTAs of 16");
    static_assert(!Right::in_lanes, "tcgen05::mma_block_scale: only A may be in tensor memory");

    __host__ __device__ static constexpr unsigned code(Input type) { return Right::packed ? 1 : code_of(type); }

    static constexpr unsigned bits = code(Left::type) << 7 | code(Right::type) << 10 | (Left::sign < 0) << 13 |
                                     (Right::sign < 0) << 14 | (Left::major == Major::mn) << 15 |
                                     (Right::major == Major::mn) << 16 | Columns / 8 << 17 |
                                     (Type == ScaleType::ue8m0) << 23 | Rows / 16 << 24;
};

#define CUDA_TMA_MMA_OF(kind, a, ...)                                                                              \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0;"                                                           \
                 "  tcgen05.mma.cta_group::%7.kind::" kind " [%0], " a ", %2, %3, [%4], [%5], p; }"                \
                 ::"r"(d.bits), __VA_ARGS__, "l"(b.bits), "r"(form), "r"(of_a.at.bits), "r"(of_b.at.bits),         \
                 "r"(int(accumulate)), "n"(Ctas) : "memory")
#define CUDA_TMA_MMA(kind)                                                                                         \
    if constexpr (Left::in_lanes) CUDA_TMA_MMA_OF(kind, "[%1]", "r"(a.at.bits));                                   \
    else CUDA_TMA_MMA_OF(kind, "%1", "l"(a.bits));

// tcgen05.mma.block_scale: multiplies like mma(), with each element times its scale. ISA: "tcgen05.mma", "Block
// Scaling".
template <int Rows, int Columns, int Ctas = 1, typename Left, typename Right, ScaleType Type>
__device__ __forceinline__ void mma_block_scale(Address d, Left a, Right b, Scales<Type> of_a, Scales<Type> of_b,
                                                bool accumulate = true) {
    require_group<Ctas>();
    const unsigned form = ScaledForm<Rows, Columns, Ctas, Left, Right, Type>::bits | of_a.byte << 29 | of_b.byte << 4;
    if constexpr (!Right::packed) {
        CUDA_TMA_MMA("mxf8f6f4.block_scale.block32")
    } else if constexpr (Type == ScaleType::ue8m0) {
        CUDA_TMA_MMA("mxf4.block_scale.block32")
    } else {
        CUDA_TMA_MMA("mxf4nvf4.block_scale.block16")
    }
}

#undef CUDA_TMA_MMA
#undef CUDA_TMA_MMA_OF

}  // namespace tcgen05
}  // namespace cuda_tma
