// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/barrier.cuh: what makes one thread, or the TMA unit, wait for another: barriers, fences, clusters, grids.
#pragma once

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "cuda_tma: TMA needs compute capability 9.0 or later; compile for sm_90 or above"
#endif

// Microsoft's compiler, as nvcc's host pass, says its C++ in _MSVC_LANG.
#if __cplusplus < 201703L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 201703L)
#error "cuda_tma: the headers are C++17; compile with -std=c++17 or later (cuda.core: std='c++17')"
#endif

#include <cuda_tma/refuse.cuh>

namespace cuda_tma {

// The address of shared memory as the 32-bit number that PTX takes. ISA: "cvta".
__device__ inline unsigned smem_address(const void* pointer) {
    refuse_address_outside_shared_memory_if(!__isShared(pointer));
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// mapa: the same place in the shared memory of another CTA of the cluster, as an address of the cluster's window, in
// which each CTA's own memory lies too. ISA: "mapa".
__device__ inline unsigned cluster_address(const void* pointer, unsigned cta_rank) {
    unsigned address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(smem_address(pointer)), "r"(cta_rank));
    return address;
}

// ---- barrier ----

// A barrier anywhere in the cluster, for those who only name it: made by Barrier::in_cta().
struct ClusterBarrier {
    unsigned address_in_cluster;

    __device__ unsigned address() const { return address_in_cluster; }
};

// An mbarrier in shared memory: a phase completes when all arrivals and all expected bytes are in, and the next begins.
// Phases count 0, 1, 2, ...; a wait names the parity (0 or 1) of the phase that it waits for. ISA: "mbarrier".
struct Barrier {
    unsigned long long state;

    // A copy would be a barrier in registers or local memory: pass it by reference.
    Barrier() = default;
    Barrier(const Barrier&) = delete;
    Barrier& operator=(const Barrier&) = delete;

    __device__ unsigned address() const { return smem_address(this); }

    // mbarrier.init. Follow with fence_barrier_init() and a __syncthreads().
    __device__ void init(unsigned arrivals) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
    }

    // mbarrier.inval: before the memory is used for something else.
    __device__ void invalidate() { asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(address()) : "memory"); }

    // mbarrier.expect_tx: the phase waits for so many more bytes (tx_bytes of the descriptor). Does not arrive.
    __device__ void expect_tx(unsigned bytes) {
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;"
                     ::"r"(address()), "r"(bytes) : "memory");
    }

    // mbarrier.arrive.expect_tx: both in one.
    __device__ void arrive_expect_tx(unsigned bytes) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes) : "memory");
    }

    // ... of so many bytes as loads of these tiles (tile.cuh) deliver.
    template <typename Tile, typename... Tiles, unsigned Bytes = (Tile::tx_bytes() + ... + Tiles::tx_bytes())>
    __device__ void expect_tx(const Tile&, const Tiles&...) { expect_tx(Bytes); }
    template <typename Tile, typename... Tiles, unsigned Bytes = (Tile::tx_bytes() + ... + Tiles::tx_bytes())>
    __device__ void arrive_expect_tx(const Tile&, const Tiles&...) { arrive_expect_tx(Bytes); }

    // mbarrier.arrive: what this thread did to shared memory before is visible to those who wait.
    __device__ void arrive() { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory"); }

    // mapa, mbarrier.arrive: at the barrier that lies at this place in another CTA of the cluster, see wait_cluster().
    __device__ void arrive_at(unsigned cta_rank) {
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                     ::"r"(cluster_address(this, cta_rank)) : "memory");
    }

    // mapa: that barrier itself, for a copy that is to be counted there.
    __device__ ClusterBarrier in_cta(unsigned cta_rank) { return {cluster_address(this, cta_rank)}; }

    // mbarrier.try_wait.parity: has the phase completed? Sleeps meanwhile, up to a time that the hardware chooses ...
    __device__ bool try_wait(unsigned parity) const {
        unsigned complete;
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(complete) : "r"(address()), "r"(parity) : "memory");
        return complete;
    }

    // ... or up to a time that the caller suggests.
    __device__ bool try_wait(unsigned parity, unsigned suspend_hint_ns) const {
        unsigned complete;
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, %3; selp.u32 %0, 1, 0, p; }"
                     : "=r"(complete) : "r"(address()), "r"(parity), "r"(suspend_hint_ns) : "memory");
        return complete;
    }

    // Until the phase completes. Never returns if the bytes expected are not the bytes delivered.
    __device__ void wait(unsigned parity) const {
        while (!try_wait(parity)) continue;
    }

    // ... .acquire.cluster: what threads of other CTAs did before their arrive_at() is visible too.
    __device__ void wait_cluster(unsigned parity) const {
        unsigned complete;
        do {
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;"
                         "  selp.u32 %0, 1, 0, p; }" : "=r"(complete) : "r"(address()), "r"(parity) : "memory");
        } while (!complete);
    }
};

// ---- fences ----

// fence.proxy.async.shared::cta: ordinary writes to shared memory before it are seen by a store() after it. Each writer
// calls it before the __syncthreads() that precedes the store. ISA: "membar, fence", "Async proxy".
__device__ inline void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// fence.mbarrier_init: Barrier::init is seen by the TMA unit, and by the cluster after its next cluster_sync().
__device__ inline void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// ---- warp, cluster, grid ----

// elect.sync: true in one thread of a converged warp. ISA: "elect.sync".
__device__ inline bool elect_one() {
    unsigned elected;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xFFFFFFFF; selp.u32 %0, 1, 0, p; }" : "=r"(elected)::"memory");
    return elected;
}

// %cluster_ctarank: this CTA's number in its cluster, and its bit in a cta_mask. ISA: "Special Registers".
__device__ inline unsigned cluster_cta_rank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// barrier.cluster.arrive, barrier.cluster.wait: all threads of the cluster, each warp converged (.aligned): where it
// may not be, __syncwarp() first. ISA: "barrier.cluster".
__device__ inline void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;" ::: "memory");
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
