// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/tensor_memory.cuh: the tensor memory of compute capability 10, which contains the sums of tcgen05.cuh. Each
// CTA has 128 lanes x 512 columns of 32 bits. Tests run the functions on the simulator; no test has run them on
// hardware.
//
//     __shared__ unsigned slot;
//     const TensorMemory<256> memory(slot);             // all threads: warp 0 allocates 256 columns
//     ...                                               // a product writes sums to memory.column(0)
//     done.wait(parity);                                // the barrier of its commit()
//     tcgen05::fence_after_thread_sync();
//     float row[32];                                    // a row of the sums for each thread of four warps
//     tcgen05::ld(row, memory.column(0).of_warp());
//     tcgen05::wait_ld(row);                            // the registers are valid
//     ...                                               // at the end of its scope, `memory` frees the columns
//
// The functions of the namespace tcgen05 are PTX instructions of the same names. Whole warps call each function of this
// header. A warp accesses only the quarter of the lanes whose number is the warp's number modulo 4. All instructions of
// a kernel have the same .cta_group: with clusters of pairs, `Ctas` is 2 everywhere. "ISA" is NVIDIA's PTX ISA.
#pragma once

#include <cuda_tma/barrier.cuh>
#include <cuda_tma/pin.cuh>
#include <cuda_tma/target.cuh>

namespace cuda_tma {
namespace tcgen05 {

template <int Ctas>
__device__ constexpr void require_group() {
    require_tcgen05<char[Ctas == 2 ? 2 : 1]>();
    static_assert(Ctas == 1 || Ctas == 2, "tcgen05: the instructions are those of 1 CTA, or of a pair of 2 CTAs");
}

// An address of tensor memory: a lane in the upper 16 bits, and a column in the lower 16 bits. ISA: "Tensor Memory
// Addressing".
struct Address {
    unsigned bits;

    __device__ constexpr Address column(unsigned columns) const { return {bits + columns}; }
    __device__ constexpr Address lane(unsigned lanes) const { return {bits + (lanes << 16)}; }

    // Returns the address in the lanes of this thread's warp, for ld() and st(). The CTA has one dimension.
    __device__ Address of_warp() const { return lane(threadIdx.x / 32 % 4 * 32); }
};

// ---- allocation ----

template <int Columns>
__device__ constexpr void require_columns() {
    static_assert(32 <= Columns && Columns <= 512 && (Columns & (Columns - 1)) == 0,
                  "tcgen05: a number of allocated columns is 32, 64, 128, 256 or 512");
}

// tcgen05.alloc: allocates columns, and writes their address to `slot` in shared memory. The warp waits until the
// columns are free. With Ctas == 2, a warp of each CTA of the pair calls this function. ISA: "tcgen05.alloc".
template <int Columns, int Ctas = 1>
__device__ void alloc(unsigned& slot) {
    require_group<Ctas>();
    require_columns<Columns>();
    asm volatile("tcgen05.alloc.cta_group::%1.sync.aligned.shared::cta.b32 [%0], %2;"
                 ::"r"(smem_address(&slot)), "n"(Ctas), "n"(Columns) : "memory");
}

// tcgen05.dealloc: frees columns. Call it after all uses of the columns, and before the kernel ends.
template <int Columns, int Ctas = 1>
__device__ void dealloc(Address first) {
    require_group<Ctas>();
    require_columns<Columns>();
    asm volatile("tcgen05.dealloc.cta_group::%1.sync.aligned.b32 %0, %2;"
                 ::"r"(first.bits), "n"(Ctas), "n"(Columns) : "memory");
}

// tcgen05.relinquish_alloc_permit: declares that the CTA allocates no more columns, so that another CTA may allocate.
template <int Ctas = 1>
__device__ void relinquish_alloc_permit() {
    require_group<Ctas>();
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(Ctas));
}

// ---- order ----

// tcgen05.fence::before_thread_sync, ::after_thread_sync: order the asynchronous instructions before, or after, a
// barrier between threads. A thread that waits for a commit() calls the second function after its wait.
template <typename Use = char>
__device__ void fence_before_thread_sync() {
    require_tcgen05<Use>();
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
template <typename Use = char>
__device__ void fence_after_thread_sync() {
    require_tcgen05<Use>();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// tcgen05.wait::ld: waits for the ld() calls of this thread. Pass their registers, so that the compiler moves no use of
// these registers before the wait.
template <typename... Registers>
__device__ __forceinline__ void wait_ld(Registers&... registers) {
    require_tcgen05<char[1 + sizeof...(Registers)]>();
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    (pin(registers), ...);
}

// tcgen05.wait::st: waits for the st() calls of this thread.
template <typename Use = char>
__device__ __forceinline__ void wait_st() {
    require_tcgen05<Use>();
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}

// ---- registers ----

template <typename Value> constexpr bool is_register = false;
template <> constexpr bool is_register<float> = true;
template <> constexpr bool is_register<unsigned> = true;
template <> constexpr bool is_register<int> = true;
template <typename Value> constexpr bool is_float = false;
template <> constexpr bool is_float<float> = true;

// The shape of a transfer: `Lanes` lanes, each with `Bits` bits, and more columns for more registers.
template <int Lanes, int Bits, int Count, typename Value>
struct Transfer {
    static_assert((Lanes == 32 && Bits == 32) || (Lanes == 16 && (Bits == 64 || Bits == 128 || Bits == 256)),
                  "tcgen05: the shape of ld and st is 32 x 32, 16 x 64, 16 x 128 or 16 x 256: lanes x bits");
    static_assert(is_register<Value>, "tcgen05: the registers of ld and st are float, unsigned or int");
    static constexpr int registers = Lanes * Bits / 1024;
    static constexpr int repeats = Count / registers;
    static_assert(1 <= repeats && Count <= 128 && (Count & (Count - 1)) == 0,
                  "tcgen05: the number of registers of ld and st is a power of two up to 128, and at least 1 for the "
                  "shapes 32 x 32 and 16 x 64, 2 for 16 x 128 and 4 for 16 x 256");
};

#define CUDA_TMA_TEN(tens)                                                                                         \
    "%" #tens "0, %" #tens "1, %" #tens "2, %" #tens "3, %" #tens "4, %" #tens "5, %" #tens "6, %" #tens "7, "     \
    "%" #tens "8, %" #tens "9"
#define CUDA_TMA_NAMES_1 "%0"
#define CUDA_TMA_NAMES_2 "%0, %1"
#define CUDA_TMA_NAMES_4 "%0, %1, %2, %3"
#define CUDA_TMA_NAMES_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define CUDA_TMA_NAMES_16 CUDA_TMA_TEN() ", %10, %11, %12, %13, %14, %15"
#define CUDA_TMA_NAMES_32 CUDA_TMA_TEN() ", " CUDA_TMA_TEN(1) ", " CUDA_TMA_TEN(2) ", %30, %31"
#define CUDA_TMA_SIXTY                                                                                             \
    CUDA_TMA_TEN() ", " CUDA_TMA_TEN(1) ", " CUDA_TMA_TEN(2) ", " CUDA_TMA_TEN(3) ", " CUDA_TMA_TEN(4) ", "        \
    CUDA_TMA_TEN(5)
#define CUDA_TMA_NAMES_64 CUDA_TMA_SIXTY ", %60, %61, %62, %63"
#define CUDA_TMA_NAMES_128                                                                                         \
    CUDA_TMA_SIXTY ", " CUDA_TMA_TEN(6) ", " CUDA_TMA_TEN(7) ", " CUDA_TMA_TEN(8) ", " CUDA_TMA_TEN(9) ", "        \
    CUDA_TMA_TEN(10) ", " CUDA_TMA_TEN(11) ", %120, %121, %122, %123, %124, %125, %126, %127"

#define CUDA_TMA_HELD_1(held, i) held(values[i])
#define CUDA_TMA_HELD_2(held, i) held(values[i]), held(values[i + 1])
#define CUDA_TMA_HELD_4(held, i) CUDA_TMA_HELD_2(held, i), CUDA_TMA_HELD_2(held, i + 2)
#define CUDA_TMA_HELD_8(held, i) CUDA_TMA_HELD_4(held, i), CUDA_TMA_HELD_4(held, i + 4)
#define CUDA_TMA_HELD_16(held, i) CUDA_TMA_HELD_8(held, i), CUDA_TMA_HELD_8(held, i + 8)
#define CUDA_TMA_HELD_32(held, i) CUDA_TMA_HELD_16(held, i), CUDA_TMA_HELD_16(held, i + 16)
#define CUDA_TMA_HELD_64(held, i) CUDA_TMA_HELD_32(held, i), CUDA_TMA_HELD_32(held, i + 32)
#define CUDA_TMA_HELD_128(held, i) CUDA_TMA_HELD_64(held, i), CUDA_TMA_HELD_64(held, i + 64)

// The operands after the registers are the address, the lanes and bits of the shape, and the number of repetitions.
#define CUDA_TMA_WHERE "r"(at.bits), "n"(Lanes), "n"(Bits), "n"(repeats_of_shape)
#define CUDA_TMA_LD(count, held, modifier, address, lanes, bits, repeats)                                          \
    if constexpr (Count == count)                                                                                  \
        asm volatile("tcgen05.ld.sync.aligned." lanes "x" bits "b.x" repeats modifier ".b32 {"                     \
                     CUDA_TMA_NAMES_##count "}, [" address "];"                                                    \
                     : CUDA_TMA_HELD_##count("=" held, 0) : CUDA_TMA_WHERE : "memory");
#define CUDA_TMA_ST(count, held, modifier, address, lanes, bits, repeats)                                          \
    if constexpr (Count == count)                                                                                  \
        asm volatile("tcgen05.st.sync.aligned." lanes "x" bits "b.x" repeats modifier ".b32 [" address "], {"      \
                     CUDA_TMA_NAMES_##count "};"                                                                   \
                     ::CUDA_TMA_HELD_##count(held, 0), CUDA_TMA_WHERE : "memory");
#define CUDA_TMA_EACH_COUNT(ROW, held, modifier)                                                                   \
    constexpr int repeats_of_shape = Form::repeats;                                                                \
    ROW(1, held, modifier, "%1", "%2", "%3", "%4")                                                                 \
    ROW(2, held, modifier, "%2", "%3", "%4", "%5")                                                                 \
    ROW(4, held, modifier, "%4", "%5", "%6", "%7")                                                                 \
    ROW(8, held, modifier, "%8", "%9", "%10", "%11")                                                               \
    ROW(16, held, modifier, "%16", "%17", "%18", "%19")                                                            \
    ROW(32, held, modifier, "%32", "%33", "%34", "%35")                                                            \
    ROW(64, held, modifier, "%64", "%65", "%66", "%67")                                                            \
    ROW(128, held, modifier, "%128", "%129", "%130", "%131")

// tcgen05.ld: copies cells to registers. With the shape 32 x 32, register i of thread t is the cell of lane t and of
// column i, counted from `at`. The registers are valid after wait_ld(). ISA: "tcgen05.ld", "Data Movement Shape".
template <int Lanes = 32, int Bits = 32, typename Value, int Count>
__device__ __forceinline__ void ld(Value (&values)[Count], Address at) {
    require_tcgen05<Value>();
    using Form = Transfer<Lanes, Bits, Count, Value>;
    if constexpr (is_float<Value>) {
        CUDA_TMA_EACH_COUNT(CUDA_TMA_LD, "f", "")
    } else {
        CUDA_TMA_EACH_COUNT(CUDA_TMA_LD, "r", "")
    }
}

// tcgen05.ld.pack::16b: copies the lower halves of two columns to each register, the first column to the lower half.
template <int Lanes = 32, int Bits = 32, int Count>
__device__ __forceinline__ void ld_pack_16b(unsigned (&values)[Count], Address at) {
    require_tcgen05<char[Count]>();
    using Form = Transfer<Lanes, Bits, Count, unsigned>;
    CUDA_TMA_EACH_COUNT(CUDA_TMA_LD, "r", ".pack::16b")
}

// tcgen05.st: copies registers to cells, in the order of ld(). The cells contain the values after wait_st().
template <int Lanes = 32, int Bits = 32, typename Value, int Count>
__device__ __forceinline__ void st(Address at, const Value (&values)[Count]) {
    require_tcgen05<Value>();
    using Form = Transfer<Lanes, Bits, Count, Value>;
    if constexpr (is_float<Value>) {
        CUDA_TMA_EACH_COUNT(CUDA_TMA_ST, "f", "")
    } else {
        CUDA_TMA_EACH_COUNT(CUDA_TMA_ST, "r", "")
    }
}

// tcgen05.st.unpack::16b: copies the halves of each register to the lower halves of two columns.
template <int Lanes = 32, int Bits = 32, int Count>
__device__ __forceinline__ void st_unpack_16b(Address at, const unsigned (&values)[Count]) {
    require_tcgen05<char[Count]>();
    using Form = Transfer<Lanes, Bits, Count, unsigned>;
    CUDA_TMA_EACH_COUNT(CUDA_TMA_ST, "r", ".unpack::16b")
}

#undef CUDA_TMA_EACH_COUNT
#undef CUDA_TMA_ST
#undef CUDA_TMA_LD
#undef CUDA_TMA_WHERE
#undef CUDA_TMA_HELD_128
#undef CUDA_TMA_HELD_64
#undef CUDA_TMA_HELD_32
#undef CUDA_TMA_HELD_16
#undef CUDA_TMA_HELD_8
#undef CUDA_TMA_HELD_4
#undef CUDA_TMA_HELD_2
#undef CUDA_TMA_HELD_1
#undef CUDA_TMA_NAMES_128
#undef CUDA_TMA_NAMES_64
#undef CUDA_TMA_SIXTY
#undef CUDA_TMA_NAMES_32
#undef CUDA_TMA_NAMES_16
#undef CUDA_TMA_NAMES_8
#undef CUDA_TMA_NAMES_4
#undef CUDA_TMA_NAMES_2
#undef CUDA_TMA_NAMES_1
#undef CUDA_TMA_TEN

}  // namespace tcgen05

// ---- columns with the lifetime of an object ----

// The allocated columns of a CTA. All threads of the CTA call the constructor and the destructor, in the scope of the
// kernel: no thread returns before the end of the scope, except with all others. Warp `Warp` allocates the columns,
// gives up the permit to allocate more, and frees the columns. Before the end of the scope, wait for each product.
template <int Columns, int Ctas = 1, int Warp = 0>
struct TensorMemory {
    __device__ explicit TensorMemory(unsigned& slot) {
        if (threadIdx.x / 32 == Warp) {
            tcgen05::alloc<Columns, Ctas>(slot);
            tcgen05::relinquish_alloc_permit<Ctas>();
        }
        __syncthreads();
        first.bits = slot;
    }
    __device__ ~TensorMemory() {
        __syncwarp();
        tcgen05::fence_before_thread_sync();
        __syncthreads();
        tcgen05::fence_after_thread_sync();
        if (threadIdx.x / 32 == Warp) tcgen05::dealloc<Columns, Ctas>(first);
    }
    TensorMemory(const TensorMemory&) = delete;
    TensorMemory& operator=(const TensorMemory&) = delete;

    // Returns the address of a column.
    __device__ tcgen05::Address column(unsigned number) const { return first.column(number); }

private:
    tcgen05::Address first;
};

}  // namespace cuda_tma
