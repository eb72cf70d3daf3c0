// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/watchdog.cuh: reports waits that time out. With -DCUDA_TMA_WATCHDOG_MS=500 every wait of these headers has a
// deadline of 500 milliseconds. cuda_tma.compile(..., watchdog_ms=500) defines this macro, and
// cuda_tma.synchronize(stream) raises the report. Without the macro, this file does not change the machine code.
//
//
// When a wait for an mbarrier reaches its deadline, the thread writes its index, its line and the barrier's word to
// host memory, and all other waiting threads of the grid do the same. The threads then execute `exit`, which keeps the
// context and the memory usable. With -DCUDA_TMA_WATCHDOG_TRAP the threads execute `trap`, which ends the context.
// Hardware barriers (__syncthreads(), named barriers, cluster barriers) have no deadline: a warp writes a note before
// such a wait, and the host reads the note. A kernel that hangs at a hardware barrier does not end.
#pragma once

// These macros are for the other headers. A last parameter with a default value passes the line of the call.
#ifndef CUDA_TMA_WATCHDOG_MS

#define CUDA_TMA_SITE
#define CUDA_TMA_SITE_ALONE
#define CUDA_TMA_HERE
#define CUDA_TMA_HERE_ALONE
#define CUDA_TMA_OF_STAGE(is_full, index)
#define CUDA_TMA_WAIT_UNTIL(is_done, barrier, parity) while (!is_done) continue;
#define CUDA_TMA_NOTE_EXPECTED(barrier, bytes)
#define CUDA_TMA_NOTE_BARRIER(number, threads)
#define CUDA_TMA_NOTE_IF(condition)

#else

#define CUDA_TMA_SITE , Site site = Site::here()
#define CUDA_TMA_SITE_ALONE Site site = Site::here()
#define CUDA_TMA_HERE , site
#define CUDA_TMA_HERE_ALONE site
#define CUDA_TMA_OF_STAGE(is_full, index) , site.of_stage(is_full, index)
#define CUDA_TMA_WAIT_UNTIL(is_done, barrier, parity) \
    for (Deadline deadline; !is_done;) deadline.check(barrier, parity, site);
#define CUDA_TMA_NOTE_EXPECTED(barrier, bytes) note_expected(barrier, bytes);
#define CUDA_TMA_NOTE_BARRIER(number, threads) const AtHardwareBarrier noted(number, threads, site);
#define CUDA_TMA_NOTE_IF(condition) site.noted_if(condition)

namespace cuda_tma {

#if defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ < 13   // CUDA 12 has no __builtin_LINE() on the device
#define CUDA_TMA_FILE nullptr
#define CUDA_TMA_LINE 0
#else
#define CUDA_TMA_FILE __builtin_FILE()
#define CUDA_TMA_LINE __builtin_LINE()
#endif

struct Site {
    const char* file;
    unsigned line;
    unsigned stage_of = 0;   // 1 for the full barriers of a Pipeline, 2 for its empty barriers
    int stage = 0;
    bool is_noted = true;    // true if a hardware barrier writes a note

    __device__ static constexpr Site here(const char* file = CUDA_TMA_FILE, unsigned line = CUDA_TMA_LINE) {
        return {file, line};
    }
    __device__ constexpr Site of_stage(bool is_full, int index) const { return {file, line, is_full ? 1u : 2u, index}; }
    __device__ constexpr Site noted_if(bool condition) const { return {file, line, stage_of, stage, condition}; }
};

// A first argument that contains the line of the call, for functions whose last parameter cannot have a default value.
template <typename T>
struct Placed {
    T value;
    Site site;

    __device__ constexpr Placed(T value, const char* file = CUDA_TMA_FILE, unsigned line = CUDA_TMA_LINE)
        : value(value), site{file, line} {}
    __device__ constexpr operator T() const { return value; }
};

#undef CUDA_TMA_FILE
#undef CUDA_TMA_LINE

// ---- the host's view: cuda_tma/_watchdog/memory.py has the same layout ----

// The record of the threads of one warp that wait for one barrier.
struct WatchdogRecord {
    unsigned long long module;   // number from the host
    unsigned long long word;     // of the mbarrier
    unsigned grid;               // %gridid, with the top bit set
    unsigned block[3];
    unsigned warp, lanes;
    unsigned address;            // shared::cta
    unsigned parity;
    unsigned expected_bytes;     // bytes of the last arrive_expect_tx() on the barrier; 0 if unknown
    unsigned line;
    unsigned stage_of;
    int stage;
    unsigned is_whole;           // written last
    char file[60];               // name without folders
};
static_assert(sizeof(WatchdogRecord) == 128, "the host reads records of 128 bytes");

struct WatchdogBuffer {
    unsigned count;      // of attempted records
    unsigned capacity;   // in records
    unsigned reserved[30];
    WatchdogRecord records[1];   // and more
};

// The note of a warp about a hardware barrier. `place` is 0 if the warp does not wait.
struct alignas(16) WatchdogNote {
    const char* file;
    unsigned place;              // line (20 bits), then the barrier's number (255: the cluster's), and the top bit
    unsigned packed;             // threads that the barrier counts (0: all), warp << 11, blockIdx.z << 16
    unsigned block_x, block_y;
    unsigned lanes;
    unsigned clock;              // distinguishes successive waits at one place
};

struct WatchdogExpected {
    unsigned key;                // the block, and the barrier's address
    unsigned bytes;
};

struct alignas(16) Watchdog {
    WatchdogBuffer* buffer;      // the host sets it; if it is null, a wait that times out traps
    unsigned long long module;
    unsigned hung_grid;          // %gridid of the hung grid, with the top bit set
    unsigned reserved[3];
    WatchdogNote notes[256 * 64];   // for each multiprocessor and warp
    WatchdogExpected expected[1 << 13];
    unsigned read_by[1 << 13];   // for each entry, the grid that has read the barrier's word
};

}  // namespace cuda_tma

extern "C" {
#ifdef __CUDACC_RDC__ // linked translation units share one variable (separate compilation)
inline
#endif
__device__ cuda_tma::Watchdog cuda_tma_watchdog = {};
}

namespace cuda_tma {

// Returns the time in units of 2^20 ns.
__device__ inline unsigned milliseconds() {
    unsigned long long nanoseconds;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    return nanoseconds >> 20;
}
__device__ inline unsigned grid_id() {
    unsigned long long grid;
    asm volatile("mov.u64 %0, %%gridid;" : "=l"(grid));
    return static_cast<unsigned>(grid) | 1u << 31;
}

__device__ inline unsigned linear_block() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }
__device__ inline unsigned warp_of_block() {
    return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32;
}

// Returns a number for a barrier and its block. The number is unique for the first 130,000 blocks, because an address
// is less than 2^18. Its last bits are the barrier's index in `expected`.
__device__ inline unsigned watchdog_key(unsigned address, unsigned block) {
    return block * ((1u << 15) + 37) + address / 8;
}

// Records the expected bytes, so that a report contains the missing and the expected bytes.
__device__ __forceinline__ void note_expected(const void* barrier, unsigned bytes) {
    const unsigned key = watchdog_key(static_cast<unsigned>(__cvta_generic_to_shared(barrier)), linear_block());
    reinterpret_cast<uint2&>(cuda_tma_watchdog.expected[key % (1 << 13)]) = {key, bytes};
}

// ---- the end of a thread whose wait times out ----

// The code reads the values only after a timeout (`volatile`): values in registers would slow each successful wait.
struct WatchdogPlace {
    unsigned x, y, z;

    __device__ __forceinline__ static WatchdogPlace of_block() {
        unsigned x, y, z;
        asm volatile("mov.u32 %0, %%ctaid.x;\n mov.u32 %1, %%ctaid.y;\n mov.u32 %2, %%ctaid.z;"
                     : "=r"(x), "=r"(y), "=r"(z));
        return {x, y, z};
    }
    __device__ __forceinline__ unsigned in_grid() const {
        unsigned columns, rows;
        asm volatile("mov.u32 %0, %%nctaid.x;\n mov.u32 %1, %%nctaid.y;" : "=r"(columns), "=r"(rows));
        return x + columns * (y + rows * z);
    }
    __device__ __forceinline__ static unsigned of_thread() {
        unsigned x, y, z, columns, rows;
        asm volatile("mov.u32 %0, %%tid.x;\n mov.u32 %1, %%tid.y;\n mov.u32 %2, %%tid.z;"
                     : "=r"(x), "=r"(y), "=r"(z));
        asm volatile("mov.u32 %0, %%ntid.x;\n mov.u32 %1, %%ntid.y;" : "=r"(columns), "=r"(rows));
        return x + columns * (y + rows * z);
    }
};

__device__ __forceinline__ void watchdog_pause(unsigned duration) {   // in milliseconds
    const unsigned since = milliseconds();
    while (milliseconds() - since < duration) __nanosleep(100000);
}

// mbarrier.inval writes the word of a barrier to shared memory. Without inval, a load may return older content of the
// memory (observed: driver 580, sm_90). One warp executes inval after all waits for the barrier end.
__device__ __forceinline__ void watchdog_write_back(unsigned address, unsigned key) {
    if (atomicExch(&cuda_tma_watchdog.read_by[key % (1 << 13)], grid_id()) != grid_id())
        asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(address) : "memory");
}

__device__ __forceinline__ void watchdog_write(unsigned address, unsigned key, unsigned parity, unsigned lanes,
                                               Site site) {
    WatchdogBuffer* buffer = cuda_tma_watchdog.buffer;
    const unsigned place = atomicAdd(&buffer->count, 1);
    if (place >= buffer->capacity) return;
    WatchdogRecord& record = buffer->records[place];
    const WatchdogPlace block = WatchdogPlace::of_block();
    const volatile WatchdogExpected& expected = cuda_tma_watchdog.expected[key % (1 << 13)];
    unsigned long long word;
    asm volatile("ld.volatile.shared.u64 %0, [%1];" : "=l"(word) : "r"(address) : "memory");
    record.module = cuda_tma_watchdog.module;
    record.word = word;
    record.grid = grid_id();
    record.block[0] = block.x;
    record.block[1] = block.y;
    record.block[2] = block.z;
    record.warp = WatchdogPlace::of_thread() / 32;
    record.lanes = lanes;
    record.address = address;
    record.parity = parity;
    record.expected_bytes = expected.key == key ? expected.bytes : 0;
    record.line = site.line;
    record.stage_of = site.stage_of;
    record.stage = site.stage;
    if (site.file) {
        const char* name = site.file;
        for (const char* at = name; *at; ++at)
            if (*at == '/') name = at + 1;
        int length = 0;
#pragma unroll 1
        for (; length < 59 && name[length]; ++length) record.file[length] = name[length];
        record.file[length] = 0;
    }
    __threadfence_system();
    *const_cast<volatile unsigned*>(&record.is_whole) = 1;
    __threadfence_system();
}

// The function is always inlined, because a call would serialize wgmmas.
__device__ __forceinline__ void watchdog_end(const void* barrier, unsigned parity, Site site) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
    asm volatile("" : "+r"(address), "+r"(parity), "+r"(site.stage));
    if (cuda_tma_watchdog.buffer == nullptr) __trap();   // no report is possible
    const unsigned key = watchdog_key(address, WatchdogPlace::of_block().in_grid());
    const unsigned here = __match_any_sync(__activemask(), address);
    unsigned lanes_before;
    asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(lanes_before));
    // All other waiting threads also execute this code, read their barriers, and end. No thread ends before all threads
    // have read, because an ended thread counts as arrived at __syncthreads(), and because other CTAs of the cluster
    // cannot read the shared memory of a CTA that has ended.
    *const_cast<volatile unsigned*>(&cuda_tma_watchdog.hung_grid) = grid_id();
#pragma unroll 1
    for (int step = 0; step < 3; ++step) {
        watchdog_pause(18);
        if (here & lanes_before || step == 2) continue;
        if (step == 0) watchdog_write_back(address, key);
        else watchdog_write(address, key, parity, here, site);
    }
#ifdef CUDA_TMA_WATCHDOG_TRAP
    __trap();
#endif
    asm volatile("exit;");   // with __builtin_unreachable(), ptxas would serialize wgmmas (C7518)
}

// Returns whether a wait in this grid has timed out. The code is a separate function, so that ptxas needs at most the
// 24 registers of a producer.
__device__ __forceinline__ bool has_hung() {
    unsigned has;
    asm volatile("{ .reg .b32 hung, low; .reg .b64 grid; .reg .pred p;\n"
                 "  ld.volatile.global.u32 hung, [%1]; mov.u64 grid, %%gridid; cvt.u32.u64 low, grid;\n"
                 "  xor.b32 low, low, hung; setp.eq.u32 p, low, 0x80000000; selp.u32 %0, 1, 0, p; }"
                 : "=r"(has) : "l"(__cvta_generic_to_global(&cuda_tma_watchdog.hung_grid)) : "memory");
    return has;
}

// The deadline of one wait. check() reads the clock only after a failed try, and looks for timeouts of other threads
// only after the clock has advanced.
struct Deadline {
    unsigned since = 0;   // 0 before the first failed try

    __device__ __forceinline__ void check(const void* barrier, unsigned parity, Site site) {
        const unsigned now = milliseconds() | 1;
        if (since == 0) since = now;
        if (now == since) return;
        if (now - since > CUDA_TMA_WATCHDOG_MS || has_hung()) watchdog_end(barrier, parity, site);
    }
};

// While an object of this type exists, the warp's note contains the place of the wait.
class AtHardwareBarrier {
    const bool is_noted;
    size_t note;   // its address

public:
    __device__ __forceinline__ AtHardwareBarrier(int number, int threads, Site site) : is_noted(site.is_noted) {
        if (!is_noted) return;
        unsigned multiprocessor, warp, clock;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
        asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
        asm volatile("mov.u32 %0, %%clock;" : "=r"(clock));
        note = __cvta_generic_to_global(&cuda_tma_watchdog.notes[multiprocessor % 256 * 64 + warp % 64]);
        // The threads may write in any order, because during a long wait the whole warp waits at this barrier.
        asm volatile("st.volatile.global.v4.u32 [%0 + 16], {%1, %2, %3, %4};"
                     ::"l"(note), "r"(blockIdx.x), "r"(blockIdx.y), "r"(__activemask()), "r"(clock) : "memory");
        asm volatile("{ .reg .b32 low, high; mov.b64 {low, high}, %1;"
                     "  st.volatile.global.v4.u32 [%0], {low, high, %2, %3}; }"
                     ::"l"(note), "l"(site.file), "r"(1u << 31 | number << 20 | site.line),
                       "r"(threads | warp_of_block() << 11 | blockIdx.z << 16) : "memory");
    }
    __device__ __forceinline__ ~AtHardwareBarrier() {
        if (is_noted) asm volatile("st.volatile.global.u32 [%0 + 8], %1;" ::"l"(note), "r"(0) : "memory");
    }
    AtHardwareBarrier(const AtHardwareBarrier&) = delete;
};

}  // namespace cuda_tma

__device__ __forceinline__ void cuda_tma_syncthreads(cuda_tma::Site site = cuda_tma::Site::here()) {
    const cuda_tma::AtHardwareBarrier noted(0, 0, site);
    __syncthreads();
}
#define __syncthreads() cuda_tma_syncthreads()

#endif
