// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/mainloop.cuh: the products of the tiles in a ring, by warpgroups: one step of K is always in progress.
//
//     float sums[128];
//     accumulate(sums, ring, at, steps, [&](int stage, int step) {
//         for (int k = 0; k < 64; k += 16)
//             wgmma(sums, k_major(shared.a[stage], 0, k), k_major(shared.b[stage], 0, k), step + k > 0);
//     }, [&] { out.store_next(); });
//
// The producer loops over the same steps, and loads into ring.acquire(at, tiles...).
#pragma once

#include <cuda_tma/pipeline.cuh>
#include <cuda_tma/wgmma.cuh>

namespace cuda_tma {

// Sums the products of `steps` stages, 1 or more. multiply(stage, step) issues the wgmmas of a stage; the first of step
// 0 overwrites the sums. A stage is released when its wgmmas are complete, while those of the next stage run: with one
// arrival of the warpgroup at each of `Ctas` CTAs from `first_cta` on, so use ring.init(warpgroups * Ctas). In each
// step meanwhile() does other work while the tensor cores compute. All 128 threads of a warpgroup call it together. At
// the end they may read the sums, and `at` is the stage after the last.
//
// Declare sums that are overwritten before the loop over tiles, and initialize them once: `float sums[128] = {};`.
// NVRTC 12 moves uninitialized sums within the loop; ptxas then serializes the wgmmas (C7515), or has too few
// registers. Sums that start at zero in each tile, so that every step adds, cost some hundred cycles.
template <int Ctas = 1, int Sums, int Stages, typename Multiply, typename Meanwhile>
__device__ __forceinline__ void accumulate(float (&sums)[Sums], Pipeline<Stages>& ring, Stage<Stages>& at, int steps,
                                           Multiply multiply, Meanwhile meanwhile,
                                           unsigned first_cta = 0 CUDA_TMA_SITE) {
    const unsigned thread = threadIdx.x % 128;
    pin(sums);   // instructions that wrote them precede the first fence, as the ISA requires
    Stage<Stages> before;
    for (int step = 0; step < steps; ++step, at.next()) {
        ring.wait(at, false CUDA_TMA_HERE);
        wgmma_fence();   // other instructions may have read or written the sums before
        multiply(at.index, step);
        wgmma_commit();
        wgmma_wait<1>();   // this step continues; the preceding one is complete, and its stage has been read
        if (step > 0 && thread < Ctas) ring.release_async_read(before, first_cta + thread);
        before = at;
        meanwhile();   // after the release, which producers wait for
    }
    wgmma_wait<0>(sums);
    if (thread < Ctas) ring.release_async_read(before, first_cta + thread);
}

}  // namespace cuda_tma
