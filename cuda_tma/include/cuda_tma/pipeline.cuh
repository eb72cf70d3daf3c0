// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/pipeline.cuh: a ring of tiles in shared memory, between one thread that loads and others that read.
//
//     __shared__ Pipeline<4> pipeline;
//     if (threadIdx.x == 0) pipeline.init(consumers);    // threads that will call release()
//     __syncthreads();                                   // nobody waits on a barrier that is not yet initialised
//     if (producer) {
//         for (Stage<4> at; ...; at.next()) load(tile[at.index], map, pipeline.acquire(at, sizeof(tile[0])), ...);
//     } else {
//         for (Stage<4> at; ...; at.next()) { pipeline.wait(at); ... tile[at.index] ...; pipeline.release(at); }
//     }
//
// Each side walks the ring with a Stage of its own, and both visit the same number of stages in the same order.
#pragma once

#include <cuda_tma/tma.cuh>

namespace cuda_tma {

// A place in the ring: 0, 1, ..., Count - 1, 0, ... The parity, 0 or 1, is that of the round.
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
    Barrier full[Count];   // a phase completes when the bytes are in: what consumers wait for
    Barrier empty[Count];  // a phase completes when all consumers are through: what producers wait for

    // By one thread; a __syncthreads() follows, or in a cluster, where others arrive here, a cluster_sync(). For each
    // stage: `consumers` threads call release(), or release_async_read(), those of all CTAs that read what is loaded
    // here or there by multicast; and `producers` arrive at `full`: acquire() of one thread, or of several.
    __device__ void init(unsigned consumers, unsigned producers = 1) {
        for (int i = 0; i < Count; ++i) {
            full[i].init(producers);
            empty[i].init(consumers);
        }
        fence_barrier_init();
    }

    // ---- producers ----

    // Once the stage is free: its barrier. For who writes it by ordinary stores, and then says full.arrive(); a copy's
    // bytes have to be expected. In the first round a stage is free from the start: the parity is then 1, that of the
    // phase before the first, which counts as complete. ISA: "mbarrier.test_wait, mbarrier.try_wait".
    __device__ Barrier& acquire(Stage<Count> at CUDA_TMA_SITE) {
        empty[at.index].wait(at.parity ^ 1 CUDA_TMA_OF_STAGE(false, at.index));
        return full[at.index];
    }

#ifndef CUDA_TMA_WATCHDOG_MS

    // ... for copies of so many bytes in all. `is_free` is what try_acquire() said of this stage, a while before.
    __device__ Barrier& acquire(Stage<Count> at, unsigned bytes, bool is_free = false) {
        if (!is_free) acquire(at);
        full[at.index].arrive_expect_tx(bytes);
        return full[at.index];
    }

    // ... for loads of these tiles (tile.cuh).
    template <typename Tile, typename... Tiles, unsigned Bytes = (Tile::tx_bytes() + ... + Tiles::tx_bytes())>
    __device__ Barrier& acquire(Stage<Count> at, const Tile&, const Tiles&...) {
        return acquire(at, Bytes);
    }

#else

    // Both in one: where a template's arguments are worked out to choose among functions, NVRTC 13.0 takes the line of
    // that for the line of the call.
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

    // Is the stage free? Asked early, the answer is there when it is needed.
    __device__ bool try_acquire(Stage<Count> at) const { return empty[at.index].try_wait(at.parity ^ 1); }

    // As acquire(), where threads of other CTAs release by release(at, cta_rank): .acquire.cluster.
    __device__ Barrier& acquire_cluster(Stage<Count> at, unsigned bytes CUDA_TMA_SITE) {
        empty[at.index].wait_cluster(at.parity ^ 1 CUDA_TMA_OF_STAGE(false, at.index));
        full[at.index].arrive_expect_tx(bytes);
        return full[at.index];
    }

    // At the end: until all that was loaded has been released, and nobody arrives here any more. `at` is the stage that
    // would be next.
    __device__ void drain(Stage<Count> at CUDA_TMA_SITE) const {
        for (int i = 0; i < Count; ++i, at.next())
            empty[at.index].wait(at.parity ^ 1 CUDA_TMA_OF_STAGE(false, at.index));
    }

    // ---- consumers ----

    // Until the bytes are in and visible to this thread; `is_full` is what try_wait() said of this stage.
    __device__ void wait(Stage<Count> at, bool is_full = false CUDA_TMA_SITE) const {
        if (!is_full) full[at.index].wait(at.parity CUDA_TMA_OF_STAGE(true, at.index));
    }

    // Are they in?
    __device__ bool try_wait(Stage<Count> at) const { return full[at.index].try_wait(at.parity); }

    // This thread has read by ordinary loads what it needs, and the stage may be overwritten. By a copy, thus through
    // another proxy: the arrival alone does not order it after the reads (fence.cuh). Threads of a warp that come here
    // together share one fence, and one instruction that arrives for each of them.
    __device__ void release(Stage<Count> at) {
        const unsigned threads = together(at);
        if (threads == 0) return;
        fence_proxy_async();
        empty[at.index].arrive(threads);
    }

    // ... at the stage of a CTA of the cluster that fills it here, see acquire_cluster(). For each such CTA.
    __device__ void release(Stage<Count> at, unsigned cta_rank) {
        const unsigned threads = together(at);
        if (threads == 0) return;
        fence_proxy_async();
        empty[at.index].in_cta(cta_rank).arrive(threads);
    }

    // ... where it is overwritten by ordinary stores, or st.async: there is no other proxy, and no fence.
    __device__ void release_generic(Stage<Count> at) {
        if (const unsigned threads = together(at)) empty[at.index].arrive(threads);
    }
    __device__ void release_generic(Stage<Count> at, unsigned cta_rank) {
        if (const unsigned threads = together(at)) empty[at.index].in_cta(cta_rank).arrive(threads);
    }

    // The same without a fence, and an arrival of each thread that calls it: right where the stage was read through the
    // async proxy alone, by wgmmas (wgmma_wait) or stores (wait_group_read) that were waited for.
    __device__ void release_async_read(Stage<Count> at) { empty[at.index].arrive(); }

    // ... at the stage of a CTA of the cluster. For each, a thread: if (thread < CTAS) release_async_read(at, thread).
    __device__ void release_async_read(Stage<Count> at, unsigned cta_rank) {
        empty[at.index].in_cta(cta_rank).release_async_read();
    }

private:
    // How many threads of the warp release this stage here and now, in the first of them; 0 in the others. Threads that
    // left each other earlier may meet here at different stages, which are then told apart.
    __device__ static unsigned together(Stage<Count> at) {
        const unsigned here = __match_any_sync(__activemask(), at.index);
        unsigned lanes_before;
        asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lanes_before));
        __syncwarp(here);   // their reads come before what the first does
        return here & lanes_before ? 0 : __popc(here);
    }
};

}  // namespace cuda_tma
