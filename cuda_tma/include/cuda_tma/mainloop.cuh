// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/mainloop.cuh: how warpgroups multiply what a ring brings them: one step of K is always under way.
//
//     float sums[128];
//     accumulate(sums, ring, at, steps, [&](int stage, int step) {
//         for (int k = 0; k < 64; k += 16)
//             wgmma(sums, k_major(shared.a[stage], 0, k), k_major(shared.b[stage], 0, k), step + k > 0);
//     }, [&] { out.store_next(); });
//
// The producer's side is a loop over the same steps, that loads into ring.acquire(at, tiles...).
#pragma once

#include <cuda_tma/pipeline.cuh>
#include <cuda_tma/wgmma.cuh>

namespace cuda_tma {

// The sums of `steps` stages, 1 or more: of each, multiply(stage, step) says its wgmmas, of which the first of step 0
// overwrites the sums. A stage is released when its wgmmas are done, which is while those of the next go on: by one
// arrival for the warpgroup at each of `Ctas` CTAs, so that ring.init(warpgroups * Ctas): those of the cluster from
// `first_cta` on. meanwhile() is what else there is to do in each step, while the tensor cores are busy. All 128 threads
// of a warpgroup call it together; in the end the sums are theirs to read, and `at` is the stage after the last.
//
// Sums that are overwritten best live across the tiles, set once: `float sums[128] = {};` before the loop over tiles.
// Those that no one has set are moved about inside it by NVRTC 12, and ptxas then has each wgmma wait for the one before
// (C7515), or lacks registers. Zeros for each tile, to which every step adds, cost some hundred cycles.
template <int Ctas = 1, int Sums, int Stages, typename Multiply, typename Meanwhile>
__device__ __forceinline__ void accumulate(float (&sums)[Sums], Pipeline<Stages>& ring, Stage<Stages>& at, int steps,
                                           Multiply multiply, Meanwhile meanwhile,
                                           unsigned first_cta = 0 CUDA_TMA_SITE) {
    const unsigned thread = threadIdx.x % 128;
    pin(sums);   // what set them is before the first fence, where the ISA wants it
    Stage<Stages> before;
    for (int step = 0; step < steps; ++step, at.next()) {
        ring.wait(at, false CUDA_TMA_HERE);
        wgmma_fence();   // before this, other instructions may have read or set the sums
        multiply(at.index, step);
        wgmma_commit();
        wgmma_wait<1>();   // this step goes on; the one before is done, and its stage has been read
        if (step > 0 && thread < Ctas) ring.release_async_read(before, first_cta + thread);
        before = at;
        meanwhile();   // after the release, which producers wait for
    }
    wgmma_wait<0>(sums);
    if (thread < Ctas) ring.release_async_read(before, first_cta + thread);
}

}  // namespace cuda_tma
