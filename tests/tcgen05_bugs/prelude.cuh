// Instructions for the kernels of this folder, each a function; tiles, barriers and columns that most of them need.
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;

__device__ inline u32 shared(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
#define CALL(text, ...) asm volatile(text : __VA_ARGS__ : "memory")
#define ALLOC(slot, n) CALL("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;", : "r"(shared(slot)), "r"(n))
#define DEALLOC(t, n) CALL("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;", : "r"(t), "r"(n))
#define RELINQUISH() asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory")
#define LD(x, t) CALL("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];", "=r"(x) : "r"(t))
#define ST(t, x) CALL("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};", : "r"(t), "r"(x))
#define WAIT_LD() asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory")
#define WAIT_ST() asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory")
#define FENCE_BEFORE() asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory")
#define FENCE_AFTER() asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory")
#define FENCE_PROXY() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define ARRIVE(bar) CALL("mbarrier.arrive.shared::cta.b64 _, [%0];", : "r"(shared(bar)))
#define ARRIVE_RELAXED(bar) CALL("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];", : "r"(shared(bar)))
#define WAIT_AS(order, bar, parity)                                                                                \
    CALL("{ .reg .pred p; again: mbarrier.try_wait.parity" order ".shared::cta.b64 p, [%0], %1; @!p bra again; }", \
         : "r"(shared(bar)), "r"(parity))
#define WAIT(bar, parity) WAIT_AS("", bar, parity)
#define WAIT_RELAXED(bar, parity) WAIT_AS(".relaxed.cta", bar, parity)
#define COMMIT(bar) CALL("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];", : "r"(shared(bar)))
// 128 x 16 += 128 x 16 by 16 x 16, f16 to f32; A in shared memory or, of MMA_LEFT, in tensor memory.
#define MMA(d, a, b, add)                                                                                     \
    CALL("{ .reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }",   \
         : "r"(d), "l"(tile(a, 128)), "l"(tile(b, 16)), "r"(FORM), "r"(u32(add)))
#define MMA_LEFT(d, a, b, add)                                                                                \
    CALL("{ .reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p; }", \
         : "r"(d), "r"(a), "l"(tile(b, 16)), "r"(FORM), "r"(u32(add)))
// 128 x 16 = 128 x 32 by 32 x 16, e4m3 with scales of ue8m0; MMA_FOUR_BITS has K = 64. CP_SCALES copies 128 rows.
#define MMA_WITH_SCALES(kind, d, a, b, form, of_a, of_b)                                                          \
    CALL("{ .reg .pred p; setp.ne.u32 p, 0, 0; tcgen05.mma.cta_group::1.kind::" kind ".block_scale [%0], %1, %2," \
         " %3, [%4], [%5], p; }", : "r"(d), "l"(tile(a, 128)), "l"(tile(b, 16)), "r"(form), "r"(of_a), "r"(of_b))
#define MMA_SCALED(...) MMA_WITH_SCALES("mxf8f6f4", __VA_ARGS__)
#define MMA_FOUR_BITS(...) MMA_WITH_SCALES("mxf4", __VA_ARGS__)
#define CP_SCALES(t, from)                                       \
    CALL("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;", : "r"(t), "l"(tile(reinterpret_cast<const u16*>(from), 32)))
constexpr u32 SCALED_FORM = 128 >> 4 << 24 | 1 << 23 | 16 >> 3 << 17;
constexpr u32 FOUR_BIT_FORM = SCALED_FORM | 1 << 7 | 1 << 10;
// 256 x 32 += 256 x 16 by 16 x 32 of a pair of CTAs, each with half of the rows of A and of the columns of B.
#define MMA_PAIR(d, a, b)                                                                                      \
    CALL("{ .reg .pred p; setp.ne.u32 p, 0, 0; tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p; }",     \
         : "r"(d), "l"(tile(a, 128)), "l"(tile(b, 16)), "r"(PAIR_FORM))
#define COMMIT_PAIR(bar)                                                                                       \
    CALL("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;", \
         : "r"(shared(bar)), "h"(short(3)))
#define ALLOC_PAIR(slot, n) CALL("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;", : "r"(shared(slot)), "r"(n))
#define DEALLOC_PAIR(t, n) CALL("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;", : "r"(t), "r"(n))
#define MEET() asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory")
#define ARRIVE_AT(bar, cta)                                                                                    \
    CALL("{ .reg .b32 a; mapa.shared::cluster.u32 a, %0, %1;"                                                  \
         " mbarrier.arrive.release.cluster.shared::cluster.b64 _, [a]; }", : "r"(shared(bar)), "r"(cta))
constexpr u32 PAIR_FORM = 256 >> 4 << 24 | 32 >> 3 << 17 | 1 << 4;
constexpr u32 FORM = 128 >> 4 << 24 | 16 >> 3 << 17 | 1 << 4;  // f16 factors, f32 sums

__device__ inline u64 tile(const u16* at, u32 rows) {  // core matrices of 8 rows of 16 bytes, without a swizzle
    return (u64(shared(at)) & 0x3ffff) >> 4 | u64(rows) << 16 | 8ull << 32 | 1ull << 46;
}
__device__ inline u32 lanes(u32 t) { return t + ((threadIdx.x / 32 % 4) << 21); }  // those of this warp

struct Shared {
    alignas(128) u16 a[2][2048];
    alignas(128) u16 b[2][256];
    u64 full[2], empty[2], done;
    u32 base;
};

// Fill the tiles with 1.0, initialize the barriers with these counts, and allocate columns. Return the first.
__device__ inline u32 begin(Shared& s, u32 columns, u32 full = 1, u32 empty = 1) {
    for (u32 i = threadIdx.x; i < 4096; i += blockDim.x) s.a[0][i] = 0x3c00;
    for (u32 i = threadIdx.x; i < 512; i += blockDim.x) s.b[0][i] = 0x3c00;
    FENCE_PROXY();
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; ++i) {
            CALL("mbarrier.init.shared::cta.b64 [%0], %1;", : "r"(shared(&s.full[i])), "r"(full));
            CALL("mbarrier.init.shared::cta.b64 [%0], %1;", : "r"(shared(&s.empty[i])), "r"(empty));
        }
        CALL("mbarrier.init.shared::cta.b64 [%0], %1;", : "r"(shared(&s.done)), "r"(1));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (threadIdx.x < 32) ALLOC(&s.base, columns);
    __syncthreads();
    return s.base;
}
__device__ inline void end(u32 t, u32 columns) {
    __syncthreads();
    if (threadIdx.x < 32) DEALLOC(t, columns);
}
