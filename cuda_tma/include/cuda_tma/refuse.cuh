// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/refuse.cuh: checks of values that the compiler knows after inlining and constant folding. Wrong code does
// not assemble, and the assembler prints the reason. In correct code these checks generate no instructions.
//
// The checks need NVRTC of CUDA 13.4 or later, which can test for constants (observed: 13.4 and 13.5 can; 12.0 to 13.3
// and nvcc 13.0 cannot, and check only types). The checks skip values that the compiler does not know, as in a function
// that is not inlined, or with -G. For --Ofast-compile=max, which keeps unreachable code, define CUDA_TMA_NO_REFUSALS.
#pragma once

namespace cuda_tma {

// Each macro defines two functions. The first function does not assemble: it contains an instruction that does not
// exist, and the assembler prints the name of this instruction. The second function calls the first if the compiler
// finds that `wrong` is true. In a constant expression, the compiler reports the first function instead, because it is
// not constexpr. With two separate branches, the compiler removes the branch that is not taken, with optimization and
// without it.
#define CUDA_TMA_REFUSAL(name, sentence)                                                                           \
    __device__ __forceinline__ void name() { asm volatile("cuda_tma_error__" sentence ";"); }                      \
    __device__ __forceinline__ constexpr void name##_if(bool wrong) {                                              \
        if (__builtin_constant_p(wrong)) {                                                                         \
            if (wrong) name();                                                                                     \
        }                                                                                                          \
    }
#if defined(__CUDACC_RTC__) && !defined(__CUDACC_DEBUG__) && !defined(CUDA_TMA_NO_REFUSALS) && defined(__has_builtin)
#define CUDA_TMA_CAN_REFUSE __has_builtin(__builtin_constant_p)
#else
#define CUDA_TMA_CAN_REFUSE 0
#endif
#if !CUDA_TMA_CAN_REFUSE
#undef CUDA_TMA_REFUSAL
#define CUDA_TMA_REFUSAL(name, sentence) \
    __device__ __forceinline__ constexpr void name##_if(bool) {}
#endif
#undef CUDA_TMA_CAN_REFUSE

CUDA_TMA_REFUSAL(refuse_local_map,
                 "this_TensorMap_is_a_copy_in_local_memory"
                 "__declare_the_parameter_as_const___grid_constant___TensorMap_and_pass_it_on_by_reference")
CUDA_TMA_REFUSAL(refuse_address_outside_shared_memory,
                 "this_tile_or_Barrier_is_not_in_shared_memory__declare_it_as___shared___and_a_tile_alignas_128")
CUDA_TMA_REFUSAL(refuse_coordinate_beyond_32_bits,
                 "a_coordinate_has_32_bits_and_counts_elements_from_the_start_of_its_dimension__move_the_map_instead")
CUDA_TMA_REFUSAL(refuse_store_before_the_tensor,
                 "a_store_or_reduction_at_a_negative_coordinate_ends_the_kernel__move_the_map_or_store_a_smaller_box")
CUDA_TMA_REFUSAL(refuse_offset_out_of_range,
                 "an_offset_is_the_position_in_the_filter__from_0_to_65535_in_3D__to_255_in_4D__to_31_in_5D"
                 "__padding_belongs_into_the_coordinates")
CUDA_TMA_REFUSAL(refuse_rows_of_no_tile,
                 "rows_begin_and_end_within_the_tile_and_where_a_tile_may_start"
                 "__with_a_swizzle_at_a_multiple_of_8")
CUDA_TMA_REFUSAL(refuse_scales_outside_their_cell,
                 "a_cell_contains_4_scales__skip_at_most_3_of_ue8m0_and_none_of_ue4m3__later_scales_are_in_another_cell")

#undef CUDA_TMA_REFUSAL

// True if a value is an integer, or converts implicitly to an integer without narrowing, like an enumeration.
using Int64 = long long;
using Uint64 = unsigned long long;
template <typename Index, typename = void>
constexpr bool is_signed_index = false;
template <typename Index>
constexpr bool is_signed_index<Index, decltype(void(Int64{*static_cast<Index*>(nullptr)}))> = true;
template <typename Index, typename = void>
constexpr bool is_unsigned_index = false;
template <typename Index>
constexpr bool is_unsigned_index<Index, decltype(void(Uint64{*static_cast<Index*>(nullptr)}))> = true;
template <typename Index>
constexpr bool is_index = is_signed_index<Index> || is_unsigned_index<Index>;

// Unsigned numbers of any width may wrap: 0u - 1 is -1.
template <typename Index>
__device__ constexpr bool is_beyond_32_bits(Index index) {
    return static_cast<Int64>(index) < -(1ll << 31) || static_cast<Int64>(index) >= 1ll << 32;
}
template <typename Index>
__device__ constexpr bool is_not_from_0_to(Uint64 most, Index index) {
    return static_cast<Uint64>(static_cast<Int64>(index)) > most;
}

}  // namespace cuda_tma
