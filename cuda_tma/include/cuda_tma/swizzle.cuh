// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/swizzle.cuh: the position of a byte of a tile in shared memory. These functions are constexpr and need no
// GPU.
#pragma once

namespace cuda_tma {

// The driver's values (CUtensorMapSwizzle), with names of cuda_tma, as in swizzled<SWIZZLE_128B>(row, byte).
enum Swizzle : int {
    SWIZZLE_NONE, SWIZZLE_32B, SWIZZLE_64B, SWIZZLE_128B,
    SWIZZLE_128B_ATOM_32B, SWIZZLE_128B_ATOM_32B_FLIP_8B, SWIZZLE_128B_ATOM_64B,
};

// The number of bytes within which chunks are permuted. Each row of a box occupies this number of bytes, even if the
// data of the row is shorter.
template <Swizzle Mode>
__host__ __device__ constexpr unsigned swizzle_span() {
    static_assert(Mode != SWIZZLE_NONE, "without a swizzle a row is as long as the box is wide");
    return Mode == SWIZZLE_32B ? 32 : Mode == SWIZZLE_64B ? 64 : 128;
}

// The alignment of a tile in bytes: 128, as TMA requires, or the period of the swizzle.
template <Swizzle Mode>
__host__ __device__ constexpr unsigned swizzle_alignment() {
    if constexpr (Mode == SWIZZLE_NONE) return 128;
    else return 8 * swizzle_span<Mode>();
}

// Converts an offset in the plain tile to the offset in the swizzled tile. The function is its own inverse. This
// function uses bits 7 to 9 of the offset, and equals the hardware's function of the address if the tile starts at a
// multiple of 1024 (for 32B: 256, for 64B: 512). ISA: "Swizzling modes".
template <Swizzle Mode>
__host__ __device__ constexpr unsigned swizzle(unsigned offset) {
    const unsigned line = offset >> 7;  // number of the 128-byte line in shared memory (32 banks)
    switch (Mode) {
        case SWIZZLE_32B: return offset ^ (line & 1) << 4;
        case SWIZZLE_64B: return offset ^ (line & 3) << 4;
        case SWIZZLE_128B: return offset ^ (line & 7) << 4;
        case SWIZZLE_128B_ATOM_32B: return offset ^ (line & 3) << 5;
        case SWIZZLE_128B_ATOM_32B_FLIP_8B: return offset ^ (line & 3) << 5 ^ (line & 1) << 3;
        case SWIZZLE_128B_ATOM_64B: return offset ^ (line & 1) << 6;
        default: return offset;
    }
}

// Returns the offset of byte `byte` in row `row` of a box. The tile has the alignment that swizzle() requires.
template <Swizzle Mode>
__host__ __device__ constexpr unsigned swizzled(unsigned row, unsigned byte) {
    return swizzle<Mode>(row * swizzle_span<Mode>() + byte);
}

}  // namespace cuda_tma
