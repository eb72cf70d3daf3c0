// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/watchdog.cuh: who waits in vain says so. With -DCUDA_TMA_WATCHDOG_MS=500 every wait of these headers has a
// deadline of so many milliseconds: cuda_tma.compile(..., watchdog_ms=500), and then cuda_tma.synchronize(stream), which
// raises what was written here. Without the macro nothing of it is there, and the machine code is the same as without
// this file.
//
// A thread whose wait for an mbarrier has passed its deadline writes who and where it is, and the barrier's word, into
// memory of the host; all others of the grid that wait then do the same. After a moment they end by `exit`, so that
// context and memory live (with -DCUDA_TMA_WATCHDOG_TRAP by `trap`, which ends the context). Barriers of the hardware
// (__syncthreads(), named barriers, those of clusters) know no time: a warp notes its place before, and the host reads
// it. Such a kernel nothing ends.
#pragma once

// What stands in the other headers for it. A function knows where it is called by a last argument with a default.
#ifndef CUDA_TMA_WATCHDOG_MS

#define CUDA_TMA_SITE
#define CUDA_TMA_SITE_ALONE
#define CUDA_TMA_HERE
#define CUDA_TMA_HERE_ALONE
#define CUDA_TMA_OF_STAGE(is_full, index)
#define CUDA_TMA_WAIT_UNTIL(is_done, barrier, parity) while (!is_done) continue;
#define CUDA_TMA_NOTE_EXPECTED(barrier, bytes)
#define CUDA_TMA_NOTE_BARRIER(number, threads)

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

namespace cuda_tma {

#if defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ < 13   // which have no __builtin_LINE() on the device
#define CUDA_TMA_FILE nullptr
#define CUDA_TMA_LINE 0
#else
#define CUDA_TMA_FILE __builtin_FILE()
#define CUDA_TMA_LINE __builtin_LINE()
#endif

struct Site {
    const char* file;
    unsigned line;
    unsigned stage_of = 0;   // 1: of the full barriers of a Pipeline, 2: of the empty ones
    int stage = 0;

    __device__ static constexpr Site here(const char* file = CUDA_TMA_FILE, unsigned line = CUDA_TMA_LINE) {
        return {file, line};
    }
    __device__ constexpr Site of_stage(bool is_full, int index) const { return {file, line, is_full ? 1u : 2u, index}; }
};

// A function's first argument with the place of the call, where a last one cannot have a default.
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

// ---- what the host reads: cuda_tma/_launch/watchdog_memory.py has the same layout ----

// Threads of one warp that wait for one barrier.
struct WatchdogRecord {
    unsigned long long module;   // as the host numbers them
    unsigned long long word;     // of the mbarrier
    unsigned grid;               // %gridid, with the top bit set
    unsigned block[3];
    unsigned warp, lanes;
    unsigned address;            // shared::cta
    unsigned parity;
    unsigned expected_bytes;     // by the last arrive_expect_tx() there; 0: not known
    unsigned line;
    unsigned stage_of;
    int stage;
    unsigned is_whole;           // written last
    char file[60];               // what follows the last slash
};
static_assert(sizeof(WatchdogRecord) == 128, "the host reads records of 128 bytes");

struct WatchdogBuffer {
    unsigned count;      // of the records that were wanted
    unsigned capacity;   // of those that have room
    unsigned reserved[30];
    WatchdogRecord records[1];   // and more
};

// A warp that waits at a barrier of the hardware; all zero where none does.
struct WatchdogNote {
    const char* file;
    unsigned place;              // line, above its 20 bits the barrier's number (255: the cluster's), and the top bit
    unsigned packed;             // threads that the barrier counts (0: all), warp << 11, blockIdx.z << 16
    unsigned block_x, block_y;
    unsigned lanes;
    unsigned clock;              // which makes one wait differ from the next at the same place
};

struct WatchdogExpected {
    unsigned long long key;      // the block, and the barrier's address
    unsigned bytes;
    unsigned read_by;            // the grid that has read the barrier's word
};

struct alignas(16) Watchdog {
    WatchdogBuffer* buffer;      // set by the host; without, who waits in vain traps
    unsigned long long module;
    unsigned hung_grid;          // %gridid of the one that has hung, with the top bit set
    unsigned reserved[3];
    WatchdogNote notes[192 * 64];   // by multiprocessor and warp of it
    WatchdogExpected expected[1 << 13];
};

}  // namespace cuda_tma

extern "C" {
#ifdef __CUDACC_RDC__   // separate compilation: translation units that are linked have one in common
inline
#endif
__device__ cuda_tma::Watchdog cuda_tma_watchdog = {};
}

namespace cuda_tma {

// Of 2^20 ns each.
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

__device__ inline WatchdogExpected& watchdog_expected(unsigned address, unsigned block) {
    return cuda_tma_watchdog.expected[(block * 37 + address / 8) % (1 << 13)];
}

__device__ inline unsigned long long watchdog_key(unsigned address, unsigned block) {
    return static_cast<unsigned long long>(block) << 32 | address;
}

// So that a report can say how many bytes of how many are missing.
__device__ __forceinline__ void note_expected(const void* barrier, unsigned bytes) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(barrier)), block = linear_block();
    const ulonglong2 both = {watchdog_key(address, block), bytes};
    reinterpret_cast<ulonglong2&>(watchdog_expected(address, block)) = both;
}

__device__ inline void watchdog_pause(unsigned duration) {   // in milliseconds
    const unsigned since = milliseconds();
    while (milliseconds() - since < duration) __nanosleep(100000);
}

// mbarrier.inval brings a barrier's word to shared memory: before, a load may find what was there before the barrier was
// used (observed: driver 580, sm_90). By one warp, when nobody waits there any more.
__device__ __forceinline__ void watchdog_write_back(unsigned address) {
    if (atomicExch(&watchdog_expected(address, linear_block()).read_by, grid_id()) != grid_id())
        asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(address) : "memory");
}

__device__ __forceinline__ void watchdog_write(unsigned address, unsigned parity, unsigned lanes, Site site) {
    WatchdogBuffer* buffer = cuda_tma_watchdog.buffer;
    const unsigned place = atomicAdd(&buffer->count, 1);
    if (place >= buffer->capacity) return;
    WatchdogRecord& record = buffer->records[place];
    const unsigned block = linear_block();
    const volatile WatchdogExpected& expected = watchdog_expected(address, block);
    const bool is_known = expected.key == watchdog_key(address, block);
    unsigned long long word;
    asm volatile("ld.volatile.shared.u64 %0, [%1];" : "=l"(word) : "r"(address) : "memory");
    record.module = cuda_tma_watchdog.module;
    record.word = word;
    record.grid = grid_id();
    record.block[0] = blockIdx.x;
    record.block[1] = blockIdx.y;
    record.block[2] = blockIdx.z;
    record.warp = warp_of_block();
    record.lanes = lanes;
    record.address = address;
    record.parity = parity;
    record.expected_bytes = is_known ? expected.bytes : 0;
    record.line = site.line;
    record.stage_of = site.stage_of;
    record.stage = site.stage;
    if (site.file) {
        const char* name = site.file;
        for (const char* at = name; *at; ++at)
            if (*at == '/') name = at + 1;
        int length = 0;
        for (; length < 59 && name[length]; ++length) record.file[length] = name[length];
        record.file[length] = 0;
    }
    __threadfence_system();
    *const_cast<volatile unsigned*>(&record.is_whole) = 1;
    __threadfence_system();
}

// The end of a thread that waits in vain. Not a function that is called: a call would have wgmmas wait for each other.
__device__ __forceinline__ void watchdog_end(const void* barrier, unsigned parity, Site site) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
    if (cuda_tma_watchdog.buffer == nullptr) __trap();   // nobody would know
    const unsigned here = __match_any_sync(__activemask(), address);
    unsigned lanes_before;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lanes_before));
    // All others come here too, and then read their barriers; and then end. Each shall find everything as it is: who ends
    // counts as arrived at __syncthreads(), and takes shared memory along that others of the cluster may use.
    *const_cast<volatile unsigned*>(&cuda_tma_watchdog.hung_grid) = grid_id();
    watchdog_pause(25);
    if (!(here & lanes_before)) watchdog_write_back(address);
    watchdog_pause(2);
    if (!(here & lanes_before)) watchdog_write(address, parity, here, site);
    watchdog_pause(25);
#ifdef CUDA_TMA_WATCHDOG_TRAP
    __trap();
#endif
    asm volatile("exit;");   // not __builtin_unreachable(): ptxas would have wgmmas wait for each other (C7518)
}

// The time is asked for when tries have failed, and not before.
struct Deadline {
    unsigned since = 0;   // 0: no try has failed

    __device__ __forceinline__ void check(const void* barrier, unsigned parity, Site site) {
        const unsigned now = milliseconds() | 1;
        if (since == 0) since = now;
        const unsigned hung = *const_cast<volatile unsigned*>(&cuda_tma_watchdog.hung_grid);
        if (now - since > CUDA_TMA_WATCHDOG_MS || hung == grid_id()) watchdog_end(barrier, parity, site);
    }
};

// While it lives, the warp's place stands in its note.
class AtHardwareBarrier {
    volatile WatchdogNote* note;

public:
    __device__ __forceinline__ AtHardwareBarrier(int number, int threads, Site site) {
        unsigned multiprocessor, warp, clock;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
        asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
        asm volatile("mov.u32 %0, %%clock;" : "=r"(clock));
        note = &cuda_tma_watchdog.notes[multiprocessor % 192 * 64 + warp % 64];
        note->file = site.file;
        note->packed = threads | warp_of_block() << 11 | blockIdx.z << 16;
        note->block_x = blockIdx.x;
        note->block_y = blockIdx.y;
        note->lanes = __activemask();
        note->clock = clock;
        note->place = 1u << 31 | number << 20 | site.line;   // last: a note counts when it has a place
    }
    __device__ __forceinline__ ~AtHardwareBarrier() { note->place = 0; }
    AtHardwareBarrier(const AtHardwareBarrier&) = delete;
};

}  // namespace cuda_tma

__device__ __forceinline__ void cuda_tma_syncthreads(cuda_tma::Site site = cuda_tma::Site::here()) {
    const cuda_tma::AtHardwareBarrier noted(0, 0, site);
    __syncthreads();
}
#define __syncthreads() cuda_tma_syncthreads()

#endif
