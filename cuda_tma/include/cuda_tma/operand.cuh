// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/operand.cuh: an operand of a matrix product in the steps of K, which the CTAs of a cluster may load in
// shares. A step has 128 bytes of K: 64 elements of 16 bits, 32 of tf32, 128 of 8 bits.
//
//     using A = Operand<Input::bf16, Major::k, 128, 2>;      // 128 rows; two CTAs load 64 rows each, for both
//     __shared__ A::Whole tile;
//     kernel(const __grid_constant__ A::Map map, ...)
//     A::load_share(tile, map, full, A::place(m, k), rank, 0b11, NoCachePolicy{});
//     wgmma(sums, A::matrix(tile, 0, 16), ...);              // from row 0 and element 16 of the step on
//
// With `IsBatched`, the map has the batch as its second dimension: (rows, batch, k), or (k, batch, rows).
#pragma once

#include <cuda_tma/tile.cuh>
#include <cuda_tma/wgmma.cuh>

namespace cuda_tma {

// The driver's data type of an operand.
__host__ __device__ constexpr DataType data_type_of(Input type) {
    switch (type) {
        case Input::bf16: return BFLOAT16;
        case Input::f16: return FLOAT16;
        case Input::tf32: return TFLOAT32;
        default: return UINT8;
    }
}

// The coordinates of a box with `inner` along the innermost dimension, of a matrix or of a batch of matrices.
template <bool IsBatched>
__device__ auto coordinates(int inner, int batch, int outer) {
    if constexpr (IsBatched) return Coordinates{inner, batch, outer};
    else return Coordinates{inner, outer};
}

template <bool IsBatched, int Outer, int Inner> struct BoxInBatch { using Type = Box<Outer, Inner>; };
template <int Outer, int Inner> struct BoxInBatch<true, Outer, Inner> { using Type = Box<Outer, 1, Inner>; };

template <Input Kind, Major Innermost, int Extent, int Sharers = 1, bool IsBatched = false>
struct Operand {
    static constexpr int depth = 128 / input_bytes(Kind);   // elements of K in a step
    static constexpr bool is_k_major = Innermost == Major::k;
    static constexpr int share = (is_k_major ? Extent : depth) / Sharers;   // of the outermost dimension
    template <int Outer>
    using TileOf = Tile<data_type_of(Kind), typename BoxInBatch<IsBatched, Outer, is_k_major ? depth : Extent>::Type,
                        SWIZZLE_128B>;
    using Whole = TileOf<share * Sharers>;
    using Share = TileOf<share>;
    using Map = TiledMap<Share, OOB_FILL_NONE, L2_PROMOTION_128B>;

    struct Place { int mn, k, batch; };

    // Loads share `number` of the tile into the CTAs of the mask.
    template <typename Policy>
    __device__ static void load_share(Whole& tile, const Map& map, Barrier& full, Place at, int number,
                                      unsigned short ctas, Policy policy) {
        auto&& part = tile.template rows<share>(number * share);
        if constexpr (Sharers == 1) load(part, map, full, corner(at, number), policy);
        else load_multicast(part, map, full, corner(at, number), ctas, policy);
    }

    // Loads all shares, only into this CTA.
    template <typename Policy>
    __device__ static void load_alone(Whole& tile, const Map& map, Barrier& full, Place at, Policy policy) {
#pragma unroll
        for (int i = 0; i < Sharers; ++i)
            load(tile.template rows<share>(i * share), map, full, corner(at, i), policy);
    }

    // Returns the matrix of one wgmma, from row or column `mn` and element `k` of the step on.
    __device__ static auto matrix(const Whole& tile, int mn, int k) {
        if constexpr (is_k_major) return k_major<Kind>(tile, mn, k);
        else return mn_major(tile, k, mn);
    }

private:
    __device__ static auto corner(Place at, int number) {
        return is_k_major ? coordinates<IsBatched>(at.k, at.batch, at.mn + number * share)
                          : coordinates<IsBatched>(at.mn, at.batch, at.k + number * share);
    }
};

}  // namespace cuda_tma
