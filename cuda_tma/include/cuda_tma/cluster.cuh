// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/cluster.cuh: CTAs that run together, and where they wait for each other; grids that depend on each other.
#pragma once

#include <cuda_tma/watchdog.cuh>

namespace cuda_tma {

// %cluster_ctarank: this CTA's number in its cluster, and its bit in a cta_mask. ISA: "Special Registers".
__device__ inline unsigned cluster_cta_rank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// %cluster_nctarank: how many CTAs the cluster has.
__device__ inline unsigned cluster_cta_count() {
    unsigned count;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
    return count;
}

// barrier.cluster.arrive, barrier.cluster.wait: all threads of the cluster, each warp converged (.aligned): where it
// may not be, __syncwarp() first. ISA: "barrier.cluster".
__device__ inline void cluster_sync(CUDA_TMA_SITE_ALONE) {
    CUDA_TMA_NOTE_BARRIER(255, 0)
    asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// The same in two steps: between them a thread may do what concerns nobody else. Each arrival is followed by a wait.
__device__ inline void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ inline void cluster_wait(CUDA_TMA_SITE_ALONE) {
    CUDA_TMA_NOTE_BARRIER(255, 0)
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// ... .relaxed: an arrival that makes nothing visible, and costs no fence of the whole GPU (MEMBAR.ALL.GPU). Between
// fence_barrier_init() and cluster_wait() it suffices for the barriers of all CTAs to be used; and at a kernel's end it
// says that this thread leaves the shared memory of others alone.
__device__ inline void cluster_arrive_relaxed() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

// griddepcontrol.wait: until the grids that this one depends on are complete and their writes visible. On the host:
// LaunchConfig(programmatic_stream_serialization=True). ISA: "griddepcontrol".
__device__ inline void griddepcontrol_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// griddepcontrol.launch_dependents: the grids that depend on this one may start, once each of its CTAs has said so or
// has ended.
__device__ inline void griddepcontrol_launch_dependents() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace cuda_tma
