// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/wgmma_s8.cuh: wgmma of s8 and u8, with s32 sums. A and B may each have either type. One instruction covers
// 32 elements of K, which is the innermost index of both tiles. N is 8, 24, or a multiple of 16. Sums wrap;
// wgmma_satfinite() clamps the sums. (Observed: CUDA 12.0 refuses A and B of different types, and 12.4 accepts them.)
//
//     int sums[128 / 2];
//     wgmma(sums, MatrixOf<Input::u8>{k_major(a)}, MatrixOf<Input::s8>{k_major(b)});
#pragma once

#include <cuda_tma/wgmma.cuh>

#include <cuda_tma/wgmma_macros.cuh>

namespace cuda_tma {

#define CUDA_TMA_INT8(type_a, type_b)                                                                              \
    if constexpr (Form::a == Input::type_a && Form::b == Input::type_b && Form::satfinite) {                      \
        CUDA_TMA_EACH(S32, INT, "+r", "k32.s32." #type_a "." #type_b ".satfinite")                                 \
    } else if constexpr (Form::a == Input::type_a && Form::b == Input::type_b) {                                   \
        CUDA_TMA_EACH(S32, INT, "+r", "k32.s32." #type_a "." #type_b)                                              \
    }

template <>
struct Wgmma<Product::s32_sums> {
    static constexpr bool here = true;

    template <typename Form, int Columns, int Count, typename Operand>
    __device__ static __forceinline__ void multiply(int (&sums)[Count], const Operand& a, MatrixDescriptor b,
                                                    int accumulate) {
        CUDA_TMA_INT8(s8, s8)
        CUDA_TMA_INT8(s8, u8)
        CUDA_TMA_INT8(u8, s8)
        CUDA_TMA_INT8(u8, u8)
    }
};

#undef CUDA_TMA_INT8

}  // namespace cuda_tma

#include <cuda_tma/wgmma_macros_end.cuh>
