// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/wgmma_tf32.cuh: wgmma of tf32, with f32 sums. One instruction covers 8 elements of K. An element has 32
// bits; the hardware ignores the lowest 13 bits. A load through a map of TFLOAT32 rounds to the other 19 bits. K is the
// innermost index of both tiles.
#pragma once

#include <cuda_tma/wgmma.cuh>

#include <cuda_tma/wgmma_macros.cuh>

namespace cuda_tma {

template <>
struct Wgmma<Product::tf32> {
    static constexpr bool here = true;

    template <typename Form, int Columns, int Count, typename Operand>
    __device__ static __forceinline__ void multiply(float (&sums)[Count], const Operand& a, MatrixDescriptor b,
                                                    int accumulate) {
        CUDA_TMA_EACH(F32, 32, "+f", "k8.f32.tf32.tf32")
    }
};

}  // namespace cuda_tma

#include <cuda_tma/wgmma_macros_end.cuh>
