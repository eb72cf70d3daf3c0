// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/tcgen05.cuh: tensor-core instructions of compute capability 10, for tiles from TMA. The sums are in tensor
// memory (tensor_memory.cuh). Tests run the functions on the simulator; no test has run them on hardware.
//
//     __shared__ Tile<BFLOAT16, Box<128, 64>, SWIZZLE_128B> a, b;      // loaded by TMA
//     const TensorMemory<128> memory(slot);                            // 128 x 128 sums of 32 bits
//     ...                                                              // full.wait(): the tiles are loaded
//     if (threadIdx.x / 32 == 1 && elect_one()) {                      // one thread: each call is one product
//         tcgen05::fence_after_thread_sync();
//         for (int k = 0; k < 64; k += 16)                             // one instruction covers 32 bytes of K
//             tcgen05::mma<128, 128>(memory.column(0), tcgen05::k_major(a, 0, k), tcgen05::k_major(b, 0, k), k > 0);
//         tcgen05::commit(done);                                       // arrives after all products of this thread
//     }
//     done.wait(0);                                                    // the sums are valid, and the tiles are free
//
// With Ctas == 2, the two CTAs of a pair (ranks 2n, 2n + 1) compute M x N sums together, and one thread of the first
// CTA calls mma(). Each CTA has the tiles of M / 2 rows of A and of N / 2 columns of B, and M / 2 rows of the sums.
// Row r of 128 rows of sums is in lane r. For M = 64, row r is in lane r / 16 * 32 + r % 16. Columns of the sums are
// columns of tensor memory; sums of f16 are in the lower halves. (With a pair and M = 128, lanes 64 to 127 contain the
// second half of the columns.) tcgen05_scaled.cuh contains products with block scales. "ISA" is NVIDIA's PTX ISA.
#pragma once

#include <cuda_tma/input.cuh>
#include <cuda_tma/swizzle.cuh>
#include <cuda_tma/tensor_memory.cuh>

namespace cuda_tma {
namespace tcgen05 {

// ---- operands in shared memory ----

// The shared memory descriptor of 64 bits, for a matrix of one type. `Packed` is true if each byte contains two
// elements of 4 bits. A tile of U4_ALIGN16B or U6_ALIGN16B has 16 elements in 16 bytes. For a matrix x, -x is the
// negated matrix. ISA: "Shared memory descriptor".
template <Input Type, Major Index = Major::k, int Sign = 1, bool Packed = false>
struct Matrix {
    static_assert(Index == Major::k || (Type != Input::tf32 && Type < Input::e2m3),
                  "tcgen05: only types of 8 and 16 bits are read with M or N innermost");
    static constexpr Input type = Type;
    static constexpr Major major = Index;
    static constexpr int sign = Sign;
    static constexpr bool packed = Packed, in_lanes = false;

    unsigned long long bits;

    // Returns the matrix that starts `bytes` (a multiple of 16) later.
    __device__ constexpr Matrix advance(unsigned bytes) const { return {bits + (bytes >> 4)}; }
    __device__ constexpr Matrix<Type, Index, -Sign, Packed> operator-() const { return {bits}; }
};

// The matrix A in tensor memory: row r is in lane r, and each column contains four bytes of K. Elements of e2m1 are in
// bits 2 to 5 of a byte, and elements of e2m3 and e3m2 are in bits 0 to 5. If B is packed, A is packed too.
template <Input Type>
struct MatrixInLanes {
    static constexpr Input type = Type;
    static constexpr Major major = Major::k;
    static constexpr int sign = 1;
    static constexpr bool packed = false, in_lanes = true;

    Address at;
};

// Bits 46 to 48 of the descriptor contain 1, and bits 61 to 63 the swizzle.
template <Swizzle Mode>
__host__ __device__ constexpr unsigned long long descriptor_bits(unsigned address, unsigned leading_bytes,
                                                                 unsigned stride_bytes) {
    static_assert(Mode <= SWIZZLE_128B, "tcgen05: the operands have the swizzle NONE, 32B, 64B or 128B");
    constexpr Uint64 codes[] = {0, 6, 4, 2};   // of NONE, 32B, 64B and 128B
    const auto field = [](unsigned bytes) { return static_cast<Uint64>(bytes >> 4 & 0x3FFF); };
    return field(address) | field(leading_bytes) << 16 | field(stride_bytes) << 32 | 1ull << 46 | codes[Mode] << 61;
}

// Returns the part of a Tile<..., Box<rows, k>, Mode> from element (row, k) on. `row` is a multiple of 8, and `k` is a
// multiple of the number of elements in 32 bytes. The tile may consist of several boxes.
template <Input Type, typename Tile, Swizzle Mode = Tile::swizzle()>
__device__ auto k_major(const Tile& tile, unsigned row = 0, unsigned k = 0) {
    constexpr int data = Tile::data_type();   // 13 U4_ALIGN8B, 14 U4_ALIGN16B, 15 U6_ALIGN16B
    static_assert(Mode != SWIZZLE_NONE, "without a swizzle: k_major<Type, SWIZZLE_NONE>(address, k_bytes, mn_bytes)");
    static_assert(Type == Input::e2m1   ? data == 13 || data == 14
                  : Type >= Input::e2m3 ? data == 15
                                        : data < 13 && sizeof(typename Tile::Element) == input_bytes(Type),
                  "k_major: the tile has other elements; e2m1 needs U4_ALIGN16B or (packed) U4_ALIGN8B, e2m3 and e3m2 "
                  "need U6_ALIGN16B");
    const unsigned in_row = data == 13 ? k % Tile::box_width() / 2 : k % Tile::box_width() * input_bytes(Type);
    const unsigned bytes = k / Tile::box_width() * Tile::box_bytes() + row * Tile::pitch_bytes() + in_row;
    return Matrix<Type, Major::k, 1, data == 13>{
        descriptor_bits<Mode>(smem_address(tile.storage), 16, 8 * swizzle_span<Mode>())}.advance(bytes);
}
template <typename Tile, Swizzle Mode = Tile::swizzle()>
__device__ auto k_major(const Tile& tile, unsigned row = 0, unsigned k = 0) {
    return k_major<input_of<Tile>()>(tile, row, k);
}

// Returns the part of a Tile<..., Box<k, columns>, Mode> from element (k, column) on, where M or N is innermost. `k` is
// a multiple of 8, and `column` is a multiple of a box's width.
template <Input Type, typename Tile, Swizzle Mode = Tile::swizzle()>
__device__ auto mn_major(const Tile& tile, unsigned k = 0, unsigned column = 0) {
    static_assert(Mode != SWIZZLE_NONE, "mn_major: the tile needs the swizzle 32B, 64B or 128B");
    static_assert(sizeof(typename Tile::Element) == input_bytes(Type), "mn_major: the tile has other elements");
    const unsigned bytes = column / Tile::box_width() * Tile::box_bytes() + k * Tile::pitch_bytes();
    const auto whole = descriptor_bits<Mode>(smem_address(tile.storage), Tile::box_bytes(), 8 * Tile::pitch_bytes());
    return Matrix<Type, Major::mn>{whole}.advance(bytes);
}
template <typename Tile, Swizzle Mode = Tile::swizzle()>
__device__ auto mn_major(const Tile& tile, unsigned k = 0, unsigned column = 0) {
    return mn_major<input_of<Tile>()>(tile, k, column);
}

// Describes a matrix without a swizzle, which consists of contiguous core matrices of 8 rows of 16 bytes. The distances
// of core matrices are `k_bytes` along K and `mn_bytes` along M or N, both multiples of 16.
template <Input Type, Swizzle Mode>
__device__ Matrix<Type> k_major(const void* tile, unsigned k_bytes, unsigned mn_bytes) {
    static_assert(Mode == SWIZZLE_NONE, "k_major: the distances follow from a swizzle; k_major<Type>(tile)");
    return {descriptor_bits<Mode>(smem_address(tile), k_bytes, mn_bytes)};
}

// ---- the form of a product ----

enum class Kind { f16, tf32, f8f6f4, i8, none };

__host__ __device__ constexpr bool is_narrow(Input type) {
    return type == Input::e4m3 || type == Input::e5m2 || type >= Input::e2m3;
}

// The kind of A and B: one type of bf16, f16 and tf32, or any two of e4m3, e5m2, e2m3, e3m2 and e2m1, or of s8 and u8.
__host__ __device__ constexpr Kind kind_of(Input a, Input b) {
    if (is_narrow(a) && is_narrow(b)) return Kind::f8f6f4;
    if ((a == Input::s8 || a == Input::u8) && (b == Input::s8 || b == Input::u8)) return Kind::i8;
    if (a != b || is_narrow(a)) return Kind::none;
    return a == Input::tf32 ? Kind::tf32 : Kind::f16;
}

// The code of a type in the instruction descriptor. ISA: "Instruction descriptor".
__host__ __device__ constexpr unsigned code_of(Input type) {
    switch (type) {
        case Input::bf16: case Input::e5m2: case Input::s8: return 1;
        case Input::tf32: return 2;
        case Input::e2m3: return 3;
        case Input::e3m2: return 4;
        case Input::e2m1: return 5;
        default: return 0;
    }
}

// ISA: "Matrix Shape".
__host__ __device__ constexpr bool has_rows(int m, int ctas) { return m == 64 * ctas || m == 128 * ctas; }
__host__ __device__ constexpr bool has_columns(Kind kind, int n, int ctas) {
    if (kind == Kind::i8 && ctas == 1 && (n == 8 || n == 24)) return true;
    const int step = kind == Kind::i8 ? 16 * ctas : 8 * ctas;
    return step <= n && n <= 256 && n % step == 0;
}

// The instruction descriptor of 32 bits, with the checks of a product without block scales.
template <int Rows, int Columns, int Ctas, Sums Sum, typename Left, typename Right>
struct MmaForm {
    static constexpr Kind kind = kind_of(Left::type, Right::type);
    static constexpr Sums sums = Sum != Sums::none ? Sum : kind == Kind::i8 ? Sums::s32 : Sums::f32;
    static_assert(kind != Kind::none,
                  "tcgen05::mma: A and B are of one type of bf16, f16 and tf32, or of any two of e4m3, e5m2, e2m3, "
                  "e3m2 and e2m1, or of s8 and u8");
    static_assert(!Left::packed && !Right::packed,
                  "tcgen05::mma: without block scales, e2m1 needs a tile of U4_ALIGN16B");
    static_assert(has_rows(Rows, Ctas), "tcgen05::mma: M is 64 or 128, with a pair of CTAs 128 or 256");
    static_assert(has_columns(kind, Columns, Ctas),
                  "tcgen05::mma: N is a multiple of 8 up to 256, with a pair of CTAs of 16; for s8 and u8 N is 8, 24 "
                  "or a multiple of 16, with a pair of 32");
    static_assert((kind == Kind::i8) == (sums == Sums::s32) && (kind != Kind::tf32 || sums == Sums::f32) &&
                      (Left::type != Input::bf16 || sums == Sums::f32),
                  "tcgen05::mma: sums are f32, for f16 and the types of 8 bits and less also f16, for s8 and u8 s32");
    static_assert(kind != Kind::i8 || (Left::sign == 1 && Right::sign == 1), "tcgen05::mma: s8 and u8 have no -x");
    static_assert(!Right::in_lanes, "tcgen05::mma: only A may be in tensor memory");

    static constexpr unsigned bits = (sums == Sums::f32 ? 1u : sums == Sums::s32 ? 2u : 0u) << 4 |
                                     code_of(Left::type) << 7 | code_of(Right::type) << 10 | (Left::sign < 0) << 13 |
                                     (Right::sign < 0) << 14 | (Left::major == Major::mn) << 15 |
                                     (Right::major == Major::mn) << 16 | Columns / 8 << 17 | Rows / 16 << 24;
};

// ---- products ----

#define CUDA_TMA_MMA_OF(kind, a, ...)                                                                              \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0;"                                                           \
                 "  tcgen05.mma.cta_group::%5.kind::" kind " [%0], " a ", %2, %3, p; }"                            \
                 ::"r"(d.bits), __VA_ARGS__, "l"(b.bits), "r"(Form::bits), "r"(int(accumulate)), "n"(Ctas) : "memory")
#define CUDA_TMA_MMA(name)                                                                                         \
    if constexpr (Form::kind == Kind::name) {                                                                      \
        if constexpr (Left::in_lanes) CUDA_TMA_MMA_OF(#name, "[%1]", "r"(a.at.bits));                              \
        else CUDA_TMA_MMA_OF(#name, "%1", "l"(a.bits));                                                            \
    }

// tcgen05.mma: adds A (M x K) times B (K x N) to the sums at `d`, or overwrites them if `accumulate` is false. K is 32
// bytes. `Sum` is the type of the sums, by default f32, or s32 for s8 and u8. The instruction is asynchronous: products
// of one thread run in order, and commit() signals their completion. ISA: "tcgen05.mma".
template <int Rows, int Columns, int Ctas = 1, Sums Sum = Sums::none, typename Left, typename Right>
__device__ __forceinline__ void mma(Address d, Left a, Right b, bool accumulate = true) {
    using Form = MmaForm<Rows, Columns, Ctas, Sum, Left, Right>;
    require_group<Ctas>();
    if constexpr (Form::kind == Kind::i8) require_tcgen05_i8<Left>();
    CUDA_TMA_MMA(f16)
    CUDA_TMA_MMA(tf32)
    CUDA_TMA_MMA(f8f6f4)
    CUDA_TMA_MMA(i8)
}

#undef CUDA_TMA_MMA
#undef CUDA_TMA_MMA_OF

// tcgen05.commit: arrives once at `done` when all earlier mma() and cp calls of this thread are complete. Call it in
// the thread that called them. The tiles of complete products may be overwritten. ISA: "tcgen05.commit".
template <int Ctas = 1>
__device__ void commit(Barrier& done) {
    require_group<Ctas>();
    asm volatile("tcgen05.commit.cta_group::%1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
                 ::"r"(done.address()), "n"(Ctas) : "memory");
}

// ... .multicast::cluster: arrives at the barrier with the same offset in each CTA whose bit in `cta_mask` is set.
template <int Ctas = 1>
__device__ void commit_multicast(Barrier& done, unsigned short cta_mask) {
    require_group<Ctas>();
    asm volatile("tcgen05.commit.cta_group::%2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
                 ::"r"(done.address()), "h"(cta_mask), "n"(Ctas) : "memory");
}

}  // namespace tcgen05
}  // namespace cuda_tma
