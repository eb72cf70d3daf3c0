"""Kernels whose arguments can cause a fault.

Each kernel executes one TMA instruction, arrival or access.

All kernels take a tensor map and a ``Given``, whose fields ``GIVEN`` lists. A kernel that reaches its end writes three
values to `out`. The values are the number 1, whether the phase of its barrier completed within a fifth of a second, and
the word of the barrier.
"""

from __future__ import annotations

# GIVEN contains the names of the kernel's arguments, of which the first three have 64 bits and the remaining ones have
# 32. The arguments "tile" and "barrier" are byte offsets in shared memory.
GIVEN = ("memory", "address", "out", "where", "tile", "barrier", "bytes", "x", "y", "z", "number", "mask")
CLUSTER = 2  # A kernel whose name begins with cluster_ runs in a cluster of two CTAs.
_TENSOR = "cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}mbarrier::complete_tx::bytes{multicast}"


def _load(rank: int, multicast: str = "", name: str = "") -> str:
    coordinates = ", ".join(("%3", "%4", "%5", "%5", "%5")[:rank])
    opcode = _TENSOR.format(rank=rank, mode="", multicast=multicast)
    return _KERNEL.format(
        name=name or f"load_{rank}",
        ptx=f"{opcode} [%0], [%1, {{{coordinates}}}], [%2]{', %6' * bool(multicast)};",
        wait="wait(given);",
    )


_KERNEL = """
extern "C" __global__ void {name}(const __grid_constant__ Map map, const Given given) {{
    Map copy = map;
    const u64 place = place_of(map, copy, given);
    begin(given);
    asm volatile("{ptx}" :: "r"(at(given.tile)), "l"(place), "r"(at(given.barrier)), "r"(given.x), "r"(given.y),
                 "r"(given.z), "h"((unsigned short)given.mask), "r"(given.number), "l"(given.memory), "r"(given.bytes),
                 "l"(given.address) : "memory");
    {wait}
    end(given);
}}
"""
_IM2COL = _TENSOR.format(rank=4, mode="im2col.", multicast="") + " [%0], [%1, {%3, %4, %5, %5}], [%2], {%6, %6};"
_STORED = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
_SMEM_TO_GLOBAL = (
    "cp{reduce}.async.bulk.tensor.{rank}d.global.shared::cta{op}.bulk_group [%1, {{{xs}}}], [%0]; " + _STORED
)


def _store(rank: int, op: str = "") -> str:
    xs = ", ".join(("%3", "%4", "%5")[:rank])
    return _SMEM_TO_GLOBAL.format(reduce=".reduce" * bool(op), rank=rank, op=f".{op}" * bool(op) + ".tile", xs=xs)


_PARTS = {  # The PTX in _PARTS uses the operands that _KERNEL defines.
    "load_im2col": _IM2COL,
    "store_1": _store(1),
    "store_2": _store(2),
    "store_3": _store(3),
    "reduce_add": _store(2, "add"),
    "reduce_xor": _store(2, "xor"),
    "prefetch": "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%1, {%3, %4}];",
    "prefetch_map": "prefetch.tensormap [%1];",
    "acquire_map": "fence.proxy.tensormap::generic.acquire.gpu [%1], 128;",
    "bulk_load": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%8], %9, [%2];",
    "bulk_wild": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%10], %9, [%2];",
    "bulk_store": f"cp.async.bulk.global.shared::cta.bulk_group [%8], [%0], %9; {_STORED}",
    "bulk_store_wild": f"cp.async.bulk.global.shared::cta.bulk_group [%10], [%0], %9; {_STORED}",
    "bulk_reduce": f"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%8], [%0], %9; {_STORED}",
    "arrive": "mbarrier.arrive.shared::cta.b64 _, [%2], %7;",
    "expect": "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%2], %9;",
    "init": "mbarrier.init.shared::cta.b64 [%2], %7;",
    "arrive_generic": "mbarrier.arrive.b64 _, [%10];",
    "copy_async": "cp.async.cg.shared.global [%0], [%8], 16; cp.async.wait_all;",
    "ldmatrix": "{ .reg .b32 a; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {a}, [%0]; }",
    "load_shared": "{ .reg .b32 a; ld.volatile.shared.b32 a, [%0]; st.volatile.shared.b32 [%0], a; }",
    "load_global": "{ .reg .b32 a; ld.volatile.global.b32 a, [%10]; }",
    "store_global": "st.volatile.global.b32 [%10], %7;",
    "load_wide": "{ .reg .b32 a; ld.volatile.global.b32 a, [%8 + 2]; }",
    "atomic_local": "{ .reg .b32 a; atom.add.u32 a, [%1], 1; }",
    "load_place": "{ .reg .b32 a; ld.volatile.global.b32 a, [%1]; }",
    "atomic_place": "{ .reg .b32 a; atom.global.add.u32 a, [%1], 1; }",
    "load_shared_wide": "{ .reg .b64 a; ld.volatile.shared.b64 a, [%0]; st.volatile.shared.b64 [%0], a; }",
    "multimem": "multimem.red.global.add.u32 [%8], %7;",
    "call": "{ .reg .b64 f; mov.b64 f, %10; prototype: .callprototype ()_ (); call f, (), prototype; }",
    "bar_sync": "bar.sync %7, %9;",
    "trap": "trap;",
    "brkpt": "brkpt;",
}
# The kernels in WAITS wait for at most a fifth of a second.
WAITS = (*(f"load_{rank}" for rank in range(1, 6)), "load_multicast", "load_im2col", "bulk_load", "bulk_wild", "arrive")
WAITS += ("expect", "cluster_multicast")
_BY_CLUSTER = {
    "cluster_multicast": _TENSOR.format(rank=2, mode="", multicast=".multicast::cluster")
    + " [%0], [%1, {%3, %4}], [%2], %6;",
    "cluster_arrive": "{ .reg .b32 a; mapa.shared::cluster.u32 a, %2, %7;"
    " mbarrier.arrive.release.cluster.shared::cluster.b64 _, [a]; }",
    "cluster_store": "{ .reg .b32 a; mapa.shared::cluster.u32 a, %0, %7; st.shared::cluster.u32 [a], %9; }",
    "cluster_load": "{ .reg .b32 a; mapa.shared::cluster.u32 a, %0, %7; ld.volatile.shared::cluster.u32 a, [a]; }",
    "cluster_copy": "{ .reg .b32 a, b; mapa.shared::cluster.u32 a, %0, %7; mapa.shared::cluster.u32 b, %2, %7;"
    " cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [a], [%0], %9, [b]; }",
}
_START = r"""
typedef unsigned long long u64;
typedef unsigned u32;
struct alignas(64) Map { unsigned char bytes[128]; };
struct Given { FIELDS };
extern __shared__ __align__(1024) unsigned char smem[];
__constant__ Map constant_map;
__device__ Map global_map;

__device__ u32 at(u32 offset) { return static_cast<u32>(__cvta_generic_to_shared(smem)) + offset; }

// The place of the map: 0 parameter, 1 address given, 2 local, 3 shared, 4 constant, 5 global memory.
__device__ u64 place_of(const Map& parameter, Map& local, const Given& given) {
    Map* const shared = reinterpret_cast<Map*>(smem + 40960);
    *shared = local;
    switch (given.where) {
        case 1: return given.address;
        case 2: return reinterpret_cast<u64>(&local);
        case 3: return reinterpret_cast<u64>(shared);
        case 4: return reinterpret_cast<u64>(&constant_map);
        case 5:
            global_map = local;
            asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
            asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(&global_map) : "memory");
            return reinterpret_cast<u64>(&global_map);
    }
    return reinterpret_cast<u64>(&parameter);
}

// A barrier at 32768 expects one arrival, which occurs, and the given bytes; another at 34816 expects one arrival.
// Other places stay unchanged.
__device__ void begin(const Given& given) {
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at(32768)) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at(34816)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(32768)), "r"(given.bytes)
                     : "memory");
    }
    __syncthreads();
}
__device__ bool is_complete(u32 barrier) {
    u32 complete;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(complete) : "r"(barrier) : "memory");
    return complete;
}
__device__ u64 now() { u64 ns; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns)); return ns; }
__device__ void wait(const Given& given) {
    for (const u64 end = now() + 200000000; now() < end && !is_complete(at(32768));) continue;
}
__device__ void end(const Given& given) {
    __syncthreads();
    if (threadIdx.x) return;
    u64* const out = reinterpret_cast<u64*>(given.out);
    out[1] = is_complete(at(32768));
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(at(32768)) : "memory");   // writes the word to memory
    asm volatile("ld.volatile.shared.b64 %0, [%1];" : "=l"(out[2]) : "r"(at(32768)) : "memory");
    out[0] = 1;
}
__device__ void meet() { asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory"); }
"""
_CLUSTER_KERNEL = """
extern "C" __global__ __cluster_dims__(CLUSTER) void {name}(const __grid_constant__ Map map, const Given given) {{
    const u64 place = reinterpret_cast<u64>(&map);
    begin(given);
    meet();
    if (given.where && blockIdx.x) return;   // this CTA has ended when the other accesses it
    if (given.where) __nanosleep(1000000);
    if (blockIdx.x == 0)
        asm volatile("{ptx}" :: "r"(at(given.tile)), "l"(place), "r"(at(given.barrier)), "r"(given.x), "r"(given.y),
                     "r"(given.z), "h"((unsigned short)given.mask), "r"(given.number), "l"(given.memory),
                     "r"(given.bytes), "l"(given.address) : "memory");
    wait(given);
    if (!given.where) meet();
    if (blockIdx.x == 0) end(given);
}}
"""
_OTHERS = r"""
extern "C" __global__ void healthy(const __grid_constant__ Map map, const Given given) {
    reinterpret_cast<u64*>(given.out)[0] = 1;
}
extern "C" __global__ void asserts(const __grid_constant__ Map map, const Given given) { assert(given.out == 0); }
extern "C" __global__ void never(const __grid_constant__ Map map, const Given given) {
    begin(given);
    while (!is_complete(at(32768))) continue;
    end(given);
}
__device__ __noinline__ u32 deeper(u32 n, volatile u32* from) {
    volatile u32 rows[256];
    rows[n % 256] = from[n % 7];
    return n ? deeper(n - 1, rows) + rows[(n + 1) % 256] : rows[0];
}
extern "C" __global__ void recurse(const __grid_constant__ Map map, const Given given) {
    volatile u32 rows[256];
    rows[0] = given.number;
    reinterpret_cast<u64*>(given.out)[3] = deeper(given.number, rows);
    end(given);
}
// One wgmma of two operands that its descriptors find nowhere, or by too few warps.
extern "C" __global__ void wgmma(const __grid_constant__ Map map, const Given given) {
    float d[4] = {};
    begin(given);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %4, 0, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(given.address) : "memory");
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
    reinterpret_cast<u64*>(given.out)[3] = d[0] + d[1] + d[2] + d[3] != 0;
    end(given);
}
"""


def _source() -> str:
    fields = " ".join(f"{'u64' if i < 3 else 'u32'} {name};" for i, name in enumerate(GIVEN))
    parts = [_START.replace("FIELDS", fields), _OTHERS]
    parts += [_load(rank) for rank in range(1, 6)]
    parts.append(_load(2, ".multicast::cluster", "load_multicast"))
    for name, ptx in _PARTS.items():
        parts.append(_KERNEL.format(name=name, ptx=ptx, wait="wait(given);" if name in WAITS else ""))
    parts += [_CLUSTER_KERNEL.format(name=name, ptx=ptx) for name, ptx in _BY_CLUSTER.items()]
    return "\n".join(parts).replace("CLUSTER", str(CLUSTER))


SOURCE = _source()
