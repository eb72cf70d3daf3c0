// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/input.cuh: operand and accumulator types of tensor cores, for wgmma.cuh, mma.cuh and tcgen05.cuh.
#pragma once

namespace cuda_tma {

// The element types of A and B. A and B have the same type, or any combination of e4m3 and e5m2, or of s8 and u8. One
// instruction covers 32 bytes of K: 16 elements of bf16 or f16, 8 elements of tf32, or 32 elements of the 8-bit types.
// Only tcgen05.cuh has the types of 6 and 4 bits.
enum class Input { bf16, f16, tf32, e4m3, e5m2, s8, u8, e2m3, e3m2, e2m1 };

// The innermost index of a tile. The lower-case names are for kernels that define macros K and MN.
enum class Major {
    k, mn,
#ifndef K
    K = k,
#endif
#ifndef MN
    MN = mn,
#endif
};

__host__ __device__ constexpr unsigned input_bytes(Input type) {
    return type == Input::tf32 ? 4 : type == Input::bf16 || type == Input::f16 ? 2 : 1;
}

// The accumulator type: float, or int for s8 and u8. An unsigned contains two f16 sums, the first in the lower half.
enum class Sums { f32, f16, s32, none };
template <typename> constexpr Sums sums_of = Sums::none;
template <> constexpr Sums sums_of<float> = Sums::f32;
template <> constexpr Sums sums_of<unsigned> = Sums::f16;
template <> constexpr Sums sums_of<int> = Sums::s32;

// A kind of product. The name of a kind is its operand type if the accumulators are f32, and otherwise its accumulator
// type.
enum class Product { bf16_or_f16, tf32, fp8, f16_sums, s32_sums, none };

__host__ __device__ constexpr Product product_of(Sums sums, Input a, Input b) {
    const bool fp8 = (a == Input::e4m3 || a == Input::e5m2) && (b == Input::e4m3 || b == Input::e5m2);
    const bool s8 = (a == Input::s8 || a == Input::u8) && (b == Input::s8 || b == Input::u8);
    if (sums == Sums::s32) return s8 ? Product::s32_sums : Product::none;
    if (sums == Sums::f16) return fp8 || (a == Input::f16 && b == Input::f16) ? Product::f16_sums : Product::none;
    if (sums == Sums::none || s8 || (a != b && !fp8) || a >= Input::e2m3) return Product::none;
    return fp8 ? Product::fp8 : a == Input::tf32 ? Product::tf32 : Product::bf16_or_f16;
}

template <Product Kind>
__device__ constexpr void require_product() {
    static_assert(Kind != Product::none,
                  "no such product: A and B are of one type, or e4m3 and e5m2, or s8 and u8; sums are float, of s8 and "
                  "u8 int, of f16, e4m3 and e5m2 also unsigned (two f16)");
}

// The number of exponent bits of e4m3 and e5m2. The mantissa has the rest of the seven bits after the sign.
__host__ __device__ constexpr int exponent_bits(Input type) { return type == Input::e5m2 ? 5 : 4; }

// The tensor-core type of a Tile's data type (a value of the driver: 6 FLOAT16, 9 BFLOAT16, 11 and 12 TFLOAT32). The
// data type does not distinguish the 8-bit types, or float from tf32; for these, pass the type, as in
// k_major<Input::e4m3>(tile).
template <typename Tile>
__host__ __device__ constexpr Input input_of() {
    constexpr int type = Tile::data_type();
    static_assert(type == 6 || type == 9 || type == 11 || type == 12,
                  "say what is multiplied: k_major<Input::e4m3>(tile); only FLOAT16, BFLOAT16 and TFLOAT32 say it");
    return type == 6 ? Input::f16 : type == 9 ? Input::bf16 : Input::tf32;
}

}  // namespace cuda_tma
