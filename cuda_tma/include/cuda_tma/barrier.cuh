// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/barrier.cuh: the mbarrier, on which threads wait for each other and for the TMA unit. Also includes
// fence.cuh (order of ordinary accesses and copies) and cluster.cuh (clusters, dependent grids).
#pragma once

#include <cuda_tma/address.cuh>
#include <cuda_tma/cluster.cuh>
#include <cuda_tma/fence.cuh>
#include <cuda_tma/watchdog.cuh>

namespace cuda_tma {

// elect.sync: true in one thread of a converged warp. ISA: "elect.sync".
__device__ inline bool elect_one() {
    unsigned elected;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xFFFFFFFF; selp.u32 %0, 1, 0, p; }" : "=r"(elected)::"memory");
    return elected;
}

// A barrier anywhere in the cluster, from Barrier::in_cta(). Threads wait for it in its own CTA by wait_cluster(), which
// makes the arriving thread's earlier writes visible to them.
struct ClusterBarrier {
    unsigned address_in_cluster;

    __device__ unsigned address() const { return address_in_cluster; }

    // mbarrier.arrive: `count` arrivals in one instruction.
    __device__ void arrive(unsigned count = 1) const {
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], %1;"
                     ::"r"(address()), "r"(count) : "memory");
    }

    // mbarrier.expect_tx.
    __device__ void expect_tx(unsigned bytes) const {
        asm volatile("mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;"
                     ::"r"(address()), "r"(bytes) : "memory");
    }

    // mbarrier.arrive.expect_tx: both in one instruction, for example for the other CTA of a pair that shares a barrier.
    __device__ void arrive_expect_tx(unsigned bytes) const {
        asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;"
                     ::"r"(address()), "r"(bytes) : "memory");
    }

    // mbarrier.arrive with the default .release.cta, which orders nothing for threads of other CTAs. Use it for a stage
    // that only the async proxy has read, by completed wgmmas or stores. With .release.cluster a GEMM took 1.65 times as
    // long (observed: driver 580, sm_90).
    __device__ void release_async_read() const {
        asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(address()) : "memory");
    }
};

// An mbarrier in shared memory. A phase completes when all arrivals and all expected bytes are in; then the next begins.
// Phases are numbered 0, 1, 2, ...; a wait names the parity (0 or 1) of its phase. ISA: "mbarrier".
struct Barrier {
    unsigned long long state;

    // A copy would be a barrier in registers or local memory. (The deprecation prints the reason.)
    Barrier() = default;
    [[deprecated("a Barrier must stay in shared memory: pass it as Barrier&")]]
    Barrier(const Barrier&) = delete;
    Barrier& operator=(const Barrier&) = delete;

    __device__ unsigned address() const { return smem_address(this); }

    // mbarrier.init. Follow with fence_barrier_init() and a __syncthreads().
    __device__ void init(unsigned arrivals) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
    }

    // mbarrier.inval: required before another use of the memory.
    __device__ void invalidate() { asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(address()) : "memory"); }

    // mbarrier.expect_tx: adds `bytes` to the bytes of the phase (tx_bytes of the descriptor). Does not arrive.
    __device__ void expect_tx(unsigned bytes) {
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;"
                     ::"r"(address()), "r"(bytes) : "memory");
    }

    // mbarrier.arrive.expect_tx: both in one instruction.
    __device__ void arrive_expect_tx(unsigned bytes) {
        CUDA_TMA_NOTE_EXPECTED(this, bytes)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes) : "memory");
    }

    // ... with the bytes of loads of these tiles (tile.cuh).
    template <typename Tile, typename... Tiles, unsigned Bytes = (Tile::tx_bytes() + ... + Tiles::tx_bytes())>
    __device__ void expect_tx(const Tile&, const Tiles&...) { expect_tx(Bytes); }
    template <typename Tile, typename... Tiles, unsigned Bytes = (Tile::tx_bytes() + ... + Tiles::tx_bytes())>
    __device__ void arrive_expect_tx(const Tile&, const Tiles&...) { arrive_expect_tx(Bytes); }

    // mbarrier.arrive: makes this thread's earlier writes to shared memory visible to the waiting threads.
    __device__ void arrive() { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory"); }

    // ... for `count` threads that have already synchronized with this one.
    __device__ void arrive(unsigned count) {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(count) : "memory");
    }

    // mapa: the barrier at the same offset in a CTA of the cluster, for arrivals there, or for copies that count bytes
    // there.
    __device__ ClusterBarrier in_cta(unsigned cta_rank) { return {cluster_address(this, cta_rank)}; }

    // mapa, mbarrier.arrive: arrives at that barrier; see wait_cluster().
    __device__ void arrive_at(unsigned cta_rank) {
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                     ::"r"(cluster_address(this, cta_rank)) : "memory");
    }

    // mbarrier.try_wait.parity: whether the phase has completed. May suspend the thread for a hardware time limit ...
    __device__ bool try_wait(unsigned parity) const {
        unsigned complete;
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(complete) : "r"(address()), "r"(parity) : "memory");
        return complete;
    }

    // ... or up to a suggested time.
    __device__ bool try_wait(unsigned parity, unsigned suspend_hint_ns) const {
        unsigned complete;
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, %3; selp.u32 %0, 1, 0, p; }"
                     : "=r"(complete) : "r"(address()), "r"(parity), "r"(suspend_hint_ns) : "memory");
        return complete;
    }

    // Waits until the phase completes: forever, if expected and copied bytes differ (watchdog.cuh reports that).
    __device__ void wait(unsigned parity CUDA_TMA_SITE) const {
        CUDA_TMA_WAIT_UNTIL(try_wait(parity), this, parity)
    }

    // ... .acquire.cluster: also makes visible the writes of threads of other CTAs before their arrivals.
    __device__ bool try_wait_cluster(unsigned parity) const {
        unsigned complete;
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;"
                     "  selp.u32 %0, 1, 0, p; }" : "=r"(complete) : "r"(address()), "r"(parity) : "memory");
        return complete;
    }
    __device__ void wait_cluster(unsigned parity CUDA_TMA_SITE) const {
        CUDA_TMA_WAIT_UNTIL(try_wait_cluster(parity), this, parity)
    }
};

}  // namespace cuda_tma
