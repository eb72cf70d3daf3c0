// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/wgmma_fp8.cuh: wgmma of e4m3 and e5m2, with f32 sums. One instruction covers 32 elements of K. A and B may
// each have either type. K is the innermost index of both tiles.
//
//     wgmma(sums, MatrixOf<Input::e4m3>{k_major(a)}, MatrixOf<Input::e5m2>{k_major(b)});
#pragma once

#include <cuda_tma/wgmma.cuh>

#include <cuda_tma/wgmma_macros.cuh>

namespace cuda_tma {

template <>
struct Wgmma<Product::fp8> {
    static constexpr bool here = true;

    template <typename Form, int Columns, int Count, typename Operand>
    __device__ static __forceinline__ void multiply(float (&sums)[Count], const Operand& a, MatrixDescriptor b,
                                                    int accumulate) {
        CUDA_TMA_EACH(F32, FP8, "+f", "k32.f32")
    }
};

}  // namespace cuda_tma

#include <cuda_tma/wgmma_macros_end.cuh>
