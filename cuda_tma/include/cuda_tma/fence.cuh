// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/fence.cuh: fences between ordinary accesses and the async proxy, which TMA and wgmma use. Two accesses to the
// same bytes through both proxies, in either order and also a read before a write, are ordered only by a fence between
// them. A thread that waited for a copy's barrier or group sees its writes without a fence. ISA: "Async proxy",
// "Causality Order", "membar, fence".
#pragma once

namespace cuda_tma {

// fence.proxy.async.shared::cta: for this CTA's shared memory. Call it in each thread that wrote a tile, before the
// __syncthreads() that precedes the store(). Pipeline::release() contains it for tiles that ordinary loads read.
__device__ inline void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ... .shared::cluster: also for other CTAs' shared memory, which send_bulk() or a multicast writes.
__device__ inline void fence_proxy_async_cluster() {
    asm volatile("fence.proxy.async.shared::cluster;" ::: "memory");
}

// ... .global: for global memory. If a copy of the same grid reads the ordinary writes of a thread, that thread calls it
// before it signals the copying thread.
__device__ inline void fence_proxy_async_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// ... for all memory.
__device__ inline void fence_proxy_async_all() { asm volatile("fence.proxy.async;" ::: "memory"); }

// fence.mbarrier_init: makes Barrier::init visible to the TMA unit, and to the cluster after its next cluster_sync(), or
// cluster_arrive_relaxed() and cluster_wait().
__device__ inline void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

}  // namespace cuda_tma
