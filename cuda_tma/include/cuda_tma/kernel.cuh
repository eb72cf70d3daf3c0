// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/kernel.cuh: for a kernel that nvcc or another program compiles. Its module then has a description of the
// kernel's parameters. The simulator reads it from the PTX; a launch on a GPU does not, and checks only sizes:
//
//     extern "C" __global__ void scale(float* out, float factor, int count) { ... }
//     CUDA_TMA_KERNEL(scale);                           // at namespace scope, after the kernel
//
// The name is a plain identifier: no overload, and no kernel of a template.
#pragma once

#include <cuda_tma/signature.cuh>

#define CUDA_TMA_KERNEL(kernel)                                                             \
    extern "C" {                                                                            \
    __device__ auto cuda_tma_parameters_of_##kernel = ::cuda_tma::description::table(&kernel); \
    }                                                                                       \
    static_assert(true, "")
