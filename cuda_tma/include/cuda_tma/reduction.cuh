// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/reduction.cuh: the operations of reductions.
#pragma once

namespace cuda_tma {

// The operation that combines an element in global memory (old) with an element in shared memory (new). `inc` results
// in 0 if old >= new, and otherwise in old + 1. `dec` results in new if old is 0 or old > new, and otherwise in old -
// 1.
enum class Reduction { add, min, max, inc, dec, bit_and, bit_or, bit_xor };

}  // namespace cuda_tma
