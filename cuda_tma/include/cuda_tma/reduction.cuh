// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/reduction.cuh: what reductions do.
#pragma once

namespace cuda_tma {

// What a reduction does to an element in global memory, given the one in shared memory. inc: 0 if the old value is at
// least the new one, else one more; dec: the new value if the old one is 0 or larger than it, else one less.
enum class Reduction { add, min, max, inc, dec, bit_and, bit_or, bit_xor };

}  // namespace cuda_tma
