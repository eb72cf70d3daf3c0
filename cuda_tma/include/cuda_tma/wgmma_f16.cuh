// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/wgmma_f16.cuh: wgmma with f16 sums, two in each `unsigned`. The operands are f16, or any combination of e4m3
// and e5m2. The sums need half the registers of f32 sums.
//
//     unsigned sums[128 / 4];                                       // of a 64 x 128 tile, the first in the lower half
//     wgmma<Input::f16>(sums, k_major(a), k_major(b));
#pragma once

#include <cuda_tma/wgmma.cuh>

#include <cuda_tma/wgmma_macros.cuh>

namespace cuda_tma {

template <>
struct Wgmma<Product::f16_sums> {
    static constexpr bool here = true;

    template <typename Form, int Columns, int Count, typename Operand>
    __device__ static __forceinline__ void multiply(unsigned (&sums)[Count], const Operand& a, MatrixDescriptor b,
                                                    int accumulate) {
        if constexpr (Form::a == Input::f16) {
            CUDA_TMA_EACH(F16, 16, "+r", "k16.f16.f16.f16")
        } else {
            CUDA_TMA_EACH(F16, FP8, "+r", "k32.f16")
        }
    }
};

}  // namespace cuda_tma

#include <cuda_tma/wgmma_macros_end.cuh>
