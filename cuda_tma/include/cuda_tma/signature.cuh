// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/signature.cuh: a kernel's parameters and constants, as the compiler reports them to cuda_tma.compile.
// Kernels do not use this header. For other compilers, kernel.cuh puts the same description into the module.
//
// cuda_tma.compile takes the addresses of both templates as name expressions. (The templates are not const, because
// NVRTC up to CUDA 12.4 puts constants and their names into a namespace of the source.)
#pragma once

struct __half;
struct __nv_bfloat16;

namespace cuda_tma {

// tile.cuh and the headers that it includes define these types. This header comes before every source.
enum DataType : int;
enum Swizzle : int;
enum OobFill : int;
enum L2Promotion : int;
template <int... Extents> struct Box;
template <typename TileType, OobFill Fill, L2Promotion Promotion> struct TiledMap;
template <typename TileType, int Rank, OobFill Fill, L2Promotion Promotion> struct Im2colMap;

namespace description {

enum Kind : int { OTHER, INTEGER, FLOAT, BOOL, POINTER, TILED, IM2COL };

// The description of one parameter. For a typed map, or a pointer to typed maps, the description contains the fields
// that the type determines and the extents, followed by 0. cuda_tma/_compile/parameter_types.py reads these bytes.
struct Parameter {
    int kind, is_pointer, rank, data_type, swizzle, oob_fill, l2_promotion, extents[5];
};

template <int Count>
struct Table {
    int count;
    Parameter parameters[Count];
};

template <typename T> struct Of { __host__ __device__ static constexpr Parameter value() { return {OTHER}; } };
template <Kind Value> struct Is { __host__ __device__ static constexpr Parameter value() { return {Value}; } };
template <> struct Of<bool> : Is<BOOL> {};
template <> struct Of<char> : Is<INTEGER> {};
template <> struct Of<signed char> : Is<INTEGER> {};
template <> struct Of<unsigned char> : Is<INTEGER> {};
template <> struct Of<wchar_t> : Is<INTEGER> {};
template <> struct Of<short> : Is<INTEGER> {};
template <> struct Of<unsigned short> : Is<INTEGER> {};
template <> struct Of<int> : Is<INTEGER> {};
template <> struct Of<unsigned> : Is<INTEGER> {};
template <> struct Of<long> : Is<INTEGER> {};
template <> struct Of<unsigned long> : Is<INTEGER> {};
template <> struct Of<long long> : Is<INTEGER> {};
template <> struct Of<unsigned long long> : Is<INTEGER> {};
template <> struct Of<float> : Is<FLOAT> {};
template <> struct Of<double> : Is<FLOAT> {};
template <> struct Of<__half> : Is<FLOAT> {};
template <> struct Of<__nv_bfloat16> : Is<FLOAT> {};

template <int... Extents>
__host__ __device__ constexpr Parameter with_extents(Parameter found) {
    int at = 0;
    ((found.extents[at++] = Extents), ...);
    return found;
}

template <template <DataType, typename, Swizzle> class Tile, DataType Type, int... Extents, Swizzle Mode, OobFill Fill,
          L2Promotion Promotion>
struct Of<TiledMap<Tile<Type, Box<Extents...>, Mode>, Fill, Promotion>> {
    __host__ __device__ static constexpr Parameter value() {
        return with_extents<Extents...>({TILED, 0, int(sizeof...(Extents)), Type, Mode, Fill, Promotion});
    }
};
template <template <DataType, typename, Swizzle> class Tile, DataType Type, int... Extents, Swizzle Mode, int Rank,
          OobFill Fill, L2Promotion Promotion>
struct Of<Im2colMap<Tile<Type, Box<Extents...>, Mode>, Rank, Fill, Promotion>> {
    __host__ __device__ static constexpr Parameter value() {
        return with_extents<Extents...>({IM2COL, 0, Rank, Type, Mode, Fill, Promotion});
    }
};

template <typename T> struct Of<const T> : Of<T> {};
template <typename T> struct Of<T*> {
    __host__ __device__ static constexpr Parameter value() {
        Parameter found = Of<T>::value();
        if (found.kind < TILED) return {POINTER};
        found.is_pointer = 1;
        return found;
    }
};

template <typename... T>
__host__ __device__ constexpr Table<sizeof...(T) + 1> table(void (*)(T...)) {   // no array has 0 elements
    return {int(sizeof...(T)), {Of<T>::value()..., Parameter{OTHER}}};
}

}  // namespace description

// &parameters<decltype(&kernel)> is the description of the parameters of a kernel, also of an extern "C" kernel.
template <typename Function>
__device__ auto parameters = description::table(Function{});

// &constant<sizeof(Shared)> is the address of a constant's value.
template <long long Value>
__device__ char constant;

}  // namespace cuda_tma
