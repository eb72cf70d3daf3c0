// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/tma.cuh: functions of kernels that use the Tensor Memory Accelerator (TMA). One function is one PTX
// instruction.
//
// The headers work with NVRTC and nvcc: C++17, PTX ISA 8.0 (CUDA 12.0), compute capability 9.0 and later. They include
// only headers of cuda_tma, define names only in the namespace cuda_tma, and undefine their macros. They therefore work
// together with CCCL and CUTLASS. This file contains the tensor copies, and includes:
//
//     tensor_map.cuh    TensorMap, Coordinates, Offsets     barrier.cuh  Barrier, elect_one
//     cache_policy.cuh  evict_first() and so on             fence.cuh    order of ordinary accesses and copies
//     swizzle.cuh       position of a byte in a tile        cluster.cuh  clusters, dependent grids
//     bulk.cuh          copies without a tensor map, groups
//
// This file does not include:
//
//     tile.cuh          typed tiles and maps                scope.cuh               flags between CTAs or GPUs
//     pipeline.cuh      a ring of tiles                     store_async.cuh         stores to other CTAs
//     warpgroup.cuh     registers, named barriers           tensor_map_replace.cuh  maps changed on the GPU
//     wgmma.cuh         tensor cores, sm_90a                cluster_launch.cuh      work stealing between clusters
//     mma.cuh           tensor cores, every target          multimem.cuh            multicast memory of several GPUs
//     sm100.cuh         copies of sm_100 and later          tcgen05.cuh             tensor cores, sm_100a and others
//
// Parts of tensor-core kernels: roles.cuh (a loading thread, computing warpgroups), operand.cuh (loads of an operand),
// mainloop.cuh (products), epilogue.cuh and output.cuh (the output of accumulators), schedule.cuh (the order of tiles).
//
//     extern "C" __global__ void kernel(const __grid_constant__ cuda_tma::TensorMap map, float* out) {
//         using namespace cuda_tma;
//         __shared__ alignas(128) float tile[32][32];   // a load's destination is 128-byte aligned
//         __shared__ Barrier full;
//         if (threadIdx.x == 0) {
//             full.init(1);                             // one arrival per phase
//             fence_barrier_init();                     // makes the barrier visible to the TMA unit
//             full.arrive_expect_tx(sizeof(tile));
//             load(tile, map, full, Coordinates{32 * blockIdx.x, 32 * blockIdx.y});
//         }
//         __syncthreads();                              // no thread waits before the init
//         full.wait(0);                                 // phase 0 is complete: all bytes are in and visible
//         ...
//
// Coordinates are in the driver's order: innermost dimension first, in elements. Without interleave, the first
// coordinate times the size of an element must be a multiple of 16 bytes, also if it is negative; otherwise the
// instruction ends the context. One thread calls a copy: see elect_one(), or elected.cuh. "ISA" is NVIDIA's
// "Parallel Thread Execution ISA", cited by section title, because the numbers change.
#pragma once

#include <cuda_tma/barrier.cuh>
#include <cuda_tma/bulk.cuh>
#include <cuda_tma/cache_policy.cuh>
#include <cuda_tma/swizzle.cuh>
#include <cuda_tma/tensor_map.cuh>

#include <cuda_tma/macros.cuh>

namespace cuda_tma {

// ---- loads ----

// cp.async.bulk.tensor, global to shared: issues a load of the box at `at` into `tile`. The barrier `full` counts the
// bytes. (The instruction has .shared::cluster, whose window includes the CTA's own shared memory, because .shared::cta
// needs PTX ISA 8.6.)
template <int Rank, typename Policy = NoCachePolicy>
__device__ void load(void* tile, const TensorMap& map, Barrier& full, Coordinates<Rank> at, Policy policy = {}) {
    CUDA_TMA_TILED("cp.async.bulk.tensor", ".shared::cluster.global.tile" CUDA_TMA_COMPLETE, "[%6], [%7, ", "], [%8]",
                   CUDA_TMA_LOAD_OPERANDS)
}

// cp.async.bulk.tensor.multicast::cluster: loads into `tile` of each CTA whose bit in `cta_mask` is set. In each of
// these CTAs, the barrier `full` counts the bytes.
template <int Rank, typename Policy = NoCachePolicy>
__device__ void load_multicast(void* tile, const TensorMap& map, Barrier& full, Coordinates<Rank> at,
                               unsigned short cta_mask, Policy policy = {}) {
    CUDA_TMA_TILED("cp.async.bulk.tensor", ".shared::cluster.global.tile" CUDA_TMA_MULTICAST, "[%6], [%7, ",
                   "], [%8], %9", CUDA_TMA_LOAD_OPERANDS, "h"(cta_mask))
}

// cp.async.bulk.tensor.im2col: loads pixels in convolution order, from the pixel at `at` plus `offsets` on. If `at` is
// outside the bounding box of an image, the instruction ends the context. The sum `at` plus `offsets` may be outside.
template <int Rank, int Count, typename Policy = NoCachePolicy>
__device__ void load_im2col(void* tile, const TensorMap& map, Barrier& full, Coordinates<Rank> at,
                            Offsets<Count> offsets, Policy policy = {}) {
    CUDA_TMA_IM2COL("cp.async.bulk.tensor", ".shared::cluster.global.im2col" CUDA_TMA_COMPLETE, "[%9], [%10, ",
                    "], [%11], ", "", CUDA_TMA_LOAD_OPERANDS)
}

// ... .im2col.multicast::cluster.
template <int Rank, int Count, typename Policy = NoCachePolicy>
__device__ void load_im2col_multicast(void* tile, const TensorMap& map, Barrier& full, Coordinates<Rank> at,
                                      Offsets<Count> offsets, unsigned short cta_mask, Policy policy = {}) {
    CUDA_TMA_IM2COL("cp.async.bulk.tensor", ".shared::cluster.global.im2col" CUDA_TMA_MULTICAST, "[%9], [%10, ",
                    "], [%11], ", ", %12", CUDA_TMA_LOAD_OPERANDS, "h"(cta_mask))
}

// ---- stores and reductions ----

// cp.async.bulk.tensor, shared to global: issues a store of `tile` as the box at `at`. The store drops elements beyond
// the tensor's end, but writes the last 16 bytes of a row as a whole. A negative coordinate ends the context. Both
// effects were observed (driver 580, sm_90). Before the store, call fence_proxy_async() in the writing threads, and
// then __syncthreads(). After the store, call commit_group() and a wait_group function.
template <int Rank, typename Policy = NoCachePolicy>
__device__ void store(const TensorMap& map, Coordinates<Rank> at, const void* tile, Policy policy = {}) {
    refuse_store_at(at);
    CUDA_TMA_TILED("cp.async.bulk.tensor", ".global.shared::cta.tile.bulk_group", "[%6, ", "], [%7]",
                   CUDA_TMA_STORE_OPERANDS)
}

// ... .im2col_no_offs.
template <int Rank, typename Policy = NoCachePolicy>
__device__ void store_im2col(const TensorMap& map, Coordinates<Rank> at, const void* tile, Policy policy = {}) {
    refuse_store_at(at);
    CUDA_TMA_PIXELS("cp.async.bulk.tensor", ".global.shared::cta.im2col_no_offs.bulk_group", "[%6, ", "], [%7]",
                    CUDA_TMA_STORE_OPERANDS)
}

#define CUDA_TMA_REDUCE(RANKS, mode, reduction, operation)                                                         \
    if constexpr (Operation == Reduction::reduction) {                                                             \
        RANKS("cp.reduce.async.bulk.tensor", ".global.shared::cta" operation mode ".bulk_group", "[%6, ",          \
              "], [%7]", CUDA_TMA_STORE_OPERANDS)                                                                  \
    }
#define CUDA_TMA_REDUCTIONS(...)                                                                                   \
    CUDA_TMA_REDUCE(__VA_ARGS__, add, ".add") CUDA_TMA_REDUCE(__VA_ARGS__, min, ".min")                            \
    CUDA_TMA_REDUCE(__VA_ARGS__, max, ".max") CUDA_TMA_REDUCE(__VA_ARGS__, inc, ".inc")                            \
    CUDA_TMA_REDUCE(__VA_ARGS__, dec, ".dec") CUDA_TMA_REDUCE(__VA_ARGS__, bit_and, ".and")                        \
    CUDA_TMA_REDUCE(__VA_ARGS__, bit_or, ".or") CUDA_TMA_REDUCE(__VA_ARGS__, bit_xor, ".xor")

// cp.reduce.async.bulk.tensor: stores like store(), but combines each element atomically with the tensor, as in
// reduce<Reduction::add>(map, at, tile). An operation that the data type of the map does not have ends the context.
template <Reduction Operation, int Rank, typename Policy = NoCachePolicy>
__device__ void reduce(const TensorMap& map, Coordinates<Rank> at, const void* tile, Policy policy = {}) {
    refuse_store_at(at);
    CUDA_TMA_REDUCTIONS(CUDA_TMA_TILED, ".tile")
}

// ... .im2col_no_offs.
template <Reduction Operation, int Rank, typename Policy = NoCachePolicy>
__device__ void reduce_im2col(const TensorMap& map, Coordinates<Rank> at, const void* tile, Policy policy = {}) {
    refuse_store_at(at);
    CUDA_TMA_REDUCTIONS(CUDA_TMA_PIXELS, ".im2col_no_offs")
}

#undef CUDA_TMA_REDUCTIONS
#undef CUDA_TMA_REDUCE

// ---- prefetches ----

// cp.async.bulk.prefetch.tensor: prefetches the box at `at` into L2.
template <int Rank, typename Policy = NoCachePolicy>
__device__ void prefetch(const TensorMap& map, Coordinates<Rank> at, Policy policy = {}) {
    CUDA_TMA_TILED("cp.async.bulk.prefetch.tensor", ".L2.global.tile", "[%6, ", "]", "l"(map_address(map)))
}

// ... .im2col.
template <int Rank, int Count, typename Policy = NoCachePolicy>
__device__ void prefetch_im2col(const TensorMap& map, Coordinates<Rank> at, Offsets<Count> offsets,
                                Policy policy = {}) {
    CUDA_TMA_IM2COL("cp.async.bulk.prefetch.tensor", ".L2.global.im2col", "[%9, ", "], ", "", "l"(map_address(map)))
}

}  // namespace cuda_tma

#include <cuda_tma/macros_end.cuh>
