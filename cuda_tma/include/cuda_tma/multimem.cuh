// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/multimem.cuh: accesses to an address that represents memory of several GPUs (cuMulticastCreate). The switch
// between the GPUs writes to all GPUs, and combines their values in a read. Tests assemble the instructions for every
// target (CUDA 12.1 or later); none has run on hardware. One function is one PTX instruction. ISA: "multimem".
#pragma once

namespace cuda_tma {

// The element types of the 16 bytes. The instructions compute sums of 16-bit values in f32.
enum class MultimemType { f32x4, f16x8, bf16x8 };

#define CUDA_TMA_MULTIMEM(...)                                                                                     \
    if constexpr (Type == MultimemType::f32x4) CUDA_TMA_MULTIMEM_OF("", ".v4.f32", __VA_ARGS__);                   \
    if constexpr (Type == MultimemType::f16x8) CUDA_TMA_MULTIMEM_OF(".acc::f32", ".v4.f16x2", __VA_ARGS__);        \
    if constexpr (Type == MultimemType::bf16x8) CUDA_TMA_MULTIMEM_OF(".acc::f32", ".v4.bf16x2", __VA_ARGS__);

// multimem.ld_reduce.add: returns the element-wise sums of the 16 bytes over all GPUs.
#define CUDA_TMA_MULTIMEM_OF(accumulate, type, ...)                                                                \
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add" accumulate type " {%0, %1, %2, %3}, [%4];"            \
                 : "=r"(sums.x), "=r"(sums.y), "=r"(sums.z), "=r"(sums.w)                                          \
                 : "l"(__cvta_generic_to_global(address)) : "memory")
template <MultimemType Type>
__device__ uint4 multimem_load_add(const void* address) {
    uint4 sums;
    CUDA_TMA_MULTIMEM()
    return sums;
}
#undef CUDA_TMA_MULTIMEM_OF

// multimem.red.add: adds `value` to the 16 bytes in the memory of each GPU.
#define CUDA_TMA_MULTIMEM_OF(accumulate, type, ...)                                                                \
    asm volatile("multimem.red.relaxed.sys.global.add" type " [%0], {%1, %2, %3, %4};"                             \
                 ::"l"(__cvta_generic_to_global(address)), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)  \
                 : "memory")
template <MultimemType Type>
__device__ void multimem_add(void* address, uint4 value) {
    CUDA_TMA_MULTIMEM()
}
#undef CUDA_TMA_MULTIMEM_OF
#undef CUDA_TMA_MULTIMEM

// multimem.st: stores the 16 bytes in each GPU.
__device__ inline void multimem_store(void* address, uint4 value) {
    asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};"
                 ::"l"(__cvta_generic_to_global(address)), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)
                 : "memory");
}

// multimem.red.release.add: adds to a flag in each GPU. On each GPU, a thread reads the flag of that GPU with
// load_acquire<Scope::sys>().
__device__ inline void multimem_add_release(unsigned* flag, unsigned value) {
    asm volatile("multimem.red.release.sys.global.add.u32 [%0], %1;"
                 ::"l"(__cvta_generic_to_global(flag)), "r"(value) : "memory");
}

}  // namespace cuda_tma
