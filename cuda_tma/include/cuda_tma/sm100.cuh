// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/sm100.cuh: the tensor copies that compute capability 10 added: copies of four rows by their indices, im2col
// along W only, and copies for pairs of CTAs. Tests assemble the copies for each target that has them; no test has run
// them on hardware.
//
// target.cuh lists the features of each target: test `if constexpr (has_scatter4)`. A function that the target lacks
// does not compile; the message names the targets that have the function.
#pragma once

#include <cuda_tma/target.cuh>
#include <cuda_tma/tma.cuh>

#include <cuda_tma/macros.cuh>

namespace cuda_tma {

// ---- four rows ----
// These functions need a 2-D map whose box has one row. ISA: "tile::scatter4 and tile::gather4 modes".

// The indices of four rows, in any order. A load fills rows outside the tensor; a store drops them.
struct FourRows {
    int value[4];

    template <typename First, typename Second, typename Third, typename Fourth>
    __device__ constexpr FourRows(First a, Second b, Third c, Fourth d)
        : value{static_cast<int>(a), static_cast<int>(b), static_cast<int>(c), static_cast<int>(d)} {
        static_assert(is_index<First> && is_index<Second> && is_index<Third> && is_index<Fourth>,
                      "numbers of rows are integers");
    }
};

#define CUDA_TMA_FOUR_ROWS(name, qualifiers, left, right, ...)                                                     \
    const Coordinates at{column, rows.value[0], rows.value[1], rows.value[2], rows.value[3]};                      \
    CUDA_TMA_HINTED(name ".2d" qualifiers, left "{%0, %1, %2, %3, %4}" right, __VA_ARGS__)

// cp.async.bulk.tensor.tile::gather4: loads four rows, as in load_gather4(tile, map, full, column, {7, 3, 3, 12}).
template <typename Policy = NoCachePolicy>
__device__ void load_gather4(void* tile, const TensorMap& map, Barrier& full, int column, FourRows rows,
                             Policy policy = {}) {
    require_gather4<Policy>();
    CUDA_TMA_FOUR_ROWS("cp.async.bulk.tensor", ".shared::cta.global.tile::gather4" CUDA_TMA_COMPLETE, "[%6], [%7, ",
                       "], [%8]", CUDA_TMA_LOAD_OPERANDS);
}

// ... .multicast::cluster.
template <typename Policy = NoCachePolicy>
__device__ void load_gather4_multicast(void* tile, const TensorMap& map, Barrier& full, int column, FourRows rows,
                                       unsigned short cta_mask, Policy policy = {}) {
    require_gather4_multicast<Policy>();
    CUDA_TMA_FOUR_ROWS("cp.async.bulk.tensor", ".shared::cluster.global.tile::gather4" CUDA_TMA_MULTICAST,
                       "[%6], [%7, ", "], [%8], %9", CUDA_TMA_LOAD_OPERANDS, "h"(cta_mask));
}

// cp.async.bulk.tensor.tile::scatter4: stores four rows. The store needs the same fences and groups as store().
template <typename Policy = NoCachePolicy>
__device__ void store_scatter4(const TensorMap& map, int column, FourRows rows, const void* tile, Policy policy = {}) {
    require_scatter4<Policy>();
    CUDA_TMA_FOUR_ROWS("cp.async.bulk.tensor", ".global.shared::cta.tile::scatter4.bulk_group", "[%6, ", "], [%7]",
                       CUDA_TMA_STORE_OPERANDS);
}

// cp.async.bulk.prefetch.tensor .tile::gather4.
template <typename Policy = NoCachePolicy>
__device__ void prefetch_gather4(const TensorMap& map, int column, FourRows rows, Policy policy = {}) {
    require_gather4_prefetch<Policy>();
    CUDA_TMA_FOUR_ROWS("cp.async.bulk.prefetch.tensor", ".L2.global.tile::gather4", "[%6, ", "]",
                       "l"(map_address(map)));
}

// ---- im2col along W ----
// These functions need a map from cuTensorMapEncodeIm2colWide. `w_offset` is the position in the filter, and `w_halo`
// is the number of pixels after the column. ISA: "im2col::w and im2col::w::128 modes".

#define CUDA_TMA_HALO "h"(w_halo), "h"(w_offset)

// cp.async.bulk.tensor.im2col::w: loads a column of pixels. The map contains the number of pixels.
template <int Rank, typename Policy = NoCachePolicy>
__device__ void load_im2col_w(void* tile, const TensorMap& map, Barrier& full, Coordinates<Rank> at,
                              unsigned short w_halo, unsigned short w_offset, Policy policy = {}) {
    require_im2col_w<Policy>();
    CUDA_TMA_PIXELS("cp.async.bulk.tensor", ".shared::cta.global.im2col::w" CUDA_TMA_COMPLETE, "[%6], [%7, ",
                    "], [%8], {%9, %10}", CUDA_TMA_LOAD_OPERANDS, CUDA_TMA_HALO)
}

// ... .multicast::cluster.
template <int Rank, typename Policy = NoCachePolicy>
__device__ void load_im2col_w_multicast(void* tile, const TensorMap& map, Barrier& full, Coordinates<Rank> at,
                                        unsigned short w_halo, unsigned short w_offset, unsigned short cta_mask,
                                        Policy policy = {}) {
    require_im2col_w_multicast<Policy>();
    CUDA_TMA_PIXELS("cp.async.bulk.tensor", ".shared::cluster.global.im2col::w" CUDA_TMA_MULTICAST, "[%6], [%7, ",
                    "], [%8], {%9, %10}, %11", CUDA_TMA_LOAD_OPERANDS, CUDA_TMA_HALO, "h"(cta_mask))
}

// cp.async.bulk.prefetch.tensor .im2col::w.
template <int Rank, typename Policy = NoCachePolicy>
__device__ void prefetch_im2col_w(const TensorMap& map, Coordinates<Rank> at, unsigned short w_halo,
                                  unsigned short w_offset, Policy policy = {}) {
    require_im2col_w_prefetch<Policy>();
    CUDA_TMA_PIXELS("cp.async.bulk.prefetch.tensor", ".L2.global.im2col::w", "[%6, ", "], {%7, %8}",
                    "l"(map_address(map)), CUDA_TMA_HALO)
}

// cp.async.bulk.tensor.im2col::w::128: loads 128 pixels, with the halo after every 32 pixels.
template <int Rank, typename Policy = NoCachePolicy>
__device__ void load_im2col_w_128(void* tile, const TensorMap& map, Barrier& full, Coordinates<Rank> at,
                                  unsigned short w_halo, unsigned short w_offset, Policy policy = {}) {
    require_im2col_w_128<Policy>();
    CUDA_TMA_PIXELS("cp.async.bulk.tensor", ".shared::cta.global.im2col::w::128" CUDA_TMA_COMPLETE, "[%6], [%7, ",
                    "], [%8], {%9, %10}", CUDA_TMA_LOAD_OPERANDS, CUDA_TMA_HALO)
}

// ... .multicast::cluster.
template <int Rank, typename Policy = NoCachePolicy>
__device__ void load_im2col_w_128_multicast(void* tile, const TensorMap& map, Barrier& full, Coordinates<Rank> at,
                                            unsigned short w_halo, unsigned short w_offset, unsigned short cta_mask,
                                            Policy policy = {}) {
    require_im2col_w_128<Policy>();
    CUDA_TMA_PIXELS("cp.async.bulk.tensor", ".shared::cluster.global.im2col::w::128" CUDA_TMA_MULTICAST,
                    "[%6], [%7, ", "], [%8], {%9, %10}, %11", CUDA_TMA_LOAD_OPERANDS, CUDA_TMA_HALO, "h"(cta_mask))
}

// cp.async.bulk.prefetch.tensor .im2col::w::128.
template <int Rank, typename Policy = NoCachePolicy>
__device__ void prefetch_im2col_w_128(const TensorMap& map, Coordinates<Rank> at, unsigned short w_halo,
                                      unsigned short w_offset, Policy policy = {}) {
    require_im2col_w_128<Policy>();
    CUDA_TMA_PIXELS("cp.async.bulk.prefetch.tensor", ".L2.global.im2col::w::128", "[%6, ", "], {%7, %8}",
                    "l"(map_address(map)), CUDA_TMA_HALO)
}

// ---- pairs of CTAs ----
// The namespace cta_group2 contains the functions of this header and of tma.cuh with .cta_group::2. The barrier that
// counts the bytes may be in the other CTA of the pair (ranks 2n, 2n + 1). Pass a Barrier or the result of in_cta().
namespace cta_group2 {

#define CUDA_TMA_GROUP ".cta_group::2"

template <int Rank, typename AnyBarrier, typename Policy = NoCachePolicy>
__device__ void load(void* tile, const TensorMap& map, const AnyBarrier& full, Coordinates<Rank> at,
                     Policy policy = {}) {
    require_cta_group2<Policy>();
    CUDA_TMA_TILED("cp.async.bulk.tensor", ".shared::cluster.global.tile" CUDA_TMA_COMPLETE CUDA_TMA_GROUP,
                   "[%6], [%7, ", "], [%8]", CUDA_TMA_LOAD_OPERANDS)
}

template <int Rank, typename AnyBarrier, typename Policy = NoCachePolicy>
__device__ void load_multicast(void* tile, const TensorMap& map, const AnyBarrier& full, Coordinates<Rank> at,
                               unsigned short cta_mask, Policy policy = {}) {
    require_cta_group2<Policy>();
    CUDA_TMA_TILED("cp.async.bulk.tensor", ".shared::cluster.global.tile" CUDA_TMA_MULTICAST CUDA_TMA_GROUP,
                   "[%6], [%7, ", "], [%8], %9", CUDA_TMA_LOAD_OPERANDS, "h"(cta_mask))
}

template <int Rank, int Count, typename AnyBarrier, typename Policy = NoCachePolicy>
__device__ void load_im2col(void* tile, const TensorMap& map, const AnyBarrier& full, Coordinates<Rank> at,
                            Offsets<Count> offsets, Policy policy = {}) {
    require_cta_group2<Policy>();
    CUDA_TMA_IM2COL("cp.async.bulk.tensor", ".shared::cluster.global.im2col" CUDA_TMA_COMPLETE CUDA_TMA_GROUP,
                    "[%9], [%10, ", "], [%11], ", "", CUDA_TMA_LOAD_OPERANDS)
}

template <int Rank, int Count, typename AnyBarrier, typename Policy = NoCachePolicy>
__device__ void load_im2col_multicast(void* tile, const TensorMap& map, const AnyBarrier& full, Coordinates<Rank> at,
                                      Offsets<Count> offsets, unsigned short cta_mask, Policy policy = {}) {
    require_cta_group2<Policy>();
    CUDA_TMA_IM2COL("cp.async.bulk.tensor", ".shared::cluster.global.im2col" CUDA_TMA_MULTICAST CUDA_TMA_GROUP,
                    "[%9], [%10, ", "], [%11], ", ", %12", CUDA_TMA_LOAD_OPERANDS, "h"(cta_mask))
}

template <typename AnyBarrier, typename Policy = NoCachePolicy>
__device__ void load_gather4(void* tile, const TensorMap& map, const AnyBarrier& full, int column, FourRows rows,
                             Policy policy = {}) {
    require_cta_group2<Policy>();
    CUDA_TMA_FOUR_ROWS("cp.async.bulk.tensor",
                       ".shared::cluster.global.tile::gather4" CUDA_TMA_COMPLETE CUDA_TMA_GROUP, "[%6], [%7, ",
                       "], [%8]", CUDA_TMA_LOAD_OPERANDS);
}

template <typename AnyBarrier, typename Policy = NoCachePolicy>
__device__ void load_gather4_multicast(void* tile, const TensorMap& map, const AnyBarrier& full, int column,
                                       FourRows rows, unsigned short cta_mask, Policy policy = {}) {
    require_cta_group2<Policy>();
    CUDA_TMA_FOUR_ROWS("cp.async.bulk.tensor",
                       ".shared::cluster.global.tile::gather4" CUDA_TMA_MULTICAST CUDA_TMA_GROUP, "[%6], [%7, ",
                       "], [%8], %9", CUDA_TMA_LOAD_OPERANDS, "h"(cta_mask));
}

template <int Rank, typename AnyBarrier, typename Policy = NoCachePolicy>
__device__ void load_im2col_w(void* tile, const TensorMap& map, const AnyBarrier& full, Coordinates<Rank> at,
                              unsigned short w_halo, unsigned short w_offset, Policy policy = {}) {
    require_cta_group2<Policy>();
    CUDA_TMA_PIXELS("cp.async.bulk.tensor", ".shared::cluster.global.im2col::w" CUDA_TMA_COMPLETE CUDA_TMA_GROUP,
                    "[%6], [%7, ", "], [%8], {%9, %10}", CUDA_TMA_LOAD_OPERANDS, CUDA_TMA_HALO)
}

template <int Rank, typename AnyBarrier, typename Policy = NoCachePolicy>
__device__ void load_im2col_w_multicast(void* tile, const TensorMap& map, const AnyBarrier& full, Coordinates<Rank> at,
                                        unsigned short w_halo, unsigned short w_offset, unsigned short cta_mask,
                                        Policy policy = {}) {
    require_cta_group2<Policy>();
    CUDA_TMA_PIXELS("cp.async.bulk.tensor", ".shared::cluster.global.im2col::w" CUDA_TMA_MULTICAST CUDA_TMA_GROUP,
                    "[%6], [%7, ", "], [%8], {%9, %10}, %11", CUDA_TMA_LOAD_OPERANDS, CUDA_TMA_HALO, "h"(cta_mask))
}

template <int Rank, typename AnyBarrier, typename Policy = NoCachePolicy>
__device__ void load_im2col_w_128(void* tile, const TensorMap& map, const AnyBarrier& full, Coordinates<Rank> at,
                                  unsigned short w_halo, unsigned short w_offset, Policy policy = {}) {
    require_cta_group2<Policy>();
    CUDA_TMA_PIXELS("cp.async.bulk.tensor", ".shared::cluster.global.im2col::w::128" CUDA_TMA_COMPLETE CUDA_TMA_GROUP,
                    "[%6], [%7, ", "], [%8], {%9, %10}", CUDA_TMA_LOAD_OPERANDS, CUDA_TMA_HALO)
}

template <int Rank, typename AnyBarrier, typename Policy = NoCachePolicy>
__device__ void load_im2col_w_128_multicast(void* tile, const TensorMap& map, const AnyBarrier& full,
                                            Coordinates<Rank> at, unsigned short w_halo, unsigned short w_offset,
                                            unsigned short cta_mask, Policy policy = {}) {
    require_cta_group2<Policy>();
    CUDA_TMA_PIXELS("cp.async.bulk.tensor", ".shared::cluster.global.im2col::w::128" CUDA_TMA_MULTICAST CUDA_TMA_GROUP,
                    "[%6], [%7, ", "], [%8], {%9, %10}, %11", CUDA_TMA_LOAD_OPERANDS, CUDA_TMA_HALO, "h"(cta_mask))
}

#undef CUDA_TMA_GROUP

}  // namespace cta_group2

#undef CUDA_TMA_HALO
#undef CUDA_TMA_FOUR_ROWS

}  // namespace cuda_tma

#include <cuda_tma/macros_end.cuh>
