// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/output.cuh: the output of a product with any element type: the scaling, the bias and the activation of sums,
// and an epilogue for elements of 8 and 32 bits. For elements of 16 bits, epilogue.cuh overlaps its stores with the next
// tile.
//
//     using C = Tile<UINT8, Box<16, 128>>;                     // 16 rows of a warp, 128 columns of e4m3
//     DirectEpilogue<E4m3, C, 2> out(buffers[threadIdx.x / 32]);
//     out.take(sums, c_map, Coordinates{n, m});                // stores the whole tile
//     out.finish();
#pragma once

#include <cuda_tma/epilogue.cuh>
#include <cuda_tma/input.cuh>

namespace cuda_tma {

using Int8 = signed char;
using Uint8 = unsigned char;

// The driver's data type of an element. The tensor map does not distinguish the 8-bit types.
template <typename Element> constexpr DataType data_type_of_element = UINT8;
template <> constexpr DataType data_type_of_element<float> = FLOAT32;
template <> constexpr DataType data_type_of_element<int> = INT32;
template <> constexpr DataType data_type_of_element<F16> = FLOAT16;
template <> constexpr DataType data_type_of_element<Bf16> = BFLOAT16;

template <typename Element> constexpr bool is_integer = Element(1) / 2 == 0;
template <int Exponent, int Fraction> constexpr bool is_integer<NarrowFloat<Exponent, Fraction>> = false;

// Returns a value as an element. An integer element has the nearest value in its range (ties to even).
template <typename Element>
__device__ Element element_of(int value) {
    if constexpr (sizeof(Element) == 1 && is_integer<Element>) {
        constexpr int LEAST = Element(-1) < 0 ? -128 : 0;
        return Element(min(max(value, LEAST), LEAST + 255));
    } else if constexpr (is_integer<Element>) return value;
    else return Element(float(value));
}
template <typename Element>
__device__ Element element_of(float value) {
    if constexpr (is_integer<Element>) return element_of<Element>(__float2int_rn(value));
    else return Element(value);
}

// Returns the two f16 sums of an accumulator (wgmma_f16.cuh) as floats.
__device__ inline void unpack(unsigned pair, float& first, float& second) {
    asm("{.reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}"
        : "=f"(first), "=f"(second) : "r"(pair));
}

// ---- completion ----

enum class Activation { none, relu, gelu, silu };

template <Activation Kind>
__device__ float activated(float x) {
    if (Kind == Activation::relu) return fmaxf(x, 0);
    if (Kind == Activation::gelu) return 0.5f * x * (1 + erff(x * 0.70710678f));
    if (Kind == Activation::silu) return __fdividef(x, 1 + __expf(-x));
    return x;
}

template <typename Type> constexpr bool is_void = false;
template <> constexpr bool is_void<void> = true;

// The place of the first element of some sums in the output.
struct Corner { int row, column, batch; };

// Completes values to activation(alpha * value + beta * (the former output) + bias). `former_row` and `former_batch`
// are the distances of its rows and matrices in elements. The bias has an element for each column, or for each row.
template <typename Element, typename Bias, bool IsScaled, bool IsBiasOfRows, Activation Kind, Turn Turned>
struct Completion {
    static constexpr bool has_bias = !is_void<Bias>, is_plain = !has_bias && !IsScaled && Kind == Activation::none;

    float alpha, beta;
    const Element* former;
    long long former_row, former_batch;
    const Bias* bias;
    int rows, columns;   // of the output

    // Completes a thread's values of wgmma(), whose first element in the output is at the corner.
    template <int Count>
    __device__ __forceinline__ void operator()(float (&values)[Count], Corner first) const {
        constexpr bool IS_TURNED = Turned == Turn::transposed;
        const int lane = threadIdx.x % 32, down = threadIdx.x % 128 / 32 * 16 + lane / 4, across = lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < Count; ++i) {
            const int below = down + i / 2 % 2 * 8, beside = across + i / 4 * 8 + i % 2;
            const int row = first.row + (IS_TURNED ? beside : below);
            const int column = first.column + (IS_TURNED ? below : beside);
            if constexpr (IsScaled) {
                values[i] *= alpha;
                if (beta != 0 && row < rows && column < columns)
                    values[i] += beta * float(former[first.batch * former_batch + row * former_row + column]);
            }
            if constexpr (has_bias) {
                const int at = IsBiasOfRows ? row : column;
                if (at < (IsBiasOfRows ? rows : columns)) values[i] += float(bias[at]);
            }
            values[i] = activated<Kind>(values[i]);
        }
    }
};

// Passes completed sums to an epilogue: floats, ints, or pairs of f16. Sums that stay ints are exact.
template <typename Output, typename Sum, int Count, typename Complete, typename Store>
__device__ __forceinline__ void take(Output& out, Sum (&sums)[Count], const Complete& complete, const Store& to,
                                     Corner first) {
    const Coordinates at{first.column, first.row};
    if constexpr (sums_of<Sum> == Sums::f32) {
        if constexpr (!Complete::is_plain) complete(sums, first);
        out.take(sums, to, at);
    } else if constexpr (sums_of<Sum> == Sums::s32 && Complete::is_plain && Output::takes_ints) {
        out.take(sums, to, at);
    } else {
        constexpr int IN_ONE = sums_of<Sum> == Sums::f16 ? 2 : 1;
        float values[IN_ONE * Count];
#pragma unroll
        for (int i = 0; i < Count; ++i) {
            if constexpr (IN_ONE == 2) unpack(sums[i], values[2 * i], values[2 * i + 1]);
            else values[i] = sums[i];
        }
        if constexpr (!Complete::is_plain) complete(values, first);
        out.take(values, to, at);
    }
}

// ---- epilogue ----

// An epilogue with the interface of Epilogue, which stores each tile at once. The elements of a part are of any type.
template <typename Element, typename Part, int Parts, Turn Turned = Turn::none, int Buffers = 2,
          typename Store = ToMap<Part>>
class DirectEpilogue {
    using Shape = PartOfSums<Part, Turned>;

public:
    static constexpr bool takes_ints = true;

    __device__ __forceinline__ explicit DirectEpilogue(Part (&buffers)[Buffers]) : buffers(buffers) {}

    // Stores the values of a tile. `at` contains the coordinates at which the warpgroup's 64 rows start in the tensor.
    template <typename Value, int Count>
    __device__ __forceinline__ void take(const Value (&values)[Count], const Store& to, Coordinates<2> at) {
        static_assert(2 * Count == Parts * Shape::columns(), "take: a thread has columns / 2 values of all parts");
        at.value[Shape::is_turned() ? 0 : 1] += threadIdx.x % 128 / Shape::threads() * Shape::rows();
#pragma unroll
        for (int i = 0; i < Parts; ++i, at.value[Shape::is_turned() ? 1 : 0] += Shape::columns()) {
            Part& buffer = buffers[i % Buffers];
            // Stores of the preceding tile may still read any buffer.
            if (Shape::is_first()) wait_for_buffer(i);
            Shape::sync();
            write(buffer, values + i * Shape::columns() / 2);
            fence_proxy_async();   // makes each thread's writes visible to TMA
            Shape::sync();         // TMA starts after all threads have written
            if (Shape::is_first()) {
                to(at, buffer);
                commit_group();
            }
        }
    }

    __device__ void store_next() {}

    // Waits until TMA has read the parts, because shared memory ends with the CTA.
    __device__ void finish() { wait_group_read(); }
    __device__ void finish(Part (&)[Parts]) { finish(); }

private:
    struct alignas(2 * sizeof(Element)) Pair { Element first, second; };

    Part (&buffers)[Buffers];

    template <typename Value>
    __device__ __forceinline__ static void write(Part& buffer, const Value* values) {
        const unsigned lane = threadIdx.x % 32, first_row = threadIdx.x % Shape::threads() / 32 * 16 + lane / 4;
#pragma unroll
        for (int i = 0; i < Shape::columns() / 2; i += 2) {
            const unsigned row = first_row + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2;
            const Pair pair{element_of<Element>(values[i]), element_of<Element>(values[i + 1])};
            if constexpr (Shape::is_turned()) {
                buffer.template as<Element>(column, row) = pair.first;
                buffer.template as<Element>(column + 1, row) = pair.second;
            } else {
                buffer.template as<Pair>(row, column) = pair;
            }
        }
    }

    __device__ __forceinline__ static void wait_for_buffer(int part) {
        if (part == 0) wait_group_read<0>();
        else wait_group_read<Buffers - 1>();
    }
};

}  // namespace cuda_tma
