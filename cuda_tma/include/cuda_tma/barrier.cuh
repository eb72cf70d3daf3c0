// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/barrier.cuh: the mbarrier, by which threads wait for each other and for the TMA unit. Beside it, and
// included: fence.cuh (between ordinary accesses and copies), cluster.cuh (CTAs that run together, dependent grids).
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

// A barrier anywhere in the cluster: made by Barrier::in_cta(). Who waits for it does so in its own CTA, by
// wait_cluster(): then what this thread did before it arrived is visible there.
struct ClusterBarrier {
    unsigned address_in_cluster;

    __device__ unsigned address() const { return address_in_cluster; }

    // mbarrier.arrive: so many arrivals in one.
    __device__ void arrive(unsigned count = 1) const {
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], %1;"
                     ::"r"(address()), "r"(count) : "memory");
    }

    // mbarrier.expect_tx.
    __device__ void expect_tx(unsigned bytes) const {
        asm volatile("mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;"
                     ::"r"(address()), "r"(bytes) : "memory");
    }

    // mbarrier.arrive.expect_tx: both in one, as for the other CTA of a pair that shares a barrier.
    __device__ void arrive_expect_tx(unsigned bytes) const {
        asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;"
                     ::"r"(address()), "r"(bytes) : "memory");
    }

    // mbarrier.arrive, which orders nothing for threads of other CTAs (.release.cta, the default): right for a stage
    // that the async proxy alone has read, by wgmmas or stores that were waited for. With .release.cluster a GEMM took
    // 1.65 times as long (observed: driver 580, sm_90).
    __device__ void release_async_read() const {
        asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(address()) : "memory");
    }
};

// An mbarrier in shared memory: a phase completes when all arrivals and all expected bytes are in, and the next begins.
// Phases count 0, 1, 2, ...; a wait names the parity (0 or 1) of the phase that it waits for. ISA: "mbarrier".
struct Barrier {
    unsigned long long state;

    // A copy would be a barrier in registers or local memory. (Deprecated, so that it is said.)
    Barrier() = default;
    [[deprecated("threads meet at a Barrier where it lies: take it as Barrier&")]]
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
        CUDA_TMA_NOTE_EXPECTED(this, bytes)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes) : "memory");
    }

    // ... of so many bytes as loads of these tiles (tile.cuh) deliver.
    template <typename Tile, typename... Tiles, unsigned Bytes = (Tile::tx_bytes() + ... + Tiles::tx_bytes())>
    __device__ void expect_tx(const Tile&, const Tiles&...) { expect_tx(Bytes); }
    template <typename Tile, typename... Tiles, unsigned Bytes = (Tile::tx_bytes() + ... + Tiles::tx_bytes())>
    __device__ void arrive_expect_tx(const Tile&, const Tiles&...) { arrive_expect_tx(Bytes); }

    // mbarrier.arrive: what this thread did to shared memory before is visible to those who wait.
    __device__ void arrive() { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory"); }

    // ... for so many threads, which were waited for.
    __device__ void arrive(unsigned count) {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(count) : "memory");
    }

    // mapa: the barrier that lies at this place in another CTA of the cluster, or in this one: to arrive there, or for
    // a copy that is to be counted there.
    __device__ ClusterBarrier in_cta(unsigned cta_rank) { return {cluster_address(this, cta_rank)}; }

    // mapa, mbarrier.arrive: at that barrier, see wait_cluster().
    __device__ void arrive_at(unsigned cta_rank) {
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                     ::"r"(cluster_address(this, cta_rank)) : "memory");
    }

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

    // Until the phase completes. Never returns if the bytes expected are not the bytes delivered: watchdog.cuh says so.
    __device__ void wait(unsigned parity CUDA_TMA_SITE) const {
        CUDA_TMA_WAIT_UNTIL(try_wait(parity), this, parity)
    }

    // ... .acquire.cluster: what threads of other CTAs did before they arrived is visible too.
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
