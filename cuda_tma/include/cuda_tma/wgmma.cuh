// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/wgmma.cuh: tensor-core instructions of Hopper, for tiles from TMA. One function is one PTX instruction.
//
//     __shared__ alignas(1024) unsigned short a[64][64], b[128][64];   // boxes of bf16, loaded with SWIZZLE_128B
//     float sums[128 / 2];                                             // a 64 x 128 tile over 128 threads
//     ...                                                              // full.wait(): the tiles are loaded
//     wgmma_fence();                                                   // before the first, and after register changes
//     for (int k = 0; k < 64; k += 16)                                 // one instruction covers 16 elements of K
//         wgmma(sums, k_major(a).advance(2 * k), k_major(b).advance(2 * k), k > 0);   // false: overwrite the sums
//     wgmma_commit();
//     wgmma_wait<0>(sums);                                             // the sums are valid, and the tiles are free
//
// All 128 threads of a warpgroup (4 warps, of which the first has a number divisible by 4) call each function together.
// 16-bit values are raw `unsigned short`. This header contains bf16 and f16 with f32 accumulators. Include a header of
// other types only if you need it, because each header costs compile time:
//
//     wgmma_fp8.cuh  e4m3, e5m2     wgmma_tf32.cuh  tf32     wgmma_s8.cuh  s8, u8     wgmma_f16.cuh  f16 accumulators
//
// For operands other than bf16, specify the type: pass k_major(tile) of a Tile (tile.cuh) or MatrixOf<Input::e4m3>{...}
// of a descriptor, or call wgmma<Input::f16>(...). The operand A may be in registers: `unsigned a[4]`. Code for targets
// other than sm_90a may include the header, and test `if constexpr (has_wgmma)` in a template. "ISA" is NVIDIA's
// "Parallel Thread Execution ISA", cited by section title.
#pragma once

#include <cuda_tma/input.cuh>
#include <cuda_tma/pin.cuh>
#include <cuda_tma/tma.cuh>
#include <cuda_tma/warpgroup.cuh>

#include <cuda_tma/wgmma_macros.cuh>

namespace cuda_tma {

// ---- operands in shared memory ----

// The matrix descriptor of 64 bits contains the start address, the leading and the stride byte offset (each in units of
// 16 bytes, 14 bits wide), and the swizzle. ISA: "Shared Memory Matrix Layout", "Matrix Descriptor Format".
struct MatrixDescriptor {
    unsigned long long bits;

    // Returns the matrix that starts `bytes` (a multiple of 16) later. The matrix may start inside a swizzled row,
    // because the hardware permutes address bits, as swizzle() does, after it has added the offsets.
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

// Describes a tile whose innermost index is K: a box of (rows, span), where K fills the span of the swizzle (64
// elements of 16 bits for SWIZZLE_128B). Groups of eight rows are contiguous. The tile has the alignment that swizzle()
// requires. One instruction reads 32 bytes of K; advance(32) moves to the next 32 bytes. With a swizzle, the hardware
// does not use the leading offset.
template <Swizzle Mode = SWIZZLE_128B>
__device__ MatrixDescriptor k_major(const void* tile) {
    return {matrix_descriptor_bits<Mode>(smem_address(tile), 16, 8 * swizzle_span<Mode>())};
}

// Describes a tile whose innermost index is M or N: boxes of (k_rows, span), which are contiguous if the tile is wider
// than a span. Each row is one index of K; advance(16 * swizzle_span<Mode>()) moves to the next 16 rows. Pass Major::MN
// to wgmma().
template <Swizzle Mode = SWIZZLE_128B>
__device__ MatrixDescriptor mn_major(const void* tile, unsigned k_rows) {
    constexpr unsigned span = swizzle_span<Mode>();
    return {matrix_descriptor_bits<Mode>(smem_address(tile), k_rows * span, 8 * span)};
}

// Describes a tile without a swizzle, which consists of contiguous core matrices. A core matrix has 8 rows of 16 bytes.
// The distances of core matrices are `k_bytes` along K and `mn_bytes` along M or N, both multiples of 16. One
// instruction reads two core matrices along K; advance(2 * k_bytes) moves to the next two. A box of (rows, 16 bytes),
// loaded with SWIZZLE_NONE, is a column of core matrices. ISA: "Strides".
template <Swizzle Mode>
__device__ MatrixDescriptor k_major(const void* tile, unsigned k_bytes, unsigned mn_bytes) {
    static_assert(Mode == SWIZZLE_NONE, "k_major: the distances follow from a swizzle; k_major<SWIZZLE_128B>(tile)");
    return {matrix_descriptor_bits<Mode>(smem_address(tile), k_bytes, mn_bytes)};
}
template <Swizzle Mode>
__device__ MatrixDescriptor mn_major(const void* tile, unsigned k_bytes, unsigned mn_bytes) {
    static_assert(Mode == SWIZZLE_NONE, "mn_major: the distances follow from a swizzle and k_rows, one number");
    return {matrix_descriptor_bits<Mode>(smem_address(tile), k_bytes, mn_bytes)};
}

// ---- typed operands ----

// A matrix in shared memory with its type. For a matrix x, -x is the negated matrix; Scale is imm-scale-a or
// imm-scale-b.
template <Input Type, Major Index = Major::k, int Scale = 1>
struct MatrixOf {
    static_assert(Index == Major::k || input_bytes(Type) == 2, "only bf16 and f16 are read with M or N innermost");
    static constexpr Input type = Type;
    static constexpr Major major = Index;
    static constexpr int scale = Scale;
    static constexpr bool in_registers = false;

    MatrixDescriptor descriptor;

    __device__ constexpr MatrixOf advance(unsigned bytes) const { return {descriptor.advance(bytes)}; }
    __device__ constexpr MatrixOf<Type, Index, -Scale> operator-() const { return {descriptor}; }
};

// The matrix A in registers, in the order of load_matrices(). Register 0 of thread t of the warpgroup contains four
// bytes of row t / 32 * 16 + t % 32 / 4, from byte t % 4 * 4 on. Register 2 contains the four bytes that start 16 bytes
// later. Registers 1 and 3 contain the same bytes of the row 8 below. If B has another type than A, pass
// FragmentOf<Input::e4m3>{a}. ISA: "Register Fragments for wgmma.mma_async.m64nNk16".
template <Input Type>
struct FragmentOf {
    static constexpr Input type = Type;
    static constexpr Major major = Major::k;
    static constexpr int scale = 1;
    static constexpr bool in_registers = true;

    const unsigned (&registers)[4];
};

// ---- operands of typed tiles (tile.cuh) ----

// Returns the part of a Tile<..., Box<rows, k>, Mode> from element (row, k) on. `row` is a multiple of 8, and `k` is a
// multiple of the number of elements that one instruction covers. The tile may consist of several boxes.
template <Input Type, typename Tile, Swizzle Mode = Tile::swizzle()>
__device__ MatrixOf<Type> k_major(const Tile& tile, unsigned row = 0, unsigned k = 0) {
    static_assert(Mode != SWIZZLE_NONE, "without a swizzle: k_major<SWIZZLE_NONE>(address, k_bytes, mn_bytes)");
    static_assert(sizeof(typename Tile::Element) == input_bytes(Type), "k_major: the tile has other elements");
    const unsigned bytes = k / Tile::box_width() * Tile::box_bytes() + row * Tile::pitch_bytes() +
                           k % Tile::box_width() * input_bytes(Type);
    return {k_major<Mode>(tile.storage).advance(bytes)};
}
template <typename Tile, Swizzle Mode = Tile::swizzle()>
__device__ auto k_major(const Tile& tile, unsigned row = 0, unsigned k = 0) {
    return k_major<input_of<Tile>()>(tile, row, k);
}

// Returns the part of a Tile<..., Box<k, columns>, Mode> from element (k, column) on, where M or N is innermost. `k` is
// a multiple of 16, and `column` is a multiple of a box's width.
template <typename Tile, Swizzle Mode = Tile::swizzle()>
__device__ auto mn_major(const Tile& tile, unsigned k = 0, unsigned column = 0) {
    static_assert(Mode != SWIZZLE_NONE, "without a swizzle: mn_major<SWIZZLE_NONE>(address, k_bytes, mn_bytes)");
    const unsigned bytes = column / Tile::box_width() * Tile::box_bytes() + k * Tile::pitch_bytes();
    constexpr unsigned eight_rows = 8 * Tile::pitch_bytes();
    const auto whole = matrix_descriptor_bits<Mode>(smem_address(tile.storage), Tile::box_bytes(), eight_rows);
    return MatrixOf<input_of<Tile>(), Major::mn>{MatrixDescriptor{whole}.advance(bytes)};
}

// ---- order ----

// wgmma.fence: call it before the first wgmma(), and before each wgmma() with sums or A registers that other
// instructions have accessed. Pass these registers, so that the compiler keeps their computation before the fence, as
// the ISA requires.
template <typename... Registers>
__device__ __forceinline__ void wgmma_fence(Registers&... registers) {
    require_wgmma<char[1 + sizeof...(Registers)]>();
    (pin(registers), ...);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// wgmma.commit_group: puts the wgmma() calls since the last commit into one group.
template <typename Use = char>
__device__ __forceinline__ void wgmma_commit() {
    require_wgmma<Use>();
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// wgmma.wait_group: waits until at most `Pending` groups are unfinished. Afterwards the tiles and A registers of the
// finished groups may be overwritten, and their sums may be read. Pass these registers, so that the compiler moves no
// use of these registers before the wait.
template <int Pending, typename... Registers>
__device__ __forceinline__ void wgmma_wait(Registers&... registers) {
    static_assert(0 <= Pending && Pending < 8, "wgmma_wait: 0 to 7 groups");
    require_wgmma<char[1 + Pending + sizeof...(Registers)]>();
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
    (pin(registers), ...);
}

// ---- multiply and accumulate ----

// These checks cover the types of a product, and the layouts of A and B.
template <typename OperandA, typename OperandB, bool Satfinite = false>
struct WgmmaForm {
    static constexpr Input a = OperandA::type, b = OperandB::type;
    static constexpr bool in_registers = OperandA::in_registers;
    static constexpr int scale_a = OperandA::scale, scale_b = OperandB::scale;
    static constexpr int trans_a = OperandA::major == Major::mn, trans_b = OperandB::major == Major::mn;
    static constexpr int exponent_a = exponent_bits(a), exponent_b = exponent_bits(b);
    static constexpr bool satfinite = Satfinite;
};

// The instructions of one kind of product. Each header defines one kind. Include only the headers that you need,
// because each costs compile time.
template <Product Kind>
struct Wgmma {
    static constexpr bool here = false;   // a header sets true
};

// bf16 and f16 with f32 accumulators.
template <>
struct Wgmma<Product::bf16_or_f16> {
    static constexpr bool here = true;

    template <typename Form, int Columns, int Count, typename Operand>
    __device__ static __forceinline__ void multiply(float (&sums)[Count], const Operand& a, MatrixDescriptor b,
                                                    int accumulate) {
        if constexpr (Form::a == Input::bf16) {
            CUDA_TMA_EACH(F32, 16, "+f", "k16.f32.bf16.bf16")
        } else {
            CUDA_TMA_EACH(F32, 16, "+f", "k16.f32.f16.f16")
        }
    }
};

template <typename Form, typename Sum, int Count, typename Operand>
__device__ __forceinline__ void wgmma_of(Sum (&sums)[Count], const Operand& a, MatrixDescriptor b, bool accumulate) {
    require_wgmma<Form>();
    constexpr Product kind = product_of(sums_of<Sum>, Form::a, Form::b);
    constexpr int n = (kind == Product::f16_sums ? 4 : 2) * Count;
    require_product<kind>();
    static_assert(n % 8 == 0 && 8 <= n && n <= 256, "wgmma: N is a multiple of 8 from 8 to 256");
    static_assert(kind != Product::s32_sums || n <= 24 || n % 16 == 0, "wgmma: N of s8 is 8, 24 or a multiple of 16");
    static_assert(kind == Product::s32_sums || !Form::satfinite, "wgmma_satfinite: s8 and u8 alone");
    static_assert(kind != Product::s32_sums || Form::scale_a + Form::scale_b == 2, "wgmma: s8 and u8 have no -x");
    constexpr bool here = Wgmma<kind>::here;
    static_assert(kind != Product::tf32 || here, "wgmma of tf32: include <cuda_tma/wgmma_tf32.cuh>");
    static_assert(kind != Product::fp8 || here, "wgmma of e4m3 and e5m2: include <cuda_tma/wgmma_fp8.cuh>");
    static_assert(kind != Product::f16_sums || here, "wgmma with sums in f16: include <cuda_tma/wgmma_f16.cuh>");
    static_assert(kind != Product::s32_sums || here, "wgmma of s8 and u8: include <cuda_tma/wgmma_s8.cuh>");
    if constexpr (has_wgmma && here) Wgmma<kind>::template multiply<Form, n>(sums, a, b, accumulate);
}

// wgmma.mma_async, m64nNkK: adds A (64 x K) times B (K x N) to the sums, or overwrites the sums if `accumulate` is
// false. K is 32 bytes. N is twice the length of `sums`, or for f16 sums four times, because an `unsigned` contains two
// f16 sums. In thread t of the warpgroup, sum i belongs to row t / 32 * 16 + i / 2 % 2 * 8 + t % 32 / 4 and column i /
// 4 * 8 + t % 4 * 2 + i % 2. ISA: "Register Fragments for wgmma.mma_async.m64nNk16".
template <typename Sum, int Count, Input TypeA, Input TypeB, Major MajorA, Major MajorB, int ScaleA, int ScaleB>
__device__ __forceinline__ void wgmma(Sum (&sums)[Count], MatrixOf<TypeA, MajorA, ScaleA> a,
                                      MatrixOf<TypeB, MajorB, ScaleB> b, bool accumulate = true) {
    wgmma_of<WgmmaForm<decltype(a), decltype(b)>>(sums, a.descriptor, b.descriptor, accumulate);
}

// wgmma.mma_async: multiplies like the function above, with A in registers.
template <typename Sum, int Count, Input TypeA, Input TypeB, Major MajorB, int ScaleB>
__device__ __forceinline__ void wgmma(Sum (&sums)[Count], FragmentOf<TypeA> a, MatrixOf<TypeB, MajorB, ScaleB> b,
                                      bool accumulate = true) {
    wgmma_of<WgmmaForm<decltype(a), decltype(b)>>(sums, a.registers, b.descriptor, accumulate);
}
template <typename Sum, int Count, Input Type, Major MajorB, int ScaleB>
__device__ __forceinline__ void wgmma(Sum (&sums)[Count], const unsigned (&a)[4], MatrixOf<Type, MajorB, ScaleB> b,
                                      bool accumulate = true) {
    wgmma(sums, FragmentOf<Type>{a}, b, accumulate);
}

// wgmma.mma_async.satfinite: clamps sums of s8 and u8 to the range of int; sums of wgmma() wrap.
template <typename Sum, int Count, Input TypeA, Input TypeB>
__device__ __forceinline__ void wgmma_satfinite(Sum (&sums)[Count], MatrixOf<TypeA> a, MatrixOf<TypeB> b,
                                                bool accumulate = true) {
    wgmma_of<WgmmaForm<decltype(a), decltype(b), true>>(sums, a.descriptor, b.descriptor, accumulate);
}
template <typename Sum, int Count, Input TypeA, Input TypeB>
__device__ __forceinline__ void wgmma_satfinite(Sum (&sums)[Count], FragmentOf<TypeA> a, MatrixOf<TypeB> b,
                                                bool accumulate = true) {
    wgmma_of<WgmmaForm<decltype(a), decltype(b), true>>(sums, a.registers, b.descriptor, accumulate);
}

// wgmma.mma_async: a template argument is the type of the operands: wgmma<Input::f16>(sums, k_major(a), k_major(b)).
template <Input Type = Input::bf16, Major MajorA = Major::k, Major MajorB = Major::k, typename Sum, int Count>
__device__ __forceinline__ void wgmma(Sum (&sums)[Count], MatrixDescriptor a, MatrixDescriptor b,
                                      bool accumulate = true) {
    wgmma(sums, MatrixOf<Type, MajorA>{a}, MatrixOf<Type, MajorB>{b}, accumulate);
}
template <Input Type = Input::bf16, Major MajorB = Major::k, typename Sum, int Count>
__device__ __forceinline__ void wgmma(Sum (&sums)[Count], const unsigned (&a)[4], MatrixDescriptor b,
                                      bool accumulate = true) {
    wgmma(sums, FragmentOf<Type>{a}, MatrixOf<Type, MajorB>{b}, accumulate);
}

}  // namespace cuda_tma

#include <cuda_tma/wgmma_macros_end.cuh>
