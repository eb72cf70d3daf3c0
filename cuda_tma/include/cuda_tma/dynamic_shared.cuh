// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/dynamic_shared.cuh: dynamic shared memory whose size the kernel declares, so that the host does not repeat
// the size.
#pragma once

namespace cuda_tma {

// Returns all dynamic shared memory of the CTA as one T: Shared& shared = dynamic_shared<Shared>();
//
// The memory starts at a multiple of 1024 bytes, as the widest swizzle requires. The PTX contains the size in a
// comment. cuda_tma.compile reads the comment, and launch allocates these bytes.
template <typename T>
__device__ __forceinline__ T& dynamic_shared() {
    static_assert(alignof(T) <= 1024, "dynamic shared memory is aligned to 1024 bytes");
    extern __shared__ __align__(1024) unsigned char cuda_tma_dynamic_shared[];
    asm volatile("// cuda_tma::dynamic_shared %0" ::"n"(sizeof(T)));
    return *reinterpret_cast<T*>(cuda_tma_dynamic_shared);
}

}  // namespace cuda_tma
