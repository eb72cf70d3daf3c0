// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/signature.cuh: what cuda_tma.compile asks a compiler by name expressions. A kernel does not need it.
//
// A name expression gives the lowered name of what it is the address of, and template arguments stand in it: worked out,
// where the name of a kernel itself has them as they were written.
#pragma once

namespace cuda_tma {

// &signature<decltype(&kernel)>: the types of a kernel's parameters, of an extern "C" kernel too.
template <typename Function>
__device__ const char signature = 0;

// &constant<sizeof(Shared)>: the value of a constant.
template <long long Value>
__device__ const char constant = 0;

}  // namespace cuda_tma
