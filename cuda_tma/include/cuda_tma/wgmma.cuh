// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/wgmma.cuh: Hopper's tensor cores on tiles that TMA loaded. One function is one PTX instruction. sm_90a only.
//
//     __shared__ alignas(1024) unsigned short a[64][64], b[128][64];   // boxes of bf16, loaded with SWIZZLE_128B
//     float sums[128 / 2];                                             // of a 64 x 128 tile, in each of 128 threads
//     ...                                                              // full.wait(): the tiles are in
//     wgmma_fence();                                                   // before the first, and if registers changed
//     for (int k = 0; k < 64; k += 16)                                 // one instruction takes 16 elements of K
//         wgmma(sums, k_major(a).advance(2 * k), k_major(b).advance(2 * k), k > 0);   // false: sums are overwritten
//     wgmma_commit();
//     wgmma_wait<0>(sums);                                             // the sums may be read, the tiles overwritten
//
// All 128 threads of a warpgroup (4 warps, the first a multiple of 4) call each function together. 16-bit values are
// raw `unsigned short`. "ISA" is NVIDIA's "Parallel Thread Execution ISA"; its sections are given by title.
#pragma once

#include <cuda_tma/tma.cuh>
#include <cuda_tma/warpgroup.cuh>

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "cuda_tma/wgmma.cuh: wgmma exists on compute capability 9.0 alone; compile for sm_90a"
#endif

namespace cuda_tma {

// ---- operands in shared memory ----

// The 64 bits that name a matrix: start address, leading and stride byte offset (each in units of 16 bytes, 14 bits
// wide), and the swizzle. ISA: "Shared Memory Matrix Layout", "Matrix Descriptor Format".
struct MatrixDescriptor {
    unsigned long long bits;

    // The matrix that starts so many bytes later, a multiple of 16. Inside a swizzled row too: the hardware permutes
    // address bits, as swizzle() does, after it has added the offsets.
    __device__ constexpr MatrixDescriptor advance(unsigned bytes) const { return {bits + (bytes >> 4)}; }
};

template <Swizzle Mode>
__host__ __device__ constexpr unsigned long long matrix_descriptor_bits(unsigned address, unsigned leading_bytes,
                                                                        unsigned stride_bytes) {
    static_assert(Mode <= SWIZZLE_128B, "wgmma reads no swizzle but NONE, 32B, 64B and 128B");
    constexpr unsigned long long layout = Mode == SWIZZLE_NONE ? 0 : 4 - Mode;   // 128B is 1, 64B 2, 32B 3
    const auto field = [](unsigned bytes) { return static_cast<unsigned long long>(bytes >> 4 & 0x3FFF); };
    return field(address) | field(leading_bytes) << 16 | field(stride_bytes) << 32 | layout << 62;
}

// A tile with K innermost: a box of (rows, span), where K fills the span of the swizzle: 64 elements for SWIZZLE_128B.
// Eight rows are the unit of the layout, the next eight follow at once. Starts where swizzle() asks. One instruction
// reads 16 elements of K; advance(32) goes to the next 16. The leading offset is not used with a swizzle.
template <Swizzle Mode = SWIZZLE_128B>
__device__ MatrixDescriptor k_major(const void* tile) {
    return {matrix_descriptor_bits<Mode>(smem_address(tile), 16, 8 * swizzle_span<Mode>())};
}

// A tile with M or N innermost: boxes of (k_rows, span), one behind the other if the tile is wider than a span. K goes
// from row to row: advance(16 * swizzle_span<Mode>()) goes to the next 16. Say Major::MN in wgmma().
template <Swizzle Mode = SWIZZLE_128B>
__device__ MatrixDescriptor mn_major(const void* tile, unsigned k_rows) {
    constexpr unsigned span = swizzle_span<Mode>();
    return {matrix_descriptor_bits<Mode>(smem_address(tile), k_rows * span, 8 * span)};
}

// ---- multiply and accumulate ----

enum class Input { bf16, f16 };   // of both A and B
enum class Major { K, MN };       // which index of a tile is innermost: k_major() or mn_major()

// Operands %1 to %(N / 2 - 1), as `, X(1), X(2) ...`: the first one, which has no comma before it, stands apart.
#define CUDA_TMA_TEN(X, tens) \
    X(tens##0) X(tens##1) X(tens##2) X(tens##3) X(tens##4) X(tens##5) X(tens##6) X(tens##7) X(tens##8) X(tens##9)
#define CUDA_TMA_TO_32(X) \
    X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) CUDA_TMA_TEN(X, 1) CUDA_TMA_TEN(X, 2) X(30) X(31)
#define CUDA_TMA_TO_64(X) \
    CUDA_TMA_TO_32(X) X(32) X(33) X(34) X(35) X(36) X(37) X(38) X(39) CUDA_TMA_TEN(X, 4) CUDA_TMA_TEN(X, 5) \
    X(60) X(61) X(62) X(63)
#define CUDA_TMA_TO_96(X) \
    CUDA_TMA_TO_64(X) X(64) X(65) X(66) X(67) X(68) X(69) CUDA_TMA_TEN(X, 7) CUDA_TMA_TEN(X, 8) \
    X(90) X(91) X(92) X(93) X(94) X(95)
#define CUDA_TMA_TO_128(X) \
    CUDA_TMA_TO_96(X) X(96) X(97) X(98) X(99) CUDA_TMA_TEN(X, 10) CUDA_TMA_TEN(X, 11) \
    X(120) X(121) X(122) X(123) X(124) X(125) X(126) X(127)
#define CUDA_TMA_NAME(i) ", %" #i
#define CUDA_TMA_SUM(i) , "+f"(sums[i])

// `a`, `b` and `scale` are the operands behind the sums: %32 to %34 for 32 of them; then whether A and B are MN-major.
#define CUDA_TMA_WGMMA(n, type, count, a, b, scale, trans_a, trans_b)                                               \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " scale ", 0;\n"                                                  \
                 "  wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type                                 \
                 " {%0" CUDA_TMA_TO_##count(CUDA_TMA_NAME) "}, " a ", " b ", p, 1, 1, " trans_a ", " trans_b "; }" \
                 : "+f"(sums[0]) CUDA_TMA_TO_##count(CUDA_TMA_SUM)                                                 \
                 : "l"(a_tile.bits), "l"(b_tile.bits), "r"(int(accumulate)), "n"(int(A)), "n"(int(B)))
#define CUDA_TMA_WGMMA_OF(n, count, ...)                                                      \
    if constexpr (Count == count && Type == Input::bf16)                                      \
        CUDA_TMA_WGMMA(n, "bf16", count, __VA_ARGS__);                                        \
    else if constexpr (Count == count)                                                        \
        CUDA_TMA_WGMMA(n, "f16", count, __VA_ARGS__)

// wgmma.mma_async, m64nNk16: adds A (64 x 16) times B (16 x N) to the sums, or overwrites them if not `accumulate`. N
// is twice the length of `sums`. In thread t of the warpgroup, sums[i] belongs to row t / 32 * 16 + i / 2 % 2 * 8 +
// t % 32 / 4 and column i / 4 * 8 + t % 4 * 2 + i % 2. ISA: "Register Fragments for wgmma.mma_async.m64nNk16".
template <Input Type = Input::bf16, Major A = Major::K, Major B = Major::K, int Count>
__device__ void wgmma(float (&sums)[Count], MatrixDescriptor a_tile, MatrixDescriptor b_tile, bool accumulate = true) {
    static_assert(Count == 32 || Count == 64 || Count == 96 || Count == 128, "wgmma: N is 64, 128, 192 or 256");
    CUDA_TMA_WGMMA_OF(64, 32, "%32", "%33", "%34", "%35", "%36");
    CUDA_TMA_WGMMA_OF(128, 64, "%64", "%65", "%66", "%67", "%68");
    CUDA_TMA_WGMMA_OF(192, 96, "%96", "%97", "%98", "%99", "%100");
    CUDA_TMA_WGMMA_OF(256, 128, "%128", "%129", "%130", "%131", "%132");
}

#undef CUDA_TMA_WGMMA_OF
#undef CUDA_TMA_WGMMA
#undef CUDA_TMA_SUM
#undef CUDA_TMA_NAME
#undef CUDA_TMA_TO_128
#undef CUDA_TMA_TO_96
#undef CUDA_TMA_TO_64
#undef CUDA_TMA_TO_32
#undef CUDA_TMA_TEN

// wgmma.fence: before the first wgmma(), and before one whose sums were read or written by other instructions.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// wgmma.commit_group: the wgmma() calls so far become one group.
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// wgmma.wait_group: until at most `Pending` groups are unfinished; the tiles of the others may be overwritten ...
template <int Pending>
__device__ void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory"); }

// ... and their sums be read: named here, so that the compiler moves no use of them before the wait.
template <int Pending, int Count>
__device__ void wgmma_wait(float (&sums)[Count]) {
    wgmma_wait<Pending>();
#pragma unroll
    for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

}  // namespace cuda_tma
