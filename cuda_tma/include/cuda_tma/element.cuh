// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/element.cuh: the data types of tensor maps, and their elements in shared memory. Each 16-bit float format is
// a C++ type. The type converts to and from `float`, and returns the bits of a value:
//
//     __shared__ Tile<BFLOAT16, Box<32, 64>> tile;
//     const float value = tile(row, column);               // 1.0f for 0x3f80
//     tile(row, column) *= 2;                              // rounded to nearest even
//     const unsigned short bits = tile(row, column).bits();
//
// A map does not contain the format of fp8, fp6 and fp4 elements, so the kernel names it: tile.as<E4m3>(row, column).
#pragma once

namespace cuda_tma {

// CUtensorMapDataType. FLOAT32 and TFLOAT32 have the same C++ type, but their loads produce different bits.
enum DataType : int {
    UINT8, UINT16, UINT32, INT32, UINT64, INT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16, FLOAT32_FTZ, TFLOAT32,
    TFLOAT32_FTZ, U4_ALIGN8B, U4_ALIGN16B, U6_ALIGN16B,
};

// ---- narrow floats ----

template <bool> struct If {};
template <> struct If<true> { using Type = int; };

template <bool IsWide> struct NarrowBits { using Type = unsigned char; };
template <> struct NarrowBits<true> { using Type = unsigned short; };

// A floating-point number with a sign, `Exponent` bits of exponent and `Fraction` bits of fraction. ISA: "Alternate
// Floating-Point Data Formats". Arithmetic uses float; an assignment rounds the result to nearest even.
template <int Exponent, int Fraction>
struct NarrowFloat {
    using Bits = typename NarrowBits<(Exponent + Fraction > 7)>::Type;

    NarrowFloat() = default;
    __device__ NarrowFloat(float value) : content(rounded(value)) {}

    __device__ static NarrowFloat from_bits(Bits bits) {
        NarrowFloat made;
        made.content = bits;
        return made;
    }
    __device__ Bits bits() const { return content; }
    __host__ __device__ static constexpr int bit_count() { return 1 + Exponent + Fraction; }

    __device__ operator float() const {
        if constexpr (Exponent == 8) return __uint_as_float(unsigned(content) << 16);
        else if constexpr (Fraction == 10) {
            float value;
            asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(content));
            return value;
        } else return of_small();
    }

    // An integer could mean the value or the bits, so the conversion from an integer is not implicit.
    template <typename Integer, Integer = 0, typename If<(Integer(1) / 2 == 0 && Integer(2) != Integer(1))>::Type = 0>
    __device__ operator Integer() const {
        static_assert(sizeof(Integer) == 0,
                      "an element converts to float: int(float(x)) is its value, x.bits() its bits");
        return 0;
    }

    __device__ NarrowFloat& operator+=(float value) { return *this = float(*this) + value; }
    __device__ NarrowFloat& operator-=(float value) { return *this = float(*this) - value; }
    __device__ NarrowFloat& operator*=(float value) { return *this = float(*this) * value; }
    __device__ NarrowFloat& operator/=(float value) { return *this = float(*this) / value; }

private:
    Bits content;

    // Returns the value of a number of at most 8 bits. A subnormal value is a multiple of the smallest positive value.
    __device__ float of_small() const {
        constexpr unsigned ONE = 1u << Fraction, LARGEST = (1u << Exponent) - 1;
        constexpr int BIAS = (1 << (Exponent - 1)) - 1;
        constexpr float SMALLEST = 1.0f / (1u << (BIAS + Fraction - 1));
        const unsigned sign = unsigned(content) >> (Exponent + Fraction) << 31;
        const unsigned exponent = content >> Fraction & LARGEST, fraction = content & (ONE - 1);
        const float subnormal = fraction * SMALLEST;
        unsigned size = (exponent + 127 - BIAS) << 23 | fraction << (23 - Fraction);
        if (exponent == 0) size = __float_as_uint(subnormal);
        if (Exponent == 5 && exponent == LARGEST) size |= 0x7f800000;              // e5m2 has infinity and NaN
        if (Exponent == 4 && (content & 0x7f) == 0x7f) size = 0x7fffffff;          // e4m3 has NaN and no infinity
        return __uint_as_float(sign | size);
    }

    __device__ static Bits rounded(float value) {
        static_assert(Exponent + Fraction >= 7, "fp6 and fp4 elements are made of bits: from_bits(bits)");
        const float zero = 0;                              // this value becomes the upper byte of a pair
        unsigned short bits;
        if constexpr (Exponent == 8) asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
        if constexpr (Fraction == 10) asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
        if constexpr (Fraction == 2)
            asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(zero), "f"(value));
        if constexpr (Fraction == 3)
            asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(zero), "f"(value));
        return Bits(bits);
    }
};

// The operators convert to float, or to double if the other operand is a double.
template <typename Value> constexpr bool is_narrow = false;
template <int Exponent, int Fraction> constexpr bool is_narrow<NarrowFloat<Exponent, Fraction>> = true;

template <typename Value> __device__ Value as_operand(Value value) { return value; }
template <int Exponent, int Fraction> __device__ float as_operand(NarrowFloat<Exponent, Fraction> value) { return value; }

#define CUDA_TMA_OPERATOR(sign)                                                                                    \
    template <typename Left, typename Right, typename If<(is_narrow<Left> || is_narrow<Right>)>::Type = 0>         \
    __device__ auto operator sign(Left a, Right b) { return as_operand(a) sign as_operand(b); }
CUDA_TMA_OPERATOR(+)
CUDA_TMA_OPERATOR(-)
CUDA_TMA_OPERATOR(*)
CUDA_TMA_OPERATOR(/)
CUDA_TMA_OPERATOR(==)
CUDA_TMA_OPERATOR(!=)
CUDA_TMA_OPERATOR(<)
CUDA_TMA_OPERATOR(<=)
CUDA_TMA_OPERATOR(>)
CUDA_TMA_OPERATOR(>=)
#undef CUDA_TMA_OPERATOR
template <int Exponent, int Fraction>
__device__ float operator-(NarrowFloat<Exponent, Fraction> a) { return -float(a); }

using Bf16 = NarrowFloat<8, 7>;
using F16 = NarrowFloat<5, 10>;
using E4m3 = NarrowFloat<4, 3>;
using E5m2 = NarrowFloat<5, 2>;
using E2m3 = NarrowFloat<2, 3>;
using E3m2 = NarrowFloat<3, 2>;
using E2m1 = NarrowFloat<2, 1>;

// The number of bits of an element of a packed type, and 0 for other types.
template <typename Value> constexpr int packed_bits = 0;
template <typename Value> constexpr int packed_bits<const Value> = packed_bits<Value>;
template <> constexpr int packed_bits<E2m3> = 6;
template <> constexpr int packed_bits<E3m2> = 6;
template <> constexpr int packed_bits<E2m1> = 4;

// ---- elements of the data types ----

// An element of a packed type is smaller than a byte, so no C++ type represents it.
struct PackedElement {};

template <DataType> struct ElementOf { using Type = PackedElement; };
template <> struct ElementOf<UINT8> { using Type = unsigned char; };
template <> struct ElementOf<UINT16> { using Type = unsigned short; };
template <> struct ElementOf<UINT32> { using Type = unsigned; };
template <> struct ElementOf<INT32> { using Type = int; };
template <> struct ElementOf<UINT64> { using Type = unsigned long long; };
template <> struct ElementOf<INT64> { using Type = long long; };
template <> struct ElementOf<FLOAT16> { using Type = F16; };
template <> struct ElementOf<FLOAT32> { using Type = float; };
template <> struct ElementOf<FLOAT64> { using Type = double; };
template <> struct ElementOf<BFLOAT16> { using Type = Bf16; };
template <> struct ElementOf<FLOAT32_FTZ> { using Type = float; };
template <> struct ElementOf<TFLOAT32> { using Type = float; };
template <> struct ElementOf<TFLOAT32_FTZ> { using Type = float; };

// The number of bytes of 16 elements, the unit of the packed types. ALIGN16B types leave a gap after their data. ISA:
// "Packed Data types".
template <DataType Type>
struct Sixteen {
    __host__ __device__ static constexpr unsigned data_bytes() {
        return Type == U6_ALIGN16B ? 12 : Type >= U4_ALIGN8B ? 8 : 16 * sizeof(typename ElementOf<Type>::Type);
    }
    __host__ __device__ static constexpr unsigned taken_bytes() { return Type >= U4_ALIGN16B ? 16 : data_bytes(); }

    // Returns the offset of an element in its row.
    __host__ __device__ static constexpr unsigned offset(unsigned element) {
        if constexpr (Type < U4_ALIGN8B) return element * (data_bytes() / 16);
        else return element / 16 * taken_bytes() + element % 16 * data_bytes() / 16;
    }
};

// An element of 4 or 6 bits. The element starts at bit `column * bits % 8` of its first byte.
template <typename Value, DataType Type>
__device__ auto packed_element(const unsigned char* first, unsigned column) {
    constexpr unsigned BITS = packed_bits<Value>;
    static_assert(BITS == (Type == U6_ALIGN16B ? 6 : Type >= U4_ALIGN8B ? 4 : 0),
                  "as: E2m1 is for tiles of U4_ALIGN8B and U4_ALIGN16B, E2m3 and E3m2 for U6_ALIGN16B; an element of "
                  "UINT8 holds E4m3, E5m2 or two E2m1");
    const unsigned place = column * BITS % 8;
    const unsigned next = place + BITS > 8 ? first[1] : 0;
    return Value::from_bits((first[0] | next << 8) >> place & ((1 << BITS) - 1));
}

}  // namespace cuda_tma
