// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/fence.cuh: fences between ordinary accesses and those of the TMA unit and wgmma, which go through the async
// proxy. Of accesses to the same bytes through both, in either order, also of reads before writes, one is ordered after
// the other only with a fence between them. What a copy or a reduction wrote is visible without, to who waited for its
// barrier or group. ISA: "Async proxy", "Causality Order", "membar, fence".
#pragma once

namespace cuda_tma {

// fence.proxy.async.shared::cta: this CTA's shared memory. Each thread that wrote a tile calls it before the
// __syncthreads() that precedes the store(); for a tile that ordinary loads read, Pipeline::release() does.
__device__ inline void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ... .shared::cluster: that of other CTAs too, for what send_bulk() or a multicast writes there.
__device__ inline void fence_proxy_async_cluster() {
    asm volatile("fence.proxy.async.shared::cluster;" ::: "memory");
}

// ... .global: global memory. After ordinary writes that a copy is to read in the same grid: each writer, before it
// tells the thread that copies.
__device__ inline void fence_proxy_async_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// ... of all memory.
__device__ inline void fence_proxy_async_all() { asm volatile("fence.proxy.async;" ::: "memory"); }

// fence.mbarrier_init: Barrier::init is seen by the TMA unit, and by the cluster after its next cluster_sync(), or
// cluster_arrive_relaxed() and cluster_wait().
__device__ inline void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

}  // namespace cuda_tma
