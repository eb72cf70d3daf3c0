// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/address.cuh: addresses of shared memory, in this CTA and in other CTAs of its cluster, as 32-bit operands of
// PTX.
#pragma once

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "cuda_tma: TMA needs compute capability 9.0 or later; compile for sm_90 or above"
#endif

// Microsoft's compiler, in nvcc's host pass, defines the C++ version as _MSVC_LANG.
#if __cplusplus < 201703L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 201703L)
#error "cuda_tma: the headers are C++17; compile with -std=c++17 or later (cuda.core: std='c++17')"
#endif

#include <cuda_tma/refuse.cuh>

namespace cuda_tma {

// Converts a pointer to shared memory to the 32-bit address that PTX instructions use. ISA: "cvta".
__device__ inline unsigned smem_address(const void* pointer) {
    refuse_address_outside_shared_memory_if(!__isShared(pointer));
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// mapa: returns the address in the shared memory of another CTA that has the same offset as `pointer`. The address is
// in the cluster's shared window, which also contains the CTA's own memory. ISA: "mapa".
__device__ inline unsigned cluster_address(const void* pointer, unsigned cta_rank) {
    unsigned address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(smem_address(pointer)), "r"(cta_rank));
    return address;
}

}  // namespace cuda_tma
