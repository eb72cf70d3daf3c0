// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/bulk.cuh: copies of contiguous bytes without a tensor map, and the bulk groups of stores.
//
// All addresses and counts of bytes are multiples of 16. ISA: "cp.async.bulk".
#pragma once

#include <cuda_tma/barrier.cuh>
#include <cuda_tma/cache_policy.cuh>
#include <cuda_tma/reduction.cuh>

namespace cuda_tma {

// ---- copies ----

// The macro inserts the cache hint before `suffix`. Operand %0 is the policy.
#define CUDA_TMA_BULK(name, suffix, operands, ...)                                                                 \
    if constexpr (Policy::given)                                                                                   \
        asm volatile(name ".L2::cache_hint" suffix " " operands ", %0;"                                            \
                     ::"l"(policy.bits), __VA_ARGS__ : "memory");                                                  \
    else                                                                                                           \
        asm volatile(name suffix " " operands ";" ::"l"(policy.bits), __VA_ARGS__ : "memory")

// cp.async.bulk: copies from global to shared memory. The barrier `full` counts the bytes.
template <typename Policy = NoCachePolicy>
__device__ void load_bulk(void* shared, const void* global, unsigned bytes, Barrier& full, Policy policy = {}) {
    CUDA_TMA_BULK("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", "", "[%1], [%2], %3, [%4]",
                  "r"(smem_address(shared)), "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(full.address()));
}

// cp.async.bulk.multicast::cluster: copies to the same offset in each CTA whose bit in `cta_mask` is set. In each of
// these CTAs, the barrier `full` counts the bytes.
template <typename Policy = NoCachePolicy>
__device__ void load_bulk_multicast(void* shared, const void* global, unsigned bytes, Barrier& full,
                                    unsigned short cta_mask, Policy policy = {}) {
    CUDA_TMA_BULK("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster", "",
                  "[%1], [%2], %3, [%4], %5", "r"(smem_address(shared)), "l"(__cvta_generic_to_global(global)),
                  "r"(bytes), "r"(full.address()), "h"(cta_mask));
}

// cp.async.bulk: copies from shared memory to another CTA of the cluster, at the offset of `destination`. The barrier
// `full` of that CTA counts the bytes. As before a store, call fence_proxy_async() in the threads that wrote `source`
// before the copy.
__device__ inline void send_bulk(void* destination, unsigned cta_rank, const void* source, unsigned bytes,
                                 Barrier& full) {
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(cluster_address(destination, cta_rank)), "r"(smem_address(source)), "r"(bytes),
                 "r"(cluster_address(&full, cta_rank)) : "memory");
}

// cp.async.bulk: copies from shared to global memory. The copy needs the same fences and groups as store().
template <typename Policy = NoCachePolicy>
__device__ void store_bulk(void* global, const void* shared, unsigned bytes, Policy policy = {}) {
    CUDA_TMA_BULK("cp.async.bulk.global.shared::cta.bulk_group", "", "[%1], [%2], %3",
                  "l"(__cvta_generic_to_global(global)), "r"(smem_address(shared)), "r"(bytes));
}

// cp.async.bulk.prefetch: prefetches the bytes into L2.
template <typename Policy = NoCachePolicy>
__device__ void prefetch_bulk(const void* global, unsigned bytes, Policy policy = {}) {
    CUDA_TMA_BULK("cp.async.bulk.prefetch.L2.global", "", "[%1], %2", "l"(__cvta_generic_to_global(global)),
                  "r"(bytes));
}

// ---- reductions ----

// The element type of a reduction without a tensor map. ISA: "cp.reduce.async.bulk".
enum class BulkType { u32, s32, u64, s64, f16, bf16, f32, f64, b32, b64 };

// The table lists all forms of the instruction. Subnormal f16 and bf16 keep their value (noftz).
#define CUDA_TMA_BULK_REDUCTIONS(ROW)                                                                              \
    ROW(add, u32, ".add.u32") ROW(add, s32, ".add.s32") ROW(add, u64, ".add.u64") ROW(add, f32, ".add.f32")        \
    ROW(add, f64, ".add.f64") ROW(add, f16, ".add.noftz.f16") ROW(add, bf16, ".add.noftz.bf16")                    \
    ROW(min, u32, ".min.u32") ROW(min, s32, ".min.s32") ROW(min, u64, ".min.u64") ROW(min, s64, ".min.s64")        \
    ROW(min, f16, ".min.f16") ROW(min, bf16, ".min.bf16")                                                          \
    ROW(max, u32, ".max.u32") ROW(max, s32, ".max.s32") ROW(max, u64, ".max.u64") ROW(max, s64, ".max.s64")        \
    ROW(max, f16, ".max.f16") ROW(max, bf16, ".max.bf16")                                                          \
    ROW(inc, u32, ".inc.u32") ROW(dec, u32, ".dec.u32")                                                            \
    ROW(bit_and, b32, ".and.b32") ROW(bit_or, b32, ".or.b32") ROW(bit_xor, b32, ".xor.b32")                        \
    ROW(bit_and, b64, ".and.b64") ROW(bit_or, b64, ".or.b64") ROW(bit_xor, b64, ".xor.b64")

#define CUDA_TMA_BULK_REDUCTION_EXISTS(operation, element, text)                                                   \
    || (Operation == Reduction::operation && Element == BulkType::element)
#define CUDA_TMA_BULK_REDUCE(operation, element, text)                                                             \
    if constexpr (Operation == Reduction::operation && Element == BulkType::element) {                             \
        CUDA_TMA_BULK("cp.reduce.async.bulk.global.shared::cta.bulk_group", text, "[%1], [%2], %3",                \
                      "l"(__cvta_generic_to_global(global)), "r"(smem_address(shared)), "r"(bytes));               \
    }

// cp.reduce.async.bulk: stores like store_bulk(), but atomically combines each element with the element in global
// memory, as in reduce_bulk<Reduction::add, BulkType::f32>(global, shared, 64).
template <Reduction Operation, BulkType Element, typename Policy = NoCachePolicy>
__device__ void reduce_bulk(void* global, const void* shared, unsigned bytes, Policy policy = {}) {
    static_assert(false CUDA_TMA_BULK_REDUCTIONS(CUDA_TMA_BULK_REDUCTION_EXISTS),
                  "reduce_bulk: no such reduction: add has u32 s32 u64 f16 bf16 f32 f64; min, max u32 s32 u64 s64 f16 "
                  "bf16; inc, dec u32; bit_and, bit_or, bit_xor b32 b64");
    CUDA_TMA_BULK_REDUCTIONS(CUDA_TMA_BULK_REDUCE)
}

#undef CUDA_TMA_BULK_REDUCE
#undef CUDA_TMA_BULK_REDUCTION_EXISTS
#undef CUDA_TMA_BULK_REDUCTIONS

#define CUDA_TMA_SENT_REDUCTIONS(ROW)                                                                              \
    ROW(add, u32, ".add.u32") ROW(add, s32, ".add.s32") ROW(add, u64, ".add.u64")                                  \
    ROW(min, u32, ".min.u32") ROW(min, s32, ".min.s32") ROW(max, u32, ".max.u32") ROW(max, s32, ".max.s32")        \
    ROW(inc, u32, ".inc.u32") ROW(dec, u32, ".dec.u32")                                                            \
    ROW(bit_and, b32, ".and.b32") ROW(bit_or, b32, ".or.b32") ROW(bit_xor, b32, ".xor.b32")
#define CUDA_TMA_SENT_REDUCTION_EXISTS(operation, element, ...) \
    || (Operation == Reduction::operation && Element == BulkType::element)
#define CUDA_TMA_SEND_REDUCE(operation, element, text)                                                             \
    if constexpr (Operation == Reduction::operation && Element == BulkType::element)                               \
        asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes" text          \
                     " [%0], [%1], %2, [%3];"                                                                      \
                     ::"r"(cluster_address(destination, cta_rank)), "r"(smem_address(source)), "r"(bytes),         \
                     "r"(cluster_address(&full, cta_rank)) : "memory");

// cp.reduce.async.bulk: copies like send_bulk(), but atomically combines each element with the element at the
// destination.
template <Reduction Operation, BulkType Element>
__device__ void send_reduce_bulk(void* destination, unsigned cta_rank, const void* source, unsigned bytes,
                                 Barrier& full) {
    static_assert(false CUDA_TMA_SENT_REDUCTIONS(CUDA_TMA_SENT_REDUCTION_EXISTS),
                  "send_reduce_bulk: no such reduction: add has u32 s32 u64; min, max u32 s32; inc, dec u32; bit_and, "
                  "bit_or, bit_xor b32");
    CUDA_TMA_SENT_REDUCTIONS(CUDA_TMA_SEND_REDUCE)
}

#undef CUDA_TMA_SEND_REDUCE
#undef CUDA_TMA_SENT_REDUCTION_EXISTS
#undef CUDA_TMA_SENT_REDUCTIONS
#undef CUDA_TMA_BULK

// ---- groups ----

// cp.async.bulk.commit_group: puts all stores and reductions of this thread since its last call into one group.
__device__ inline void commit_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// cp.async.bulk.wait_group: waits until at most `Pending` of this thread's groups are unfinished. Writes of the
// finished groups are then visible to this thread only. To make these writes visible to another thread, release at a
// scope that includes both threads, or end the kernel. Within a CTA, arrive() of a barrier is such a release. Within a
// GPU, call store_release() of scope.cuh; between GPUs, call store_release() with Scope::sys.
template <int Pending = 0>
__device__ void wait_group() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(Pending) : "memory"); }

// cp.async.bulk.wait_group.read: waits until at most `Pending` groups still read shared memory. The kernel may then
// overwrite the shared memory that the other groups have read.
template <int Pending = 0>
__device__ void wait_group_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory"); }

}  // namespace cuda_tma
