// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/store_async.cuh: stores of single values to the shared memory of a CTA in the cluster. A barrier in that CTA
// counts the bytes, as for a copy. After wait_cluster() on that barrier, a thread sees the values. No fence is needed
// before the store, because registers contain the values. Use CUDA 12.1 or later. One function is one PTX instruction.
//
// Launch the kernel with clusters, which may contain one CTA: LaunchConfig(cluster=1). Without clusters, st.async and
// red.async fail with CUDA_ERROR_ILLEGAL_INSTRUCTION, but arrivals at addresses of the cluster work (observed with
// driver 580, sm_90; not documented).
#pragma once

#include <cuda_tma/barrier.cuh>
#include <cuda_tma/reduction.cuh>

namespace cuda_tma {

// st.async: stores `value` of 4, 8 or 16 bytes at the offset of `destination` in CTA `cta_rank`. The barrier `full` of
// that CTA counts the bytes. ISA: "st.async".
template <typename Value>
__device__ void store_async(Value* destination, unsigned cta_rank, Value value, Barrier& full) {
    static_assert(sizeof(Value) == 4 || sizeof(Value) == 8 || sizeof(Value) == 16, "store_async: 4, 8 or 16 bytes");
    const unsigned address = cluster_address(destination, cta_rank), barrier = cluster_address(&full, cta_rank);
    if constexpr (sizeof(Value) == 4) {
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"
                     ::"r"(address), "r"(reinterpret_cast<const unsigned&>(value)), "r"(barrier) : "memory");
    } else {
        const auto words = reinterpret_cast<const unsigned long long*>(&value);
        if constexpr (sizeof(Value) == 8)
            asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];"
                         ::"r"(address), "l"(words[0]), "r"(barrier) : "memory");
        else
            asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];"
                         ::"r"(address), "l"(words[0]), "l"(words[1]), "r"(barrier) : "memory");
    }
}

// The table lists all combinations of operation, C++ type and qualifiers of the instruction. A CUDA version between
// 12.4 and 12.8 added .s64. ISA: "red.async".
#define CUDA_TMA_ASYNC_REDUCTIONS(ROW)                                                                             \
    ROW(add, unsigned, ".add.u32", "r") ROW(add, int, ".add.s32", "r")                                             \
    ROW(add, unsigned long long, ".add.u64", "l") ROW(add, long long, ".add.s64", "l")                             \
    ROW(min, unsigned, ".min.u32", "r") ROW(min, int, ".min.s32", "r")                                             \
    ROW(max, unsigned, ".max.u32", "r") ROW(max, int, ".max.s32", "r")                                             \
    ROW(inc, unsigned, ".inc.u32", "r") ROW(dec, unsigned, ".dec.u32", "r")                                        \
    ROW(bit_and, unsigned, ".and.b32", "r") ROW(bit_or, unsigned, ".or.b32", "r")                                  \
    ROW(bit_xor, unsigned, ".xor.b32", "r")
template <typename One, typename Other>
constexpr bool is_the_type = false;
template <typename One>
constexpr bool is_the_type<One, One> = true;
#define CUDA_TMA_ASYNC_REDUCTION_EXISTS(operation, type, ...) \
    || (Operation == Reduction::operation && is_the_type<Value, type>)
#define CUDA_TMA_ASYNC_REDUCE(operation, type, text, letter)                                                       \
    if constexpr (Operation == Reduction::operation && is_the_type<Value, type>)                                   \
        asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes" text                 \
                     " [%0], %1, [%2];" ::"r"(address), letter(value), "r"(barrier) : "memory");

// red.async: combines `value` with the destination atomically, as in reduce_async<Reduction::add>(&sum, 0, 1u, full).
// In all other respects this function is like store_async().
template <Reduction Operation, typename Value>
__device__ void reduce_async(Value* destination, unsigned cta_rank, Value value, Barrier& full) {
    static_assert(false CUDA_TMA_ASYNC_REDUCTIONS(CUDA_TMA_ASYNC_REDUCTION_EXISTS),
                  "reduce_async: no such reduction: add has unsigned, int, unsigned long long, long long; min and max "
                  "unsigned, int; inc, dec, bit_and, bit_or and bit_xor unsigned");
    const unsigned address = cluster_address(destination, cta_rank), barrier = cluster_address(&full, cta_rank);
    CUDA_TMA_ASYNC_REDUCTIONS(CUDA_TMA_ASYNC_REDUCE)
}

#undef CUDA_TMA_ASYNC_REDUCE
#undef CUDA_TMA_ASYNC_REDUCTION_EXISTS
#undef CUDA_TMA_ASYNC_REDUCTIONS

}  // namespace cuda_tma
