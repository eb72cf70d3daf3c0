// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/mainloop.cuh: the loop in which warpgroups multiply the tiles of a ring. At any time, the wgmmas of one step
// of K are in progress.
//
//     float sums[128];
//     accumulate(sums, ring, at, steps, [&](int stage, int step) {
//         for (int k = 0; k < 64; k += 16)
//             wgmma(sums, k_major(shared.a[stage], 0, k), k_major(shared.b[stage], 0, k), step + k > 0);
//     }, [&] { out.store_next(); });
//
// The producer loops over the same steps, and passes ring.acquire(at, tiles...) to its loads.
#pragma once

#include <cuda_tma/pipeline.cuh>
#include <cuda_tma/wgmma.cuh>

namespace cuda_tma {

// Sums the products of `steps` stages, 1 or more. multiply(stage, step) issues the wgmmas of a stage; the first wgmma
// of step 0 overwrites the sums. The loop releases a stage after its wgmmas are complete, while the wgmmas of the next
// stage run. To release a stage, the warpgroup arrives once at each of `Ctas` CTAs from `first_cta` on, so initialize
// the ring with ring.init(warpgroups * Ctas). In each step meanwhile() executes other work while the tensor cores
// compute. All 128 threads of a warpgroup call accumulate() together. After the call, the threads may read the sums,
// and `at` is the stage after the last.
//
// Declare the sums before the loop over tiles, and initialize them once: `float sums[128] = {};`. NVRTC 12
// copies uninitialized sums between registers in the loop. Then ptxas serializes the wgmmas (C7515), or has
// too few registers. If each tile sets its sums to zero and every step adds, a tile takes several hundred
// cycles more.
template <int Ctas = 1, typename Sum, int Count, int Stages, typename Multiply, typename Meanwhile>
__device__ __forceinline__ void accumulate(Sum (&sums)[Count], Pipeline<Stages>& ring, Stage<Stages>& at, int steps,
                                           Multiply multiply, Meanwhile meanwhile,
                                           unsigned first_cta = 0 CUDA_TMA_SITE) {
    const unsigned thread = threadIdx.x % 128;
    pin(sums);   // the first fence must follow the instructions that wrote the sums (ISA)
    Stage<Stages> before;
    for (int step = 0; step < steps; ++step, at.next()) {
        ring.wait(at, false CUDA_TMA_HERE);
        wgmma_fence();   // other instructions may have accessed the sums before this fence
        multiply(at.index, step);
        wgmma_commit();
        wgmma_wait<1>();   // the preceding step is complete, and its stage has been read
        if (step > 0 && thread < Ctas) ring.release_async_read(before, first_cta + thread);
        before = at;
        meanwhile();   // follows the release, because producers wait for the release
    }
    wgmma_wait<0>(sums);
    if (thread < Ctas) ring.release_async_read(before, first_cta + thread);
}

}  // namespace cuda_tma
