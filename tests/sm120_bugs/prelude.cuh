// Instructions for the kernels of this folder, each a function, and the shared memory that most of them need.
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;
using u8 = unsigned char;
struct alignas(64) TensorMap { u8 opaque[128]; };

__device__ inline u32 shared(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
#define CALL(text, ...) asm volatile(text : __VA_ARGS__ : "memory")
#define INIT(bar, n) CALL("mbarrier.init.shared::cta.b64 [%0], %1;", : "r"(shared(bar)), "r"(n))
#define FENCE_INIT() asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")
#define FENCE_PROXY() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define ARRIVE(bar) CALL("mbarrier.arrive.shared::cta.b64 _, [%0];", : "r"(shared(bar)))
#define EXPECT(bar, n) CALL("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;", : "r"(shared(bar)), "r"(n))
#define WAIT(bar, parity)                                                                                           \
    CALL("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }",           \
         : "r"(shared(bar)), "r"(parity))
// Copy bytes from global memory: 16 bytes of one thread, or a number of bytes by the TMA unit, or a box of a map.
#define CP_ASYNC(to, from) CALL("cp.async.cg.shared.global [%0], [%1], 16;", : "r"(shared(to)), "l"(from))
#define CP_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define CP_WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
#define BULK(to, from, n, bar)                                                                                      \
    CALL("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];",                     \
         : "r"(shared(to)), "l"(from), "r"(n), "r"(shared(bar)))
#define TENSOR_2D(to, map, x, y, bar)                                                                               \
    CALL("cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];", \
         : "r"(shared(to)), "l"(&map), "r"(x), "r"(y), "r"(shared(bar)))
#define BULK_STORE(to, from, n)                                                                                     \
    CALL("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2; cp.async.bulk.commit_group;"                  \
         " cp.async.bulk.wait_group 0;", : "l"(to), "r"(shared(from)), "r"(n))
// Load 8 rows of 16 bytes, or 8 rows of 16 elements of 4 bits, each in 16 bytes, as a register.
#define LDMATRIX(x, at) CALL("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];", "=r"(x) : "r"(at))
#define LDMATRIX_FP4(x, at)                                                                                         \
    CALL("ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%0}, [%1];", "=r"(x) : "r"(at))
// 16 x 8 += A by B, whose registers contain x and y; K is 64 or 32.
#define MMA(kind, k, a_type, b_type, scale, d, x, y, of_a, a_byte, a_thread, of_b, b_byte, b_thread)                \
    asm volatile("mma.sync.aligned.kind::" kind ".m16n8k" k ".row.col.f32." a_type "." b_type ".f32." scale         \
                 " {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%5, %5}, {%0, %1, %2, %3}, {%6}, {%7, %8}, {%9}, {%10, %11};" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                   \
                 : "r"(x), "r"(y), "r"(of_a), "h"(u16(a_byte)), "h"(u16(a_thread)), "r"(of_b), "h"(u16(b_byte)),    \
                   "h"(u16(b_thread)))
#define MXF4 "mxf4.block_scale.scale_vec::2X", "64", "e2m1", "e2m1", "ue8m0"
#define NVF4 "mxf4nvf4.block_scale.scale_vec::4X", "64", "e2m1", "e2m1", "ue4m3"
#define MXF8 "mxf8f6f4.block_scale.scale_vec::1X", "32", "e2m1", "e2m1", "ue8m0"
#define MULTIPLY(...) MMA(__VA_ARGS__)
constexpr u32 ONES = 0x22222222, ONE_SCALES = 0x7f7f7f7f;  // elements of e2m1, and scales of ue8m0

struct Shared {
    alignas(128) u8 tile[2][2048];
    alignas(128) u32 scales[2][128];
    u64 full[2], empty[2];
};

// Initialize the barriers, of which each empty one has the given count.
__device__ inline void begin(Shared& s, u32 empty = 1) {
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; ++i) {
            INIT(&s.full[i], 1);
            INIT(&s.empty[i], empty);
        }
        FENCE_INIT();
    }
    __syncthreads();
}
__device__ inline void write(u32* out, const float (&d)[4]) {
    for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = __float_as_uint(d[i]);
}
