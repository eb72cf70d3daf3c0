// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/wgmma_s8.cuh: wgmma of s8 and u8 (either one each), summed in s32: one instruction takes 32 elements of K. K
// is innermost in both tiles. N is 8, 24, or a multiple of 16. Sums wrap; wgmma_satfinite() stops at the ends of int.
// (Observed: CUDA 12.0 refuses one of each, 12.4 takes it.)
//
//     int sums[128 / 2];
//     wgmma(sums, MatrixOf<Input::u8>{k_major(a)}, MatrixOf<Input::s8>{k_major(b)});
#pragma once

#include <cuda_tma/wgmma.cuh>

#include <cuda_tma/wgmma_macros.cuh>

namespace cuda_tma {

template <>
struct Wgmma<Product::s32_sums> {
    static constexpr bool here = true;

    template <typename Form, int N, int Count>
    __device__ static __forceinline__ void multiply(int (&sums)[Count], MatrixDescriptor a, MatrixDescriptor b,
                                                    int accumulate) {
        if constexpr (Form::a == Input::s8 && Form::b == Input::s8 && Form::satfinite) {
            CUDA_TMA_EACH_S32(CUDA_TMA_SHARED_INT, "+r", "k32.s32.s8.s8.satfinite")
        } else if constexpr (Form::a == Input::s8 && Form::b == Input::s8 && !Form::satfinite) {
            CUDA_TMA_EACH_S32(CUDA_TMA_SHARED_INT, "+r", "k32.s32.s8.s8")
        } else if constexpr (Form::a == Input::s8 && Form::b == Input::u8 && Form::satfinite) {
            CUDA_TMA_EACH_S32(CUDA_TMA_SHARED_INT, "+r", "k32.s32.s8.u8.satfinite")
        } else if constexpr (Form::a == Input::s8 && Form::b == Input::u8 && !Form::satfinite) {
            CUDA_TMA_EACH_S32(CUDA_TMA_SHARED_INT, "+r", "k32.s32.s8.u8")
        } else if constexpr (Form::a == Input::u8 && Form::b == Input::s8 && Form::satfinite) {
            CUDA_TMA_EACH_S32(CUDA_TMA_SHARED_INT, "+r", "k32.s32.u8.s8.satfinite")
        } else if constexpr (Form::a == Input::u8 && Form::b == Input::s8 && !Form::satfinite) {
            CUDA_TMA_EACH_S32(CUDA_TMA_SHARED_INT, "+r", "k32.s32.u8.s8")
        } else if constexpr (Form::a == Input::u8 && Form::b == Input::u8 && Form::satfinite) {
            CUDA_TMA_EACH_S32(CUDA_TMA_SHARED_INT, "+r", "k32.s32.u8.u8.satfinite")
        } else if constexpr (Form::a == Input::u8 && Form::b == Input::u8 && !Form::satfinite) {
            CUDA_TMA_EACH_S32(CUDA_TMA_SHARED_INT, "+r", "k32.s32.u8.u8")
        }
    }

    template <typename Form, int N, int Count>
    __device__ static __forceinline__ void multiply(int (&sums)[Count], const unsigned (&a)[4], MatrixDescriptor b,
                                                    int accumulate) {
        if constexpr (Form::a == Input::s8 && Form::b == Input::s8 && Form::satfinite) {
            CUDA_TMA_EACH_S32(CUDA_TMA_REGISTERS_INT, "+r", "k32.s32.s8.s8.satfinite")
        } else if constexpr (Form::a == Input::s8 && Form::b == Input::s8 && !Form::satfinite) {
            CUDA_TMA_EACH_S32(CUDA_TMA_REGISTERS_INT, "+r", "k32.s32.s8.s8")
        } else if constexpr (Form::a == Input::s8 && Form::b == Input::u8 && Form::satfinite) {
            CUDA_TMA_EACH_S32(CUDA_TMA_REGISTERS_INT, "+r", "k32.s32.s8.u8.satfinite")
        } else if constexpr (Form::a == Input::s8 && Form::b == Input::u8 && !Form::satfinite) {
            CUDA_TMA_EACH_S32(CUDA_TMA_REGISTERS_INT, "+r", "k32.s32.s8.u8")
        } else if constexpr (Form::a == Input::u8 && Form::b == Input::s8 && Form::satfinite) {
            CUDA_TMA_EACH_S32(CUDA_TMA_REGISTERS_INT, "+r", "k32.s32.u8.s8.satfinite")
        } else if constexpr (Form::a == Input::u8 && Form::b == Input::s8 && !Form::satfinite) {
            CUDA_TMA_EACH_S32(CUDA_TMA_REGISTERS_INT, "+r", "k32.s32.u8.s8")
        } else if constexpr (Form::a == Input::u8 && Form::b == Input::u8 && Form::satfinite) {
            CUDA_TMA_EACH_S32(CUDA_TMA_REGISTERS_INT, "+r", "k32.s32.u8.u8.satfinite")
        } else if constexpr (Form::a == Input::u8 && Form::b == Input::u8 && !Form::satfinite) {
            CUDA_TMA_EACH_S32(CUDA_TMA_REGISTERS_INT, "+r", "k32.s32.u8.u8")
        }
    }
};

}  // namespace cuda_tma

#include <cuda_tma/wgmma_macros_end.cuh>
