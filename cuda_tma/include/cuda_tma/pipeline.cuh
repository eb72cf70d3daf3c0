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
    Barrier empty[Count];  // a phase completes when all consumers are through: what the producer waits for

    // By one thread; a __syncthreads() follows. `consumers` is how often release() is called for each stage.
    __device__ void init(unsigned consumers) {
        for (int i = 0; i < Count; ++i) {
            full[i].init(1);  // acquire() arrives once
            empty[i].init(consumers);
        }
        fence_barrier_init();
    }

    // Producer: the barrier for loads of so many bytes in all, once the stage is free. In the first round it is free
    // from the start: the parity is then 1, that of the phase before the first, which counts as complete.
    // ISA: "mbarrier.test_wait, mbarrier.try_wait".
    __device__ Barrier& acquire(Stage<Count> at, unsigned bytes) {
        empty[at.index].wait(at.parity ^ 1);
        full[at.index].arrive_expect_tx(bytes);
        return full[at.index];
    }

    // ... for loads of these tiles (tile.cuh).
    template <typename Tile, typename... Tiles, unsigned Bytes = (Tile::tx_bytes() + ... + Tiles::tx_bytes())>
    __device__ Barrier& acquire(Stage<Count> at, const Tile&, const Tiles&...) {
        return acquire(at, Bytes);
    }

    // Consumer: until the bytes are in and visible to this thread.
    __device__ void wait(Stage<Count> at) const { full[at.index].wait(at.parity); }

    // Consumer: this thread has read what it needs, and the stage may be overwritten. The arrival orders reads before
    // the next load; there is no proxy fence, as nothing that was written in between has to become visible.
    __device__ void release(Stage<Count> at) { empty[at.index].arrive(); }
};

}  // namespace cuda_tma
