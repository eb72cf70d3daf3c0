// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/kernel.cuh: a description of a kernel's parameters, for kernels that nvcc or another program compiles. The
// simulator reads the description from the PTX. A launch on a GPU does not read the description, and checks only sizes:
//
//     extern "C" __global__ void scale(float* out, float factor, int count) { ... }
//     CUDA_TMA_KERNEL(scale);                           // at namespace scope, after the kernel
//
// The name must be a plain identifier, and not the name of an overloaded kernel or of a kernel template.
#pragma once

#include <cuda_tma/signature.cuh>

#define CUDA_TMA_KERNEL(kernel)                                                             \
    extern "C" {                                                                            \
    __device__ auto cuda_tma_parameters_of_##kernel = ::cuda_tma::description::table(&kernel); \
    }                                                                                       \
    static_assert(true, "")
