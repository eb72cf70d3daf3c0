// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/target.cuh: the features of each target. A kernel may test constants such as has_scatter4. A function fails
// in a static_assert if the target lacks its instruction.
//
// The constants are for device code. In nvcc's host pass every feature exists, because that pass parses the same
// kernels.
#pragma once

namespace cuda_tma {

// ---- sets of targets, and their names ----

#if !defined(__CUDA_ARCH__)
constexpr bool is_specific_target = true;
constexpr bool is_sm90a = true;
constexpr bool is_sm100_or_later = true;
constexpr bool is_specific_beyond_sm90 = true;
constexpr bool is_sm100_specific = true;
constexpr bool is_sm100a_or_sm110a = true;
#else
// True if the target's name ends with a or f. (The first of these macros does not exist before CUDA 12.9.)
#if defined(__CUDA_ARCH_FAMILY_SPECIFIC__) || defined(__CUDA_ARCH_FEAT_SM90_ALL) ||                                \
    defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM101_ALL) || defined(__CUDA_ARCH_FEAT_SM120_ALL)
constexpr bool is_specific_target = true;
#else
constexpr bool is_specific_target = false;
#endif
constexpr bool is_sm90a = is_specific_target && __CUDA_ARCH__ == 900;
constexpr bool is_sm100_or_later = __CUDA_ARCH__ >= 1000;
constexpr bool is_specific_beyond_sm90 = is_specific_target && is_sm100_or_later;
constexpr bool is_sm100_specific =
    is_specific_target && (__CUDA_ARCH__ == 1000 || __CUDA_ARCH__ == 1010 || __CUDA_ARCH__ == 1030 ||
                           __CUDA_ARCH__ == 1070 || __CUDA_ARCH__ == 1100);
// True only for names with a. (CUDA 12.8 has no names with f, and defines the macros of single targets.)
#if defined(__CUDA_ARCH_SPECIFIC__) || defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM101_ALL)
constexpr bool is_sm100a_or_sm110a = __CUDA_ARCH__ == 1000 || __CUDA_ARCH__ == 1010 || __CUDA_ARCH__ == 1100;
#else
constexpr bool is_sm100a_or_sm110a = false;
#endif
#endif
#define CUDA_TMA_NAME_OF_is_specific_target "sm_90a, or a later target with a or f at its end, like sm_100a, sm_120f"
#define CUDA_TMA_NAME_OF_is_sm90a "sm_90a, and no other target"
#define CUDA_TMA_NAME_OF_is_sm100_or_later "sm_100 or a later target"
#define CUDA_TMA_NAME_OF_is_specific_beyond_sm90 "sm_100a, or a later target with a or f at its end"
#define CUDA_TMA_NAME_OF_is_sm100_specific \
    "sm_100a, sm_103a, sm_107a or sm_110a (CUDA 12: sm_101a), or one of these with f for a"

#define CUDA_TMA_NAME_OF_is_sm100a_or_sm110a "sm_100a or sm_110a (CUDA 12: sm_101a)"

// ---- the table ----
// The table was observed with ptxas of CUDA 12.8, 12.9, 13.0 and 13.5. tests/include/test_targets.py checks the
// installed ptxas, for all targets that it supports. Gather4 and im2col::w with multicast have features of their own,
// because only their forms with .shared::cluster have multicast.

#define CUDA_TMA_FEATURE(name, what, targets)                                                                      \
    constexpr bool has_##name = targets;                                                                           \
    template <typename Use>                                                                                        \
    __device__ constexpr void require_##name() {                                                                   \
        static_assert(has_##name || sizeof(Use) == 0, what " needs " CUDA_TMA_NAME_OF_##targets);                  \
    }

//               feature             its name in the message           targets
CUDA_TMA_FEATURE(wgmma,              "wgmma",                        is_sm90a)
CUDA_TMA_FEATURE(setmaxnreg,         "setmaxnreg",                   is_specific_target)
CUDA_TMA_FEATURE(tensormap_replace,  "tensormap.replace",            is_specific_target)
CUDA_TMA_FEATURE(gather4,            "tile::gather4",                is_sm100_or_later)
CUDA_TMA_FEATURE(gather4_multicast,  "tile::gather4 with multicast", is_sm100_specific)
CUDA_TMA_FEATURE(gather4_prefetch,   "tile::gather4 in a prefetch",  is_sm100_specific)
CUDA_TMA_FEATURE(scatter4,           "tile::scatter4",               is_sm100_specific)
CUDA_TMA_FEATURE(im2col_w,           "im2col::w",                    is_sm100_or_later)
CUDA_TMA_FEATURE(im2col_w_multicast, "im2col::w with multicast",     is_sm100_specific)
CUDA_TMA_FEATURE(im2col_w_prefetch,  "im2col::w in a prefetch",      is_sm100_specific)
CUDA_TMA_FEATURE(im2col_w_128,       "im2col::w::128",               is_sm100_specific)
CUDA_TMA_FEATURE(cta_group2,         "cta_group::2",                 is_sm100_specific)

CUDA_TMA_FEATURE(tensormap_replace_packed,    "tensormap.replace of a packed data type",    is_specific_beyond_sm90)
CUDA_TMA_FEATURE(tensormap_replace_atomicity, "tensormap.replace of a swizzle's atomicity", is_specific_beyond_sm90)
CUDA_TMA_FEATURE(cluster_launch_control,      "clusterlaunchcontrol",                       is_sm100_or_later)
CUDA_TMA_FEATURE(cluster_launch_multicast,    "clusterlaunchcontrol with multicast",        is_specific_beyond_sm90)
CUDA_TMA_FEATURE(tcgen05,                     "tcgen05",                                   is_sm100_specific)
CUDA_TMA_FEATURE(tcgen05_i8,                  "kind::i8 of tcgen05.mma",                   is_sm100a_or_sm110a)

#undef CUDA_TMA_FEATURE
#undef CUDA_TMA_NAME_OF_is_sm100a_or_sm110a
#undef CUDA_TMA_NAME_OF_is_sm100_specific
#undef CUDA_TMA_NAME_OF_is_specific_beyond_sm90
#undef CUDA_TMA_NAME_OF_is_sm100_or_later
#undef CUDA_TMA_NAME_OF_is_sm90a
#undef CUDA_TMA_NAME_OF_is_specific_target

}  // namespace cuda_tma
