// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/dynamic_shared.cuh: dynamic shared memory whose size the kernel says, so that the host need not.
#pragma once

namespace cuda_tma {

// All of the CTA's dynamic shared memory, as one T: Shared& shared = dynamic_shared<Shared>();
//
// It starts at a multiple of 1024 bytes, as the widest swizzle asks. The size stays in the PTX as a comment, where
// cuda_tma.compile reads it: launch then gives the kernel so much.
template <typename T>
__device__ __forceinline__ T& dynamic_shared() {
    static_assert(alignof(T) <= 1024, "dynamic shared memory is aligned to 1024 bytes");
    extern __shared__ __align__(1024) unsigned char cuda_tma_dynamic_shared[];
    asm volatile("// cuda_tma::dynamic_shared %0" ::"n"(sizeof(T)));
    return *reinterpret_cast<T*>(cuda_tma_dynamic_shared);
}

}  // namespace cuda_tma
