// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/fence.cuh: fences between ordinary accesses and the async proxy, which TMA and wgmma use. Only a fence
// orders two accesses to the same bytes through different proxies, even if the first access is a read. After a wait for
// the barrier or the group of a copy, a thread sees the copied bytes without a fence. ISA: "Async proxy", "Causality
// Order", "membar, fence".
#pragma once

namespace cuda_tma {

// fence.proxy.async.shared::cta: a fence for this CTA's shared memory. Call it in each thread that wrote a tile, before
// the __syncthreads() that precedes the store(). Pipeline::release() has this fence for tiles that ordinary loads read.
__device__ inline void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// fence.proxy.async.shared::cluster: a fence that also covers the shared memory of other CTAs, to which send_bulk() or
// a multicast writes.
__device__ inline void fence_proxy_async_cluster() {
    asm volatile("fence.proxy.async.shared::cluster;" ::: "memory");
}

// fence.proxy.async.global: a fence for global memory. If a copy of the same grid reads what a thread wrote with
// ordinary stores, the writing thread calls this function before it signals the copying thread.
__device__ inline void fence_proxy_async_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// fence.proxy.async: a fence for all memory.
__device__ inline void fence_proxy_async_all() { asm volatile("fence.proxy.async;" ::: "memory"); }

// fence.mbarrier_init: makes Barrier::init visible to the TMA unit, and to the cluster after its next cluster_sync(), or
// cluster_arrive_relaxed() and cluster_wait().
__device__ inline void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

}  // namespace cuda_tma
