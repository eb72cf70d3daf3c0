// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/warpgroup.cuh: functions for warpgroups with different roles: the number of registers, barriers for a part
// of the CTA, and stores of matrices from registers to shared memory. The functions work on every target, but
// setmaxnreg needs a target whose name ends with a or f. One function is one PTX instruction.
#pragma once

#include <cuda_tma/barrier.cuh>
#include <cuda_tma/target.cuh>

namespace cuda_tma {

// ---- registers ----

// setmaxnreg.inc, .dec: sets the number of registers per thread to a multiple of 8, from 24 to 256. All 128 threads of
// a warpgroup call this function together. The kernel has __launch_bounds__(threads, 1), and each warpgroup's role is a
// branch of its own. On sm_90a a wgmma() of N = 256 needs a kernel of at most 384 threads: with 512, ptxas has too few
// registers, regardless of this function (C7602). ISA: "setmaxnreg".
template <int Registers>
__device__ void register_alloc() {
    require_setmaxnreg<char[Registers]>();
    static_assert(24 <= Registers && Registers <= 256 && Registers % 8 == 0,
                  "register_alloc: registers are a multiple of 8 from 24 to 256");
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ void register_dealloc() {
    require_setmaxnreg<char[Registers]>();
    static_assert(24 <= Registers && Registers <= 256 && Registers % 8 == 0,
                  "register_dealloc: registers are a multiple of 8 from 24 to 256");
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

// ---- barriers of a part of the CTA ----
// A CTA has 16 barriers; __syncthreads() uses number 0. `threads` is the number of participating threads, including
// threads that only arrive, and is a multiple of 32. The barrier number is a template argument, because a number in a
// register reserves all 16 barriers, which CTAs on one multiprocessor share. ISA: "bar, barrier".

template <int Number>
__device__ void require_barrier_number() {
    static_assert(0 <= Number && Number < 16, "named barriers have the numbers 0 to 15");
}

// barrier.sync: synchronizes `threads` threads of the CTA, like __syncthreads().
template <int Number>
__device__ void named_barrier_sync(int threads CUDA_TMA_SITE) {
    require_barrier_number<Number>();
    CUDA_TMA_NOTE_BARRIER(Number, threads)
    asm volatile("barrier.sync %0, %1;" ::"n"(Number), "r"(threads) : "memory");
}
__device__ inline void named_barrier_sync(int number, int threads CUDA_TMA_SITE) {
    CUDA_TMA_NOTE_BARRIER(number, threads)
    asm volatile("barrier.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// barrier.arrive: makes earlier writes of this thread visible to threads that call named_barrier_sync(), and does not
// wait. Two warpgroups can alternate: each calls named_barrier_sync() for its own barrier, does its work, and then
// arrives at the other warpgroup's barrier.
template <int Number>
__device__ void named_barrier_arrive(int threads) {
    require_barrier_number<Number>();
    asm volatile("barrier.arrive %0, %1;" ::"n"(Number), "r"(threads) : "memory");
}
__device__ inline void named_barrier_arrive(int number, int threads) {
    asm volatile("barrier.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// ---- output of sums ----

// cvt.rn.bf16x2.f32: rounds two floats to bf16, the first in the lower half. ISA: "cvt".
__device__ inline unsigned bf16x2(float first, float second) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(first), "f"(second));
    return pair;
}

// cvt.rn.f16x2.f32: rounds two floats to f16.
__device__ inline unsigned f16x2(float first, float second) {
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(first), "f"(second));
    return pair;
}

// stmatrix.x4: a warp stores four 8 x 8 matrices of 16-bit elements. Lane i passes the address of row i % 8 of matrix i
// / 8 (16 bytes, aligned). In lane i, m[j] contains elements 2 * (i % 4) and 2 * (i % 4) + 1 of row i / 4 of matrix j,
// like the sums of wgmma() and mma(). ISA: "stmatrix".
__device__ inline void store_matrices(unsigned address, unsigned m0, unsigned m1, unsigned m2, unsigned m3) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 ::"r"(address), "r"(m0), "r"(m1), "r"(m2), "r"(m3) : "memory");
}

// stmatrix.trans: transposes each matrix, so that a row in memory is a column of the sums.
__device__ inline void store_matrices_transposed(unsigned address, unsigned m0, unsigned m1, unsigned m2, unsigned m3) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
                 ::"r"(address), "r"(m0), "r"(m1), "r"(m2), "r"(m3) : "memory");
}

// stmatrix.x2: stores two matrices. Lanes 0 to 15 pass the addresses of their rows.
__device__ inline void store_matrices(unsigned address, unsigned m0, unsigned m1) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(m0), "r"(m1) : "memory");
}
__device__ inline void store_matrices_transposed(unsigned address, unsigned m0, unsigned m1) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};"
                 ::"r"(address), "r"(m0), "r"(m1) : "memory");
}

// ---- clusters ----

[[deprecated("say barrier.in_cta(cta_rank).release_async_read(), or pipeline.release_async_read(at, cta_rank)")]]
__device__ inline void release_at(Barrier& empty, unsigned cta_rank) { empty.in_cta(cta_rank).release_async_read(); }

}  // namespace cuda_tma
