// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/tma.cuh: the Tensor Memory Accelerator from a kernel. One function is one PTX instruction.
//
// For NVRTC and nvcc: C++17, PTX ISA 8.0 (CUDA 12.0), compute capability 9.0 and later. It includes nothing, defines no
// name outside the namespace cuda_tma and no macro that outlives it, so it can stand beside CCCL and CUTLASS.
//
//     extern "C" __global__ void kernel(const __grid_constant__ cuda_tma::TensorMap map, float* out) {
//         using namespace cuda_tma;
//         __shared__ alignas(128) float tile[32][32];   // a load's destination is 128-byte aligned
//         __shared__ Barrier full;
//         if (threadIdx.x == 0) {
//             full.init(1);                             // one arrival: the one two lines below
//             fence_barrier_init();                     // the TMA unit sees the barrier before it counts bytes there
//             full.arrive_expect_tx(sizeof(tile));
//             load(tile, map, full, Coordinates{32 * blockIdx.x, 32 * blockIdx.y});
//         }
//         __syncthreads();                              // nobody waits on a barrier that is not yet initialised
//         full.wait(0);                                 // phase 0 is over: all bytes have arrived and are visible
//         ...
//
// Coordinates are in the driver's order: innermost dimension first, in elements. Without interleave the first one in
// bytes is a multiple of 16, also where it is negative: otherwise the instruction kills the context. One thread calls a
// copy; elect_one() picks it in a converged warp. "ISA" is NVIDIA's "Parallel Thread Execution ISA"; its sections are
// given by title, as their numbers change.
#pragma once

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "cuda_tma/tma.cuh: TMA needs compute capability 9.0 or later; compile for sm_90 or above"
#endif

namespace cuda_tma {

// ---- values ----

// What the host's 128 bytes are in a kernel: take it as `const __grid_constant__ TensorMap`. Layout and alignment are
// those of the driver's CUtensorMap (cuda.h, CUDA 13), so a kernel may name either type. ISA: "Tensor-map".
struct alignas(128) TensorMap { unsigned long long opaque[16]; };
static_assert(sizeof(TensorMap) == 128, "a tensor map is 128 bytes");

// A CUtensorMap (or another 128-byte twin) as a TensorMap.
template <typename Map>
__device__ const TensorMap& as_tensor_map(const Map& map) {
    static_assert(sizeof(Map) == sizeof(TensorMap), "a tensor map is 128 bytes");
    return reinterpret_cast<const TensorMap&>(map);
}

// Where a box starts, innermost dimension first, in elements: Coordinates{column, row}. May lie outside the tensor.
template <int Rank>
struct Coordinates {
    int value[5];

    template <typename... Index>
    __device__ constexpr explicit Coordinates(Index... index) : value{static_cast<int>(index)...} {
        static_assert(1 <= Rank && Rank <= 5, "a tensor map has 1 to 5 dimensions");
        static_assert(sizeof...(Index) == Rank, "one coordinate for each dimension");
    }
};
template <typename... Index>
Coordinates(Index...) -> Coordinates<sizeof...(Index)>;

// Im2col: the position in the filter, innermost spatial dimension first: Offsets{s, r}. Each from 0 to 65535 in a 3-D
// map, to 255 in a 4-D one, to 31 in a 5-D one. ISA: "im2col mode".
template <int Count>
struct Offsets {
    unsigned short value[3];

    template <typename... Index>
    __device__ constexpr explicit Offsets(Index... index) : value{static_cast<unsigned short>(index)...} {
        static_assert(1 <= Count && Count <= 3, "an im2col map has 1 to 3 spatial dimensions");
        static_assert(sizeof...(Index) == Count, "one offset for each spatial dimension");
    }
};
template <typename... Index>
Offsets(Index...) -> Offsets<sizeof...(Index)>;

// How L2 should treat the bytes: the last argument of every copy, made by evict_first() and the like.
struct CachePolicy { unsigned long long bits; enum { given = true }; };
struct NoCachePolicy { unsigned long long bits; enum { given = false }; };

// The address of shared memory as the 32-bit number that PTX takes. ISA: "cvta".
__device__ inline unsigned smem_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// createpolicy.fractional, for the whole access. ISA: "createpolicy".
#define CUDA_TMA_CREATE_POLICY(priority) \
    CachePolicy policy; asm("createpolicy.fractional.L2::" priority ".b64 %0, 1.0;" : "=l"(policy.bits)); return policy
__device__ inline CachePolicy evict_first() { CUDA_TMA_CREATE_POLICY("evict_first"); }          // read once
__device__ inline CachePolicy evict_last() { CUDA_TMA_CREATE_POLICY("evict_last"); }            // read again, by others
__device__ inline CachePolicy evict_normal() { CUDA_TMA_CREATE_POLICY("evict_normal"); }        // as without a policy
__device__ inline CachePolicy evict_unchanged() { CUDA_TMA_CREATE_POLICY("evict_unchanged"); }  // as the line is now
#undef CUDA_TMA_CREATE_POLICY

// ---- barrier ----

// An mbarrier in shared memory: a phase completes when all arrivals and all expected bytes are in, and the next begins.
// Phases count 0, 1, 2, ...; a wait names the parity (0 or 1) of the phase that it waits for. ISA: "mbarrier".
struct Barrier {
    unsigned long long state;

    __device__ unsigned address() const { return smem_address(this); }

    // mbarrier.init. Follow with fence_barrier_init() and a __syncthreads().
    __device__ void init(unsigned arrivals) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
    }

    // mbarrier.inval: before the memory is used for something else.
    __device__ void invalidate() { asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(address()) : "memory"); }

    // mbarrier.expect_tx: the phase waits for so many more bytes (tx_bytes of the descriptor). Does not arrive.
    __device__ void expect_tx(unsigned bytes) {
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;"
                     ::"r"(address()), "r"(bytes) : "memory");
    }

    // mbarrier.arrive.expect_tx: both in one.
    __device__ void arrive_expect_tx(unsigned bytes) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes) : "memory");
    }

    // mbarrier.arrive: what this thread did to shared memory before is visible to those who wait.
    __device__ void arrive() { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory"); }

    // mapa, mbarrier.arrive: at the barrier that lies at this place in another CTA of the cluster.
    __device__ void arrive_at(unsigned cta_rank) {
        asm volatile("{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1;"
                     "  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote]; }"
                     ::"r"(address()), "r"(cta_rank) : "memory");
    }

    // mbarrier.try_wait.parity: has the phase completed? Sleeps meanwhile, up to a time that the hardware chooses ...
    __device__ bool try_wait(unsigned parity) const {
        unsigned complete;
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(complete) : "r"(address()), "r"(parity) : "memory");
        return complete;
    }

    // ... or up to a time that the caller suggests.
    __device__ bool try_wait(unsigned parity, unsigned suspend_hint_ns) const {
        unsigned complete;
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, %3; selp.u32 %0, 1, 0, p; }"
                     : "=r"(complete) : "r"(address()), "r"(parity), "r"(suspend_hint_ns) : "memory");
        return complete;
    }

    // Until the phase completes. Never returns if the bytes expected are not the bytes delivered.
    __device__ void wait(unsigned parity) const {
        while (!try_wait(parity)) continue;
    }
};

// ---- tensor copies ----

// An instruction's text cannot depend on a template argument, so these macros write it out for each rank, with and
// without a cache policy. `left` and `right` are the text around the {coordinates}. Operands %0 to %4 are coordinates,
// %5 is the policy; those that a function adds start at %6, or at %9 for im2col, where %6 to %8 are the offsets.
#define CUDA_TMA_ASM(text, ...)                                                                                    \
    asm volatile(text ::"r"(at.value[0]), "r"(at.value[1]), "r"(at.value[2]), "r"(at.value[3]), "r"(at.value[4]),  \
                 "l"(policy.bits), __VA_ARGS__ : "memory")

#define CUDA_TMA_RANK(rank, list, name, qualifiers, left, right, ...)                                              \
    if constexpr (Rank == rank && Policy::given)                                                                   \
        CUDA_TMA_ASM(name "." #rank "d" qualifiers ".L2::cache_hint " left list right ", %5;", __VA_ARGS__);       \
    else if constexpr (Rank == rank)                                                                               \
        CUDA_TMA_ASM(name "." #rank "d" qualifiers " " left list right ";", __VA_ARGS__)

#define CUDA_TMA_TILED(name, qualifiers, left, right, ...)                                                         \
    CUDA_TMA_RANK(1, "{%0}", name, qualifiers, left, right, __VA_ARGS__);                                          \
    CUDA_TMA_RANK(2, "{%0, %1}", name, qualifiers, left, right, __VA_ARGS__);                                      \
    CUDA_TMA_RANK(3, "{%0, %1, %2}", name, qualifiers, left, right, __VA_ARGS__);                                  \
    CUDA_TMA_RANK(4, "{%0, %1, %2, %3}", name, qualifiers, left, right, __VA_ARGS__);                              \
    CUDA_TMA_RANK(5, "{%0, %1, %2, %3, %4}", name, qualifiers, left, right, __VA_ARGS__)

#define CUDA_TMA_OFFSETS "h"(offsets.value[0]), "h"(offsets.value[1]), "h"(offsets.value[2])
#define CUDA_TMA_IM2COL(name, qualifiers, left, middle, right, ...)                                                \
    static_assert(3 <= Rank && Rank <= 5 && Count == Rank - 2, "im2col: 3 to 5 dimensions, rank - 2 offsets");     \
    CUDA_TMA_RANK(3, "{%0, %1, %2}", name, qualifiers, left, middle "{%6}" right, CUDA_TMA_OFFSETS, __VA_ARGS__);  \
    CUDA_TMA_RANK(4, "{%0, %1, %2, %3}", name, qualifiers, left, middle "{%6, %7}" right, CUDA_TMA_OFFSETS,        \
                  __VA_ARGS__);                                                                                    \
    CUDA_TMA_RANK(5, "{%0, %1, %2, %3, %4}", name, qualifiers, left, middle "{%6, %7, %8}" right,                  \
                  CUDA_TMA_OFFSETS, __VA_ARGS__)

// cp.async.bulk.tensor, global to shared: starts to load the box at `at` into `tile`; `full` counts its bytes.
// (.shared::cluster, since a CTA's own shared memory lies in that window, and .shared::cta needs PTX ISA 8.6.)
template <int Rank, typename Policy = NoCachePolicy>
__device__ void load(void* tile, const TensorMap& map, Barrier& full, Coordinates<Rank> at, Policy policy = {}) {
    CUDA_TMA_TILED("cp.async.bulk.tensor", ".shared::cluster.global.tile.mbarrier::complete_tx::bytes", "[%6], [%7, ",
                   "], [%8]", "r"(smem_address(tile)), "l"(&map), "r"(full.address()));
}

// ... .multicast::cluster: into `tile` of each CTA of the cluster whose bit is set in `cta_mask`, whose `full` counts.
template <int Rank, typename Policy = NoCachePolicy>
__device__ void load_multicast(void* tile, const TensorMap& map, Barrier& full, Coordinates<Rank> at,
                               unsigned short cta_mask, Policy policy = {}) {
    CUDA_TMA_TILED("cp.async.bulk.tensor",
                   ".shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster", "[%6], [%7, ",
                   "], [%8], %9", "r"(smem_address(tile)), "l"(&map), "r"(full.address()), "h"(cta_mask));
}

// ... .im2col: columns of pixels in convolution order, from the pixel at `at` moved by `offsets`.
template <int Rank, int Count, typename Policy = NoCachePolicy>
__device__ void load_im2col(void* tile, const TensorMap& map, Barrier& full, Coordinates<Rank> at,
                            Offsets<Count> offsets, Policy policy = {}) {
    CUDA_TMA_IM2COL("cp.async.bulk.tensor", ".shared::cluster.global.im2col.mbarrier::complete_tx::bytes",
                    "[%9], [%10, ", "], [%11], ", "", "r"(smem_address(tile)), "l"(&map), "r"(full.address()));
}

// ... .im2col.multicast::cluster.
template <int Rank, int Count, typename Policy = NoCachePolicy>
__device__ void load_im2col_multicast(void* tile, const TensorMap& map, Barrier& full, Coordinates<Rank> at,
                                      Offsets<Count> offsets, unsigned short cta_mask, Policy policy = {}) {
    CUDA_TMA_IM2COL("cp.async.bulk.tensor",
                    ".shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster", "[%9], [%10, ",
                    "], [%11], ", ", %12", "r"(smem_address(tile)), "l"(&map), "r"(full.address()), "h"(cta_mask));
}

// cp.async.bulk.tensor, shared to global: starts to store `tile` as the box at `at`; what lies outside the tensor is
// dropped. Before it: fence_proxy_async() by the writers, then a __syncthreads(). After it: commit_group(), wait_group.
template <int Rank, typename Policy = NoCachePolicy>
__device__ void store(const TensorMap& map, Coordinates<Rank> at, const void* tile, Policy policy = {}) {
    CUDA_TMA_TILED("cp.async.bulk.tensor", ".global.shared::cta.tile.bulk_group", "[%6, ", "], [%7]", "l"(&map),
                   "r"(smem_address(tile)));
}

// ... .im2col_no_offs.
template <int Rank, typename Policy = NoCachePolicy>
__device__ void store_im2col(const TensorMap& map, Coordinates<Rank> at, const void* tile, Policy policy = {}) {
    static_assert(3 <= Rank, "im2col: 3 to 5 dimensions");
    CUDA_TMA_TILED("cp.async.bulk.tensor", ".global.shared::cta.im2col_no_offs.bulk_group", "[%6, ", "], [%7]",
                   "l"(&map), "r"(smem_address(tile)));
}

// What reduce() does to an element in global memory, given the one in shared memory, in the descriptor's data type.
enum class Reduction { add, min, max, inc, dec, bit_and, bit_or, bit_xor };

#define CUDA_TMA_REDUCE(reduction, operation)                                                                      \
    if constexpr (Operation == Reduction::reduction) {                                                             \
        CUDA_TMA_TILED("cp.reduce.async.bulk.tensor", ".global.shared::cta" operation ".tile.bulk_group", "[%6, ", \
                       "], [%7]", "l"(&map), "r"(smem_address(tile)));                                             \
    }

// cp.reduce.async.bulk.tensor: as store(), but combines: reduce<Reduction::add>(map, at, tile). Atomic by element.
template <Reduction Operation, int Rank, typename Policy = NoCachePolicy>
__device__ void reduce(const TensorMap& map, Coordinates<Rank> at, const void* tile, Policy policy = {}) {
    CUDA_TMA_REDUCE(add, ".add") CUDA_TMA_REDUCE(min, ".min") CUDA_TMA_REDUCE(max, ".max")
    CUDA_TMA_REDUCE(inc, ".inc") CUDA_TMA_REDUCE(dec, ".dec")
    CUDA_TMA_REDUCE(bit_and, ".and") CUDA_TMA_REDUCE(bit_or, ".or") CUDA_TMA_REDUCE(bit_xor, ".xor")
}

// cp.async.bulk.prefetch.tensor: the box at `at`, into L2.
template <int Rank, typename Policy = NoCachePolicy>
__device__ void prefetch(const TensorMap& map, Coordinates<Rank> at, Policy policy = {}) {
    CUDA_TMA_TILED("cp.async.bulk.prefetch.tensor", ".L2.global.tile", "[%6, ", "]", "l"(&map));
}

// ... .im2col.
template <int Rank, int Count, typename Policy = NoCachePolicy>
__device__ void prefetch_im2col(const TensorMap& map, Coordinates<Rank> at, Offsets<Count> offsets,
                                Policy policy = {}) {
    CUDA_TMA_IM2COL("cp.async.bulk.prefetch.tensor", ".L2.global.im2col", "[%9, ", "], ", "", "l"(&map));
}

#undef CUDA_TMA_REDUCE
#undef CUDA_TMA_IM2COL
#undef CUDA_TMA_OFFSETS
#undef CUDA_TMA_TILED
#undef CUDA_TMA_RANK
#undef CUDA_TMA_ASM

// prefetch.tensormap: the 128 bytes themselves, so that the first load finds them. ISA: "prefetch, prefetchu".
__device__ inline void prefetch_tensor_map(const TensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// ---- plain bulk copies ----
// Contiguous bytes, no tensor map. Addresses and the count are multiples of 16 bytes. ISA: "cp.async.bulk".

#define CUDA_TMA_BULK(name, operands, ...)                                                                         \
    if constexpr (Policy::given)                                                                                   \
        asm volatile(name ".L2::cache_hint " operands ", %0;" ::"l"(policy.bits), __VA_ARGS__ : "memory");         \
    else                                                                                                           \
        asm volatile(name " " operands ";" ::"l"(policy.bits), __VA_ARGS__ : "memory")

// cp.async.bulk, global to shared; `full` counts the bytes.
template <typename Policy = NoCachePolicy>
__device__ void load_bulk(void* shared, const void* global, unsigned bytes, Barrier& full, Policy policy = {}) {
    CUDA_TMA_BULK("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", "[%1], [%2], %3, [%4]",
                  "r"(smem_address(shared)), "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(full.address()));
}

// cp.async.bulk, shared to global; fences and groups as for store().
template <typename Policy = NoCachePolicy>
__device__ void store_bulk(void* global, const void* shared, unsigned bytes, Policy policy = {}) {
    CUDA_TMA_BULK("cp.async.bulk.global.shared::cta.bulk_group", "[%1], [%2], %3",
                  "l"(__cvta_generic_to_global(global)), "r"(smem_address(shared)), "r"(bytes));
}

#undef CUDA_TMA_BULK

// ---- order and waits ----

// cp.async.bulk.commit_group: this thread's stores and reductions so far become one group.
__device__ inline void commit_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// cp.async.bulk.wait_group: until at most `Pending` of this thread's groups are unfinished; the others are in memory.
template <int Pending = 0>
__device__ void wait_group() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(Pending) : "memory"); }

// ... .read: until at most `Pending` still read their shared memory; that of the others may be overwritten.
template <int Pending = 0>
__device__ void wait_group_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory"); }

// fence.proxy.async.shared::cta: ordinary writes to shared memory before it are seen by a store() after it. Each writer
// calls it before the __syncthreads() that precedes the store. ISA: "membar, fence", "Async proxy".
__device__ inline void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// fence.mbarrier_init: Barrier::init is seen by the TMA unit, and by the cluster after its next cluster_sync().
__device__ inline void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// fence.proxy.tensormap release: after a tensor map in global memory was changed by ordinary writes (CUDA 12.3 on) ...
__device__ inline void fence_tensor_map_release() {
    asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
}

// ... acquire: before a thread that was not there at the time uses it.
__device__ inline void fence_tensor_map_acquire(const TensorMap& map) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(&map) : "memory");
}

// elect.sync: true in one thread of a converged warp. ISA: "elect.sync".
__device__ inline bool elect_one() {
    unsigned elected;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xFFFFFFFF; selp.u32 %0, 1, 0, p; }" : "=r"(elected)::"memory");
    return elected;
}

// %cluster_ctarank: this CTA's number in its cluster, and its bit in a cta_mask. ISA: "Special Registers".
__device__ inline unsigned cluster_cta_rank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// barrier.cluster.arrive, barrier.cluster.wait: all threads of the cluster. ISA: "barrier.cluster".
__device__ inline void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// griddepcontrol.wait: until the grids that this one depends on are complete and their writes visible. On the host:
// LaunchConfig(programmatic_stream_serialization=True). ISA: "griddepcontrol".
__device__ inline void griddepcontrol_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// griddepcontrol.launch_dependents: the grids that depend on this one may start.
__device__ inline void griddepcontrol_launch_dependents() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// ---- swizzle ----

// Driver values (CUtensorMapSwizzle) and cuda_tma's own names: swizzled<SWIZZLE_128B>(row, byte).
enum Swizzle : int {
    SWIZZLE_NONE, SWIZZLE_32B, SWIZZLE_64B, SWIZZLE_128B,
    SWIZZLE_128B_ATOM_32B, SWIZZLE_128B_ATOM_32B_FLIP_8B, SWIZZLE_128B_ATOM_64B,
};

// Bytes in which chunks are permuted, and which each row of a box occupies however narrow it is.
template <Swizzle Mode>
__host__ __device__ constexpr unsigned swizzle_span() {
    static_assert(Mode != SWIZZLE_NONE, "without a swizzle a row is as long as the box is wide");
    return Mode == SWIZZLE_32B ? 32 : Mode == SWIZZLE_64B ? 64 : 128;
}

// Where a byte of the plain tile lies in the swizzled one, and back: it is its own inverse. It looks at bits 7 to 9 of
// the address, so the tile starts where they are zero: at a multiple of 1024 (32B: 256, 64B: 512).
// ISA: "Swizzling modes".
template <Swizzle Mode>
__host__ __device__ constexpr unsigned swizzle(unsigned offset) {
    const unsigned line = offset >> 7;  // 128-byte line of shared memory: all 32 banks once
    switch (Mode) {
        case SWIZZLE_32B: return offset ^ (line & 1) << 4;
        case SWIZZLE_64B: return offset ^ (line & 3) << 4;
        case SWIZZLE_128B: return offset ^ (line & 7) << 4;
        case SWIZZLE_128B_ATOM_32B: return offset ^ (line & 3) << 5;
        case SWIZZLE_128B_ATOM_32B_FLIP_8B: return offset ^ (line & 3) << 5 ^ (line & 1) << 3;
        case SWIZZLE_128B_ATOM_64B: return offset ^ (line & 1) << 6;
        default: return offset;
    }
}

// Byte offset in shared memory of byte `byte` of row `row` of a box, for a tile that starts as swizzle() asks.
template <Swizzle Mode>
__host__ __device__ constexpr unsigned swizzled(unsigned row, unsigned byte) {
    return swizzle<Mode>(row * swizzle_span<Mode>() + byte);
}

}  // namespace cuda_tma
