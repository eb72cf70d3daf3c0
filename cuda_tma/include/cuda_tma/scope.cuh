// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/scope.cuh: flags in global memory between threads of different CTAs or GPUs. One thread executes a release
// and the other thread an acquire, both at a scope that includes the two threads. One function is one PTX instruction.
//
//     store_bulk(there, tile, bytes, ...); commit_group(); wait_group();   // the bytes are visible to this thread
//     store_release<Scope::sys>(flag, 1u);                                 // makes the bytes visible to a thread
//     while (load_acquire<Scope::sys>(flag) == 0) continue;                // that reads the set flag, on any GPU
//
// If the reading thread reads the data with copies, it calls fence_proxy_async_global() before the copies.
#pragma once

namespace cuda_tma {

// The threads that an operation orders. ISA: "Scope".
enum class Scope { cta, cluster, gpu, sys };

// The macro writes the instruction of CUDA_TMA_FLAG for each scope, and for words of 32 and 64 bits.
#define CUDA_TMA_AT(scope, ...)                                                                                    \
    if constexpr (Where == Scope::scope) {                                                                         \
        if constexpr (sizeof(Word) == 4) {                                                                         \
            CUDA_TMA_FLAG(#scope, "u32", "r", __VA_ARGS__);                                                        \
        } else {                                                                                                   \
            CUDA_TMA_FLAG(#scope, "u64", "l", __VA_ARGS__);                                                        \
        }                                                                                                          \
    }
#define CUDA_TMA_SCOPES(...)                                                                                       \
    static_assert(is_flag<Word>, "a flag is an unsigned or an unsigned long long");                                \
    CUDA_TMA_AT(cta, __VA_ARGS__) CUDA_TMA_AT(cluster, __VA_ARGS__) CUDA_TMA_AT(gpu, __VA_ARGS__)                  \
    CUDA_TMA_AT(sys, __VA_ARGS__)
template <typename Word>
constexpr bool is_flag = false;
template <>
constexpr bool is_flag<unsigned> = true;
template <>
constexpr bool is_flag<unsigned long long> = true;

// st.release: makes this thread's earlier and acquired writes visible to a load_acquire() of the word.
#define CUDA_TMA_FLAG(scope, type, letter, ...) \
    asm volatile("st.release." scope ".global." type " [%0], %1;" ::"l"(address), letter(value) : "memory")
template <Scope Where = Scope::gpu, typename Word>
__device__ void store_release(Word* flag, Word value) {
    const auto address = __cvta_generic_to_global(flag);
    CUDA_TMA_SCOPES()
}
#undef CUDA_TMA_FLAG

// ld.acquire.
#define CUDA_TMA_FLAG(scope, type, letter, ...) \
    asm volatile("ld.acquire." scope ".global." type " %0, [%1];" : "=" letter(value) : "l"(address) : "memory")
template <Scope Where = Scope::gpu, typename Word>
__device__ Word load_acquire(const Word* flag) {
    const auto address = __cvta_generic_to_global(flag);
    Word value;
    CUDA_TMA_SCOPES()
    return value;
}
#undef CUDA_TMA_FLAG

// red.release.add: adds to the word, and releases like store_release(). Several threads may add to the same word.
#define CUDA_TMA_FLAG(scope, type, letter, ...) \
    asm volatile("red.release." scope ".global.add." type " [%0], %1;" ::"l"(address), letter(value) : "memory")
template <Scope Where = Scope::gpu, typename Word>
__device__ void add_release(Word* flag, Word value) {
    const auto address = __cvta_generic_to_global(flag);
    CUDA_TMA_SCOPES()
}
#undef CUDA_TMA_FLAG

// atom.acq_rel.add: adds to the word and returns its earlier value. If other threads have added to this value, their
// earlier writes are visible to this thread.
#define CUDA_TMA_FLAG(scope, type, letter, ...)                                  \
    asm volatile("atom.acq_rel." scope ".global.add." type " %0, [%1], %2;"      \
                 : "=" letter(before) : "l"(address), letter(value) : "memory")
template <Scope Where = Scope::gpu, typename Word>
__device__ Word fetch_add(Word* flag, Word value) {
    const auto address = __cvta_generic_to_global(flag);
    Word before;
    CUDA_TMA_SCOPES()
    return before;
}
#undef CUDA_TMA_FLAG
#undef CUDA_TMA_SCOPES
#undef CUDA_TMA_AT

}  // namespace cuda_tma
