// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/tensor_map_replace.cuh: changes of tensor maps on the GPU, for sizes and addresses that are unknown on the
// host. One thread copies a map to shared memory and changes it. A warp then copies the map to global memory, and each
// thread that uses the map acquires it:
//
//     __shared__ TensorMap mine;
//     if (threadIdx.x == 0) {
//         for (int i = 0; i < 16; ++i) mine.opaque[i] = map.opaque[i];   // a map of the same kind
//         replace_global_address(mine, rows + first * row_bytes);
//         replace_global_dim<1>(mine, count);
//     }
//     if (threadIdx.x < 32) {
//         __syncwarp();
//         copy_tensor_map_release(&maps[blockIdx.x], mine);
//     }
//     __syncthreads();                                                   // then, in any synchronized CTA,
//     fence_tensor_map_acquire(maps[i]);                                 // in each thread that uses it:
//     load(tile, maps[i], ...);
//
// Dimensions are in the driver's order, innermost first. Values are those that the driver's encoder takes. The
// functions do not check the values, but the encoder's rules apply (docs/rules.md). The maps must be tiled, and the
// functions need CUDA 12.3 or later. ISA: "tensormap.replace".
#pragma once

#include <cuda_tma/scope.cuh>
#include <cuda_tma/target.cuh>
#include <cuda_tma/tensor_map.cuh>

namespace cuda_tma {

#define CUDA_TMA_REPLACE(field, type, ...)                                                                         \
    require_tensormap_replace<Map>();                                                                              \
    static_assert(sizeof(Map) == sizeof(TensorMap), "a tensor map is 128 bytes");                                  \
    asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." type ";" ::"r"(smem_address(&map)),         \
                 __VA_ARGS__ : "memory")

// .global_address: the address of the first element, a multiple of 16.
template <typename Map>
__device__ void replace_global_address(Map& map, const void* address) {
    CUDA_TMA_REPLACE("global_address", "b64 [%0], %1", "l"(__cvta_generic_to_global(address)));
}

// .global_dim: elements.
template <int Dimension, typename Map>
__device__ void replace_global_dim(Map& map, unsigned elements) {
    static_assert(0 <= Dimension && Dimension < 5, "a tensor map has the dimensions 0 to 4, innermost first");
    CUDA_TMA_REPLACE("global_dim", "b32 [%0], %1, %2", "n"(Dimension), "r"(elements));
}

// .global_stride: a stride in bytes, a multiple of 16. Index 0 is the stride of dimension 1, as in the driver's
// globalStrides. (ptxas before CUDA 12.5 uses units of 16 bytes.)
template <int Number, typename Map>
__device__ void replace_global_stride(Map& map, unsigned long long bytes) {
    static_assert(0 <= Number && Number < 4, "strides 0 to 3 are those of dimensions 1 to 4: dimension 0 has none");
#if __CUDACC_VER_MAJOR__ < 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ < 5)
    bytes >>= 4;
#endif
    CUDA_TMA_REPLACE("global_stride", "b64 [%0], %1, %2", "n"(Number), "l"(bytes));
}

// .box_dim: elements, 1 to 256.
template <int Dimension, typename Map>
__device__ void replace_box_dim(Map& map, unsigned elements) {
    static_assert(0 <= Dimension && Dimension < 5, "a tensor map has the dimensions 0 to 4, innermost first");
    CUDA_TMA_REPLACE("box_dim", "b32 [%0], %1, %2", "n"(Dimension), "r"(elements));
}

// .element_stride: 1 to 8.
template <int Dimension, typename Map>
__device__ void replace_element_stride(Map& map, unsigned stride) {
    static_assert(0 <= Dimension && Dimension < 5, "a tensor map has the dimensions 0 to 4, innermost first");
    CUDA_TMA_REPLACE("element_stride", "b32 [%0], %1, %2", "n"(Dimension), "r"(stride));
}

// .rank: 1 to 5; the instruction's operand is the rank minus 1.
template <typename Map>
__device__ void replace_rank(Map& map, unsigned rank) {
    CUDA_TMA_REPLACE("rank", "b32 [%0], %1", "r"(rank - 1));
}

// .elemtype: a value of CUtensorMapDataType, converted to the instruction's own numbers. ptxas sets a bit for TF32 and
// never clears the bit (observed: 13.0 and 13.5, sm_90a and sm_100a; docs/fields.md); this function clears it first.
template <int DataType, typename Map>
__device__ void replace_data_type(Map& map) {
    static_assert(0 <= DataType && DataType < 16, "a data type is a value of CUtensorMapDataType, 0 to 15");
    if constexpr (DataType >= 13) require_tensormap_replace_packed<Map>();
    constexpr bool is_tf32 = DataType == 11 || DataType == 12;
    if constexpr (!is_tf32)
        asm volatile("red.shared::cta.and.b32 [%0 + 8], %1;" ::"r"(smem_address(&map)), "n"(~(1 << 16)) : "memory");
    constexpr int number = DataType == 8 ? 9 : DataType == 9 ? 10 : DataType == 10 ? 8 : DataType;
    CUDA_TMA_REPLACE("elemtype", "b32 [%0], %1", "n"(number));
}

// .interleave_layout: a value of CUtensorMapInterleave (0 for none, 1 for 16 bytes, 2 for 32 bytes).
template <int Interleave, typename Map>
__device__ void replace_interleave(Map& map) {
    static_assert(0 <= Interleave && Interleave < 3, "an interleave is a value of CUtensorMapInterleave, 0 to 2");
    CUDA_TMA_REPLACE("interleave_layout", "b32 [%0], %1", "n"(Interleave));
}

// .swizzle_mode, and .swizzle_atomicity if the target has it: a value of CUtensorMapSwizzle, such as SWIZZLE_128B.
template <int Swizzle, typename Map>
__device__ void replace_swizzle(Map& map) {
    static_assert(0 <= Swizzle && Swizzle < 7, "a swizzle is a value of CUtensorMapSwizzle, 0 to 6");
    if constexpr (Swizzle > 3) require_tensormap_replace_atomicity<Map>();
    CUDA_TMA_REPLACE("swizzle_mode", "b32 [%0], %1", "n"(Swizzle > 3 ? 3 : Swizzle));
    if constexpr (has_tensormap_replace_atomicity) {
        CUDA_TMA_REPLACE("swizzle_atomicity", "b32 [%0], %1", "n"(Swizzle > 3 ? Swizzle - 3 : 0));
    }
}

// .fill_mode: a value of CUtensorMapFloatOOBfill (0 for zeros, 1 for NaNs).
template <int Fill, typename Map>
__device__ void replace_oob_fill(Map& map) {
    static_assert(0 <= Fill && Fill < 2, "a fill is a value of CUtensorMapFloatOOBfill, 0 or 1");
    CUDA_TMA_REPLACE("fill_mode", "b32 [%0], %1", "n"(Fill));
}

#undef CUDA_TMA_REPLACE

// Sets two fields that the driver's encoder stores but no copy reads (docs/fields.md): the bytes of a box and the
// period of the swizzle. Call this function only if a map must equal the host's map in every byte.
__device__ constexpr void set_derived_bytes(TensorMap& map, unsigned transfer_bytes, unsigned swizzle_repeat_bytes) {
    map.opaque[8] = map.opaque[8] >> 32 << 32 | transfer_bytes;
    map.opaque[9] = map.opaque[9] >> 32 << 32 | swizzle_repeat_bytes;
}

// tensormap.cp_fenceproxy: copies the 128 bytes from shared to global memory, and then releases them like
// fence_tensor_map_release(). All threads of a warp call it together. Users of the map synchronize with the warp and
// then call fence_tensor_map_acquire(); with Scope::sys they may be on any GPU. ISA: "tensormap.cp_fenceproxy".
template <Scope Where = Scope::gpu>
__device__ void copy_tensor_map_release(TensorMap* global, const TensorMap& shared) {
    static_assert(Where == Scope::gpu || Where == Scope::sys, "copy_tensor_map_release: Scope::gpu or Scope::sys");
#define CUDA_TMA_COPY(scope)                                                                                       \
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release." scope                    \
                 ".sync.aligned [%0], [%1], 128;"                                                                  \
                 ::"l"(__cvta_generic_to_global(global)), "r"(smem_address(&shared)) : "memory")
    if constexpr (Where == Scope::gpu)
        CUDA_TMA_COPY("gpu");
    else
        CUDA_TMA_COPY("sys");
#undef CUDA_TMA_COPY
}

}  // namespace cuda_tma
