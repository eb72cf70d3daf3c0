// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/pipeline.cuh: a ring of tiles in shared memory, which one thread loads and other threads read.
//
//     __shared__ Pipeline<4> pipeline;
//     if (threadIdx.x == 0) pipeline.init(consumers);    // threads that will call release()
//     __syncthreads();                                   // no thread waits before the init
//     if (producer) {
//         for (Stage<4> at; ...; at.next()) load(tile[at.index], map, pipeline.acquire(at, sizeof(tile[0])), ...);
//     } else {
//         for (Stage<4> at; ...; at.next()) { pipeline.wait(at); ... tile[at.index] ...; pipeline.release(at); }
//     }
//
// The producer and each consumer have a Stage of their own, and visit the same number of stages in the same order.
#pragma once

#include <cuda_tma/tma.cuh>

namespace cuda_tma {

// A position in the ring: 0, 1, ..., Count - 1, 0, ..., with the parity (0 or 1) of its round.
template <int Count>
struct Stage {
    int index = 0;
    unsigned parity = 0;

    __device__ constexpr void next() {
        if (++index < Count) return;
        index = 0;
        parity ^= 1;
    }
};

template <int Count>
struct Pipeline {
    Barrier full[Count];   // a phase completes after all bytes arrived; consumers wait for it
    Barrier empty[Count];  // a phase completes when all consumers have released; producers wait for it

    // Call init() in one thread, followed by __syncthreads(), or by cluster_sync() if other CTAs arrive here.
    // `consumers` is the number of threads that release each stage, in all CTAs that read it (with a multicast load,
    // several CTAs). `producers` is the number of threads that call acquire() and arrive at `full`.
    __device__ void init(unsigned consumers, unsigned producers = 1) {
        for (int i = 0; i < Count; ++i) {
            full[i].init(producers);
            empty[i].init(consumers);
        }
        fence_barrier_init();
    }

    // ---- producers ----

    // Waits until the stage is free, and returns its full barrier. The producer then writes with ordinary stores and
    // calls full.arrive(). In the first round each stage is free, because the wait specifies parity 1, and the phase
    // before the first counts as complete. ISA: "mbarrier.test_wait, mbarrier.try_wait".
    __device__ Barrier& acquire(Stage<Count> at CUDA_TMA_SITE) {
        empty[at.index].wait(at.parity ^ 1 CUDA_TMA_OF_STAGE(false, at.index));
        return full[at.index];
    }

#ifndef CUDA_TMA_WATCHDOG_MS

    // Waits until the stage is free, expects `bytes` on its full barrier and arrives. `bytes` is the total of the
    // copies into this stage, and `is_free` is an earlier result of try_acquire().
    __device__ Barrier& acquire(Stage<Count> at, unsigned bytes, bool is_free = false) {
        if (!is_free) acquire(at);
        full[at.index].arrive_expect_tx(bytes);
        return full[at.index];
    }

    // Acquires the stage like acquire(at, bytes), with the number of bytes that loads of these tiles (tile.cuh) write.
    template <typename Tile, typename... Tiles, unsigned Bytes = (Tile::tx_bytes() + ... + Tiles::tx_bytes())>
    __device__ Barrier& acquire(Stage<Count> at, const Tile&, const Tiles&...) {
        return acquire(at, Bytes);
    }

#else

    // This function replaces both overloads. To choose between overloads, NVRTC 13.0 deduces template arguments, and
    // then reports a wrong line as the line of the call.
    template <typename First, typename... Others>
    __device__ Barrier& acquire(Placed<Stage<Count>> placed, const First& first, const Others&... others) {
        const Stage<Count> at = placed;
        if constexpr (__is_class(First)) {
            acquire(at, placed.site);
            full[at.index].arrive_expect_tx((First::tx_bytes() + ... + Others::tx_bytes()));
        } else {
            const bool is_free = (false || ... || bool(others));
            if (!is_free) acquire(at, placed.site);
            full[at.index].arrive_expect_tx(first);
        }
        return full[at.index];
    }

#endif

    // Returns whether the stage is free. Call try_acquire() early to hide the latency.
    __device__ bool try_acquire(Stage<Count> at) const { return empty[at.index].try_wait(at.parity ^ 1); }

    // Acquires a stage that threads of other CTAs release with release(at, cta_rank). The wait has the qualifier
    // .acquire.cluster.
    __device__ Barrier& acquire_cluster(Stage<Count> at, unsigned bytes CUDA_TMA_SITE) {
        empty[at.index].wait_cluster(at.parity ^ 1 CUDA_TMA_OF_STAGE(false, at.index));
        full[at.index].arrive_expect_tx(bytes);
        return full[at.index];
    }

    // Waits until all loaded stages are released, so that no arrival follows the end of the CTA. `at` is the stage
    // after the last.
    __device__ void drain(Stage<Count> at CUDA_TMA_SITE) const {
        for (int i = 0; i < Count; ++i, at.next())
            empty[at.index].wait(at.parity ^ 1 CUDA_TMA_OF_STAGE(false, at.index));
    }

    // ---- consumers ----

    // Waits until all bytes of the stage have arrived and are visible to this thread. `is_full` is an earlier result of
    // try_wait().
    __device__ void wait(Stage<Count> at, bool is_full = false CUDA_TMA_SITE) const {
        if (!is_full) full[at.index].wait(at.parity CUDA_TMA_OF_STAGE(true, at.index));
    }

    // Returns whether all bytes of the stage have arrived.
    __device__ bool try_wait(Stage<Count> at) const { return full[at.index].try_wait(at.parity); }

    // Releases the stage after this thread's ordinary loads, so that a copy may overwrite the stage. The copy uses
    // another proxy, so this function also executes a fence, which orders the copy after the loads (fence.cuh). Threads
    // of a warp that call this function together execute one fence and one arrive instruction.
    __device__ void release(Stage<Count> at) {
        const unsigned threads = together(at);
        if (threads == 0) return;
        fence_proxy_async();
        empty[at.index].arrive(threads);
    }

    // Releases the stage in another CTA, whose copies fill the stage of this CTA; see acquire_cluster(). Call this
    // function for each such CTA.
    __device__ void release(Stage<Count> at, unsigned cta_rank) {
        const unsigned threads = together(at);
        if (threads == 0) return;
        fence_proxy_async();
        empty[at.index].in_cta(cta_rank).arrive(threads);
    }

    // Releases a stage that ordinary stores or st.async overwrite. Such stores use the same proxy as the loads, so they
    // need no fence.
    __device__ void release_generic(Stage<Count> at) {
        if (const unsigned threads = together(at)) empty[at.index].arrive(threads);
    }
    __device__ void release_generic(Stage<Count> at, unsigned cta_rank) {
        if (const unsigned threads = together(at)) empty[at.index].in_cta(cta_rank).arrive(threads);
    }

    // Releases a stage whose only readers are completed wgmmas (wgmma_wait) or stores (wait_group_read). These reads
    // use the async proxy, so no fence is needed. Each calling thread arrives once.
    __device__ void release_async_read(Stage<Count> at) { empty[at.index].arrive(); }

    // Releases such a stage in another CTA. Call this function in one thread for each CTA: if (thread < CTAS)
    // release_async_read(at, thread).
    __device__ void release_async_read(Stage<Count> at, unsigned cta_rank) {
        empty[at.index].in_cta(cta_rank).release_async_read();
    }

private:
    // Counts the threads of the warp that release this stage together. The first of these threads receives the count,
    // and the others receive 0. Divergent threads may pass different stages; each stage has its own count.
    __device__ static unsigned together(Stage<Count> at) {
        const unsigned here = __match_any_sync(__activemask(), at.index);
        unsigned lanes_before;
        asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lanes_before));
        __syncwarp(here);   // orders the reads of these threads before the arrival
        return here & lanes_before ? 0 : __popc(here);
    }
};

}  // namespace cuda_tma
