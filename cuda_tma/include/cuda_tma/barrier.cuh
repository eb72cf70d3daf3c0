// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/barrier.cuh: the mbarrier, on which threads wait for other threads and for the TMA unit. This header
// includes fence.cuh (fences between ordinary accesses and copies) and cluster.cuh (clusters, dependent grids).
#pragma once

#include <cuda_tma/address.cuh>
#include <cuda_tma/cluster.cuh>
#include <cuda_tma/fence.cuh>
#include <cuda_tma/watchdog.cuh>

namespace cuda_tma {

// elect.sync: returns true in one thread of a converged warp. ISA: "elect.sync".
__device__ inline bool elect_one() {
    unsigned elected;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xFFFFFFFF; selp.u32 %0, 1, 0, p; }" : "=r"(elected)::"memory");
    return elected;
}

// A barrier in any CTA of the cluster, which Barrier::in_cta() returns. Only threads of the barrier's own CTA wait for
// it. Waiting threads call wait_cluster(), which makes earlier writes of the arriving threads visible.
struct ClusterBarrier {
    unsigned address_in_cluster;

    __device__ unsigned address() const { return address_in_cluster; }

    // mbarrier.arrive: arrives `count` times in one instruction.
    __device__ void arrive(unsigned count = 1) const {
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], %1;"
                     ::"r"(address()), "r"(count) : "memory");
    }

    // mbarrier.expect_tx.
    __device__ void expect_tx(unsigned bytes) const {
        asm volatile("mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;"
                     ::"r"(address()), "r"(bytes) : "memory");
    }

    // mbarrier.arrive.expect_tx: expects `bytes` and arrives in one instruction, for example when a CTA pair shares a
    // barrier.
    __device__ void arrive_expect_tx(unsigned bytes) const {
        asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;"
                     ::"r"(address()), "r"(bytes) : "memory");
    }

    // mbarrier.arrive: arrives with the default .release.cta, which does not order this thread's accesses for threads
    // of other CTAs. Use this arrival to release a stage whose only readers are completed wgmmas or stores. With
    // .release.cluster, a GEMM took 1.65 times as long (observed: driver 580, sm_90).
    __device__ void release_async_read() const {
        asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(address()) : "memory");
    }
};

// An mbarrier in shared memory. A phase completes after all arrivals and all expected bytes; then the next phase
// begins. Phases are numbered 0, 1, 2, and so on. A wait specifies the parity (0 or 1) of its phase. ISA: "mbarrier".
struct Barrier {
    unsigned long long state;

    // A copy of a Barrier would be in registers or local memory. For such a copy, the compiler prints this reason.
    Barrier() = default;
    [[deprecated("a Barrier must stay in shared memory: pass it as Barrier&")]]
    Barrier(const Barrier&) = delete;
    Barrier& operator=(const Barrier&) = delete;

    __device__ unsigned address() const { return smem_address(this); }

    // mbarrier.init: initializes the barrier. Call fence_barrier_init() and __syncthreads() afterwards.
    __device__ void init(unsigned arrivals) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
    }

    // mbarrier.inval: ends the barrier. Call invalidate() before another use of the memory.
    __device__ void invalidate() { asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(address()) : "memory"); }

    // mbarrier.expect_tx: adds `bytes` to the bytes that the phase expects (tx_bytes of the descriptor). This function
    // does not arrive.
    __device__ void expect_tx(unsigned bytes) {
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;"
                     ::"r"(address()), "r"(bytes) : "memory");
    }

    // mbarrier.arrive.expect_tx: expects `bytes` and arrives in one instruction.
    __device__ void arrive_expect_tx(unsigned bytes) {
        CUDA_TMA_NOTE_EXPECTED(this, bytes)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes) : "memory");
    }

    // Arrives, and expects the bytes that loads into these tiles (tile.cuh) write.
    template <typename Tile, typename... Tiles, unsigned Bytes = (Tile::tx_bytes() + ... + Tiles::tx_bytes())>
    __device__ void expect_tx(const Tile&, const Tiles&...) { expect_tx(Bytes); }
    template <typename Tile, typename... Tiles, unsigned Bytes = (Tile::tx_bytes() + ... + Tiles::tx_bytes())>
    __device__ void arrive_expect_tx(const Tile&, const Tiles&...) { arrive_expect_tx(Bytes); }

    // mbarrier.arrive: makes this thread's earlier writes to shared memory visible to the waiting threads.
    __device__ void arrive() { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory"); }

    // Arrives `count` times, for threads that have already synchronized with this thread.
    __device__ void arrive(unsigned count) {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(count) : "memory");
    }

    // mapa: returns the barrier that has the same offset in CTA `cta_rank` of the cluster. Threads may arrive on the
    // returned barrier, and copies may count bytes on it.
    __device__ ClusterBarrier in_cta(unsigned cta_rank) { return {cluster_address(this, cta_rank)}; }

    // mapa, mbarrier.arrive: arrives on the barrier that has the same offset in another CTA; see wait_cluster().
    __device__ void arrive_at(unsigned cta_rank) {
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                     ::"r"(cluster_address(this, cta_rank)) : "memory");
    }

    // mbarrier.try_wait.parity: returns whether the phase has completed. The instruction may suspend the thread up to a
    // time limit of the hardware.
    __device__ bool try_wait(unsigned parity) const {
        unsigned complete;
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(complete) : "r"(address()), "r"(parity) : "memory");
        return complete;
    }

    // Does the same as try_wait(parity), but suspends the thread for at most about the suggested time.
    __device__ bool try_wait(unsigned parity, unsigned suspend_hint_ns) const {
        unsigned complete;
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, %3; selp.u32 %0, 1, 0, p; }"
                     : "=r"(complete) : "r"(address()), "r"(parity), "r"(suspend_hint_ns) : "memory");
        return complete;
    }

    // Waits until the phase completes. The wait never ends if the expected and the copied bytes differ; watchdog.cuh
    // reports such a wait.
    __device__ void wait(unsigned parity CUDA_TMA_SITE) const {
        CUDA_TMA_WAIT_UNTIL(try_wait(parity), this, parity)
    }

    // mbarrier.try_wait.acquire.cluster: waits like wait(), and also makes visible the writes that threads of other
    // CTAs made before they arrived.
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
