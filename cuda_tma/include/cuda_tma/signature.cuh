// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/signature.cuh: what cuda_tma.compile asks a compiler by name expressions. A kernel does not need it.
//
// A name expression gives the lowered name of what it is the address of, and template arguments stand in it: worked out,
// where the name of a kernel itself has them as they were written. (Not const: NVRTC up to CUDA 12.4 puts constants into
// a namespace of the source's own, and so their names.)
#pragma once

namespace cuda_tma {

// &signature<decltype(&kernel)>: the types of a kernel's parameters, of an extern "C" kernel too.
template <typename Function>
__device__ char signature;

// &constant<sizeof(Shared)>: the value of a constant.
template <long long Value>
__device__ char constant;

}  // namespace cuda_tma
