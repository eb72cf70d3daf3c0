// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/cluster.cuh: clusters of CTAs, the barrier of a cluster, and grids that depend on other grids.
#pragma once

#include <cuda_tma/watchdog.cuh>

namespace cuda_tma {

// %cluster_ctarank: returns the rank of this CTA in its cluster, which is also its bit in a cta_mask. ISA: "Special
// Registers".
__device__ inline unsigned cluster_cta_rank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// %cluster_nctarank: returns the number of CTAs in the cluster.
__device__ inline unsigned cluster_cta_count() {
    unsigned count;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
    return count;
}

// barrier.cluster.arrive, barrier.cluster.wait: synchronizes all threads of the cluster. Each warp must be converged
// (.aligned); call __syncwarp() first if a warp may be divergent. ISA: "barrier.cluster".
__device__ inline void cluster_sync(CUDA_TMA_SITE_ALONE) {
    CUDA_TMA_NOTE_BARRIER(255, 0)
    asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// The two steps of cluster_sync(). Between the steps a thread may execute other work. Each arrival needs a wait.
__device__ inline void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ inline void cluster_wait(CUDA_TMA_SITE_ALONE) {
    CUDA_TMA_NOTE_BARRIER(255, 0)
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// barrier.cluster.arrive.relaxed: arrives without making writes visible, and therefore without a GPU-wide fence
// (MEMBAR.ALL.GPU). After fence_barrier_init(), this arrival and cluster_wait() make the barriers of all CTAs visible.
// At the end of a kernel, the arrival signals that this thread no longer accesses the shared memory of other CTAs.
__device__ inline void cluster_arrive_relaxed() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

// griddepcontrol.wait: waits until the preceding grids are complete and their writes are visible. The host launches the
// kernel with LaunchConfig(programmatic_stream_serialization=True). ISA: "griddepcontrol".
__device__ inline void griddepcontrol_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// griddepcontrol.launch_dependents: allows dependent grids to start after each CTA of this grid has executed this
// instruction or has ended.
__device__ inline void griddepcontrol_launch_dependents() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace cuda_tma
