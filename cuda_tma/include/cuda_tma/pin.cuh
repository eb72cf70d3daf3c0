// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/pin.cuh: the order of registers and asynchronous instructions, for wgmma.cuh and tensor_memory.cuh.
#pragma once

namespace cuda_tma {

// Orders registers or arrays: the compiler computes them before this statement, and uses them after this statement.
__device__ inline void pin(float& value) { asm volatile("" : "+f"(value)::"memory"); }
__device__ inline void pin(unsigned& value) { asm volatile("" : "+r"(value)::"memory"); }
__device__ inline void pin(int& value) { asm volatile("" : "+r"(value)::"memory"); }
template <typename Value, int Count>
__device__ __forceinline__ void pin(Value (&values)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; ++i) pin(values[i]);
}

}  // namespace cuda_tma
