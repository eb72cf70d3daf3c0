// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/macros.cuh: the assembly text of tensor copies. tma.cuh and sm100.cuh include this file first and
// macros_end.cuh last, so that no macro remains defined.
//
// An instruction's text cannot depend on a template argument, so these macros write the text for each rank, with and
// without a cache policy. `left` and `right` are the text around the {coordinates}. Operands %0 to %4 are coordinates,
// and %5 is the policy. The operands that a function adds start at %6. In im2col mode they start at %9, because %6 to
// %8 are the offsets.

#define CUDA_TMA_ASM(text, ...)                                                                                    \
    asm volatile(text ::"r"(at.value[0]), "r"(at.value[1]), "r"(at.value[2]), "r"(at.value[3]), "r"(at.value[4]),  \
                 "l"(policy.bits), __VA_ARGS__ : "memory")

#define CUDA_TMA_HINTED(instruction, operands, ...)                                                                \
    if constexpr (Policy::given)                                                                                   \
        CUDA_TMA_ASM(instruction ".L2::cache_hint " operands ", %5;", __VA_ARGS__);                                \
    else                                                                                                           \
        CUDA_TMA_ASM(instruction " " operands ";", __VA_ARGS__)

#define CUDA_TMA_RANK(rank, list, name, qualifiers, left, right, ...)                                              \
    if constexpr (Rank == rank) {                                                                                  \
        CUDA_TMA_HINTED(name "." #rank "d" qualifiers, left list right, __VA_ARGS__);                              \
    }

#define CUDA_TMA_TILED(...)                                                                                        \
    CUDA_TMA_RANK(1, "{%0}", __VA_ARGS__)                                                                          \
    CUDA_TMA_RANK(2, "{%0, %1}", __VA_ARGS__)                                                                      \
    CUDA_TMA_RANK(3, "{%0, %1, %2}", __VA_ARGS__)                                                                  \
    CUDA_TMA_RANK(4, "{%0, %1, %2, %3}", __VA_ARGS__)                                                              \
    CUDA_TMA_RANK(5, "{%0, %1, %2, %3, %4}", __VA_ARGS__)

// These macros are for copies in im2col mode without offsets.
#define CUDA_TMA_PIXELS(...)                                                                                       \
    static_assert(3 <= Rank && Rank <= 5, "im2col: 3 to 5 dimensions");                                            \
    CUDA_TMA_RANK(3, "{%0, %1, %2}", __VA_ARGS__)                                                                  \
    CUDA_TMA_RANK(4, "{%0, %1, %2, %3}", __VA_ARGS__)                                                              \
    CUDA_TMA_RANK(5, "{%0, %1, %2, %3, %4}", __VA_ARGS__)

#define CUDA_TMA_OFFSETS "h"(offsets.value[0]), "h"(offsets.value[1]), "h"(offsets.value[2])
#define CUDA_TMA_IM2COL(name, qualifiers, left, middle, right, ...)                                                \
    static_assert(3 <= Rank && Rank <= 5 && Count == Rank - 2, "im2col: 3 to 5 dimensions, rank - 2 offsets");     \
    CUDA_TMA_RANK(3, "{%0, %1, %2}", name, qualifiers, left, middle "{%6}" right, CUDA_TMA_OFFSETS, __VA_ARGS__)   \
    CUDA_TMA_RANK(4, "{%0, %1, %2, %3}", name, qualifiers, left, middle "{%6, %7}" right, CUDA_TMA_OFFSETS,        \
                  __VA_ARGS__)                                                                                     \
    CUDA_TMA_RANK(5, "{%0, %1, %2, %3, %4}", name, qualifiers, left, middle "{%6, %7, %8}" right,                  \
                  CUDA_TMA_OFFSETS, __VA_ARGS__)

// The operands that a load adds are `tile` (%6 or %9), the map and the barrier, in this order.
#define CUDA_TMA_LOAD_OPERANDS "r"(smem_address(tile)), "l"(map_address(map)), "r"(full.address())
// The operands that a store adds are the map and `tile`, in this order.
#define CUDA_TMA_STORE_OPERANDS "l"(map_address(map)), "r"(smem_address(tile))
#define CUDA_TMA_COMPLETE ".mbarrier::complete_tx::bytes"
#define CUDA_TMA_MULTICAST CUDA_TMA_COMPLETE ".multicast::cluster"
