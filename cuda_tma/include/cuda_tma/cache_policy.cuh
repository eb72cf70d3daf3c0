// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/cache_policy.cuh: hints to L2 for the bytes that a copy reads or writes.
#pragma once

namespace cuda_tma {

// The L2 policy of a copy: the last argument of each copy. evict_first() and similar functions return a policy.
struct CachePolicy { unsigned long long bits; enum { given = true }; };
struct NoCachePolicy { unsigned long long bits; enum { given = false }; };

// createpolicy.fractional: creates a policy for all lines of an access. ISA: "createpolicy".
#define CUDA_TMA_CREATE_POLICY(priority) \
    CachePolicy policy; asm("createpolicy.fractional.L2::" priority ".b64 %0, 1.0;" : "=l"(policy.bits)); return policy
__device__ inline CachePolicy evict_first() { CUDA_TMA_CREATE_POLICY("evict_first"); }          // read once
__device__ inline CachePolicy evict_last() { CUDA_TMA_CREATE_POLICY("evict_last"); }            // read again later
__device__ inline CachePolicy evict_normal() { CUDA_TMA_CREATE_POLICY("evict_normal"); }        // the default
__device__ inline CachePolicy evict_unchanged() { CUDA_TMA_CREATE_POLICY("evict_unchanged"); }  // keeps the policy
#undef CUDA_TMA_CREATE_POLICY

// These policies apply to about `fraction` (more than 0, at most 1) of the accesses. The other accesses do not change
// the policy of a line. Choose `fraction` so that this part of the data fits in L2.
#define CUDA_TMA_CREATE_POLICY(priority)                                                   \
    CachePolicy policy;                                                                    \
    asm("createpolicy.fractional.L2::" priority ".L2::evict_unchanged.b64 %0, %1;"         \
        : "=l"(policy.bits) : "f"(fraction));                                              \
    return policy
__device__ inline CachePolicy evict_first(float fraction) { CUDA_TMA_CREATE_POLICY("evict_first"); }
__device__ inline CachePolicy evict_last(float fraction) { CUDA_TMA_CREATE_POLICY("evict_last"); }
#undef CUDA_TMA_CREATE_POLICY

}  // namespace cuda_tma
