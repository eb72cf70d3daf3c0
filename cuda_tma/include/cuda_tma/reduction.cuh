// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/reduction.cuh: the operations of reductions.
#pragma once

namespace cuda_tma {

// The operation on an element in global memory and one in shared memory. inc: 0 if the old value is at least the new
// one, else the old value plus 1; dec: the new value if the old one is 0 or larger than it, else the old one minus 1.
enum class Reduction { add, min, max, inc, dec, bit_and, bit_or, bit_xor };

}  // namespace cuda_tma
