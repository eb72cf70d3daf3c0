// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/tensor_map.cuh: the tensor map in a kernel, and positions in a tensor.
#pragma once

#include <cuda_tma/barrier.cuh>

namespace cuda_tma {

// A tensor map, which the host passes as a parameter `const __grid_constant__ TensorMap` of 128 bytes. TensorMap has
// the layout and alignment of the driver's CUtensorMap (cuda.h, CUDA 13), so a kernel may name either type. ISA:
// "Tensor-map".
struct alignas(128) TensorMap {
    unsigned long long opaque[16];

#if defined(__CUDACC_RTC__)   // nvcc also compiles the host's code, which copies a kernel's arguments
    // The TMA unit cannot read a copy of a map, because the copy is in local memory. The compiler prints this reason.
    TensorMap() = default;
    [[deprecated("the TMA unit reads a map where it lies: take it as const TensorMap&")]]
    TensorMap(const TensorMap&) = delete;
    TensorMap& operator=(const TensorMap&) = delete;
#endif
};
static_assert(sizeof(TensorMap) == 128, "a tensor map is 128 bytes");

// Returns a CUtensorMap, or another type of the same 128 bytes, as a TensorMap.
template <typename Map>
__device__ const TensorMap& as_tensor_map(const Map& map) {
    static_assert(sizeof(Map) == sizeof(TensorMap), "a tensor map is 128 bytes");
    return reinterpret_cast<const TensorMap&>(map);
}

// Returns the address of a map that the TMA unit can read: in kernel parameters, constant memory or global memory.
__device__ inline const TensorMap* map_address(const TensorMap& map) {
    refuse_local_map_if(__isLocal(&map) && !__isGridConstant(&map));
    return &map;
}

// The start of a box, innermost dimension first, in elements: Coordinates{column, row}. A load may start outside the
// tensor, also at negative coordinates. The coordinates of a store or reduction must not be negative.
template <int Rank>
struct Coordinates {
    int value[5];

    template <typename... Index>
    __device__ constexpr explicit Coordinates(Index... index) : value{static_cast<int>(index)...} {
        static_assert(1 <= Rank && Rank <= 5, "a tensor map has 1 to 5 dimensions");
        static_assert(sizeof...(Index) == Rank, "one coordinate for each dimension");
        static_assert((is_index<Index> && ...), "coordinates are integers: elements of the tensor");
        refuse_coordinate_beyond_32_bits_if((is_beyond_32_bits(index) || ...));
    }

};
template <typename... Index>
Coordinates(Index...) -> Coordinates<sizeof...(Index)>;

// The start of a store or a reduction. A negative coordinate ends the context.
template <int Rank>
__device__ void refuse_store_at(Coordinates<Rank> at) {
    refuse_store_before_the_tensor_if(at.value[0] < 0);
    refuse_store_before_the_tensor_if(at.value[1] < 0);
    refuse_store_before_the_tensor_if(at.value[2] < 0);
    refuse_store_before_the_tensor_if(at.value[3] < 0);
    refuse_store_before_the_tensor_if(at.value[4] < 0);
}

// The position of an im2col load in the filter, innermost spatial dimension first: Offsets{s, r}. Each offset is 0 to
// 65535 in a map of rank 3, 0 to 255 in rank 4, and 0 to 31 in rank 5. ISA: "im2col mode".
template <int Count>
struct Offsets {
    unsigned short value[3];

    template <typename... Index>
    __device__ constexpr explicit Offsets(Index... index) : value{static_cast<unsigned short>(index)...} {
        static_assert(1 <= Count && Count <= 3, "an im2col map has 1 to 3 spatial dimensions");
        static_assert(sizeof...(Index) == Count, "one offset for each spatial dimension");
        static_assert((is_index<Index> && ...), "offsets are integers: pixels of the filter");
        constexpr int most = Count == 1 ? 65535 : Count == 2 ? 255 : 31;
        refuse_offset_out_of_range_if((is_not_from_0_to(most, index) || ...));
    }

};
template <typename... Index>
Offsets(Index...) -> Offsets<sizeof...(Index)>;

// prefetch.tensormap: prefetches the 128 bytes of the map for the first copy. ISA: "prefetch, prefetchu".
__device__ inline void prefetch_tensor_map(const TensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map_address(map)) : "memory");
}

// fence.proxy.tensormap release: call it after ordinary writes to a map in global memory (CUDA 12.3 and later). ISA:
// "membar, fence".
__device__ inline void fence_tensor_map_release() {
    asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
}

// fence.proxy.tensormap release with scope .sys, for a map that another GPU uses.
__device__ inline void fence_tensor_map_release_sys() {
    asm volatile("fence.proxy.tensormap::generic.release.sys;" ::: "memory");
}

// fence.proxy.tensormap acquire: call it before the next copy in each thread that uses the map, also in the writing
// thread. The scope is .sys, which also covers a map that the host has copied. Source: CUDA programming guide, on
// modified tensor maps.
__device__ inline void fence_tensor_map_acquire(const TensorMap& map) {
    asm volatile("fence.proxy.tensormap::generic.acquire.sys [%0], 128;" ::"l"(map_address(map)) : "memory");
}

}  // namespace cuda_tma
