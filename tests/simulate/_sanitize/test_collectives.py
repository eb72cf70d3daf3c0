"""Tests of one lane that arrives for its warp. The finding is advice after an instruction of the whole warp, and
otherwise an error."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from cuda_tma import simulate

# Threads 0 to 127 access `shared`, lane 0 of each warp arrives, and then warp 4 or TMA writes to `shared`.
SOURCE = r"""
#include <cuda_tma/tma.cuh>
#include <cuda_tma/wgmma.cuh>
using namespace cuda_tma;

__device__ unsigned at(const void* pointer) { return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }
__device__ int get(const int* pointer) {
    int found;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(found) : "r"(at(pointer)) : "memory");
    return found;
}
__device__ void set(int* pointer, int value) {
    asm volatile("st.shared.b32 [%0], %1;" :: "r"(at(pointer)), "r"(value) : "memory");
}
__device__ unsigned long long matrix(const void* tile) {  // core matrices, 128 and 256 bytes apart
    return at(tile) >> 4 | 8ull << 16 | 16ull << 32;
}

extern "C" __global__ void k(const __grid_constant__ TensorMap map, int* out) {
    __shared__ alignas(1024) unsigned short a[1024], b[1024];
    __shared__ alignas(128) int shared[256];
    __shared__ alignas(128) int rows[128];
    __shared__ Barrier empty, full;
    const int t = threadIdx.x, lane = t % 32;
    for (int i = t; i < 1024; i += blockDim.x) a[i] = b[i] = 0;
    if (t < 128) shared[t] = shared[t + 128] = t, rows[t] = t;
    if (t == 0) { empty.init(4); full.init(1); fence_barrier_init(); }
    fence_proxy_async();
    __syncthreads();
    if (t >= 128) {
        if (t == 128) {
            empty.wait(0);
            AFTER
        }
        return;
    }
    float c[4] = {};
    int v = 0;
    BEFORE
    if (lane == 0) empty.arrive();
    out[t] = v + int(c[0]);
}
"""
READ = "v = get(shared + (t ^ 1));\n"
WRITE = "set(shared + t, 5);\n"
FENCE = "fence_proxy_async();\n"
WGMMA = """
    wgmma_fence();
    asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "l"(matrix(a)), "l"(matrix(b)));
    wgmma_commit();
"""
COLLECTIVES = {
    "shuffle": "v += __shfl_sync(~0u, v, lane ^ 1);",
    "vote": "v += __ballot_sync(~0u, v > 3);",
    "reduction": "v += __reduce_add_sync(~0u, v);",
    "match": "v += __match_any_sync(~0u, v);",
    "ldmatrix": 'asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(v) : "r"(at(rows)));',
    "mma": 'asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %4}, {%4}, '
    '{%0, %1, %2, %3};" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(v));',
    "wgmma": WGMMA + "wgmma_wait<0>();",
    "wgmma_fence": "wgmma_fence();",
}
STORE = "for (int i = 0; i < 128; ++i) set(shared + i, 9);"
LOAD = "full.arrive_expect_tx(512); load(shared, map, full, Coordinates{0}); full.wait(0);"
TMA_STORE = "store(map, Coordinates{0}, shared); commit_group(); wait_group_read<0>();"
SYNC = "__syncwarp();\n"


@cache
def compiled(before: str, after: str) -> simulate.Kernel:
    source = SOURCE.replace("BEFORE", before).replace("AFTER", after, 1)
    return simulate.Device().compile(source, "k")


def launched(before: str, after: str, strict: bool = False) -> tuple[simulate.Finding, ...]:
    gpu = simulate.Device(strict=strict, schedules=4)
    given, out = np.zeros(128, np.int32), np.zeros(128, np.int32)
    arguments = gpu.create_tensor_map(given, box_dim=(128,)), out
    return gpu.launch(simulate.Config(1, 160), compiled(before, after), *arguments).findings


def kinds(findings: tuple[simulate.Finding, ...]) -> set[tuple[str, str]]:
    return {(finding.kind, finding.severity) for finding in findings}


@pytest.mark.parametrize("after", [STORE, LOAD], ids=["store", "load"])
@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_read_before_an_instruction_of_the_warp_is_advice(name, after):
    findings = launched(READ + COLLECTIVES[name], after)
    assert kinds(findings) == {("race", "advice")}
    assert "which its warp executes together" in findings[0].happened
    assert any(what == "its warp executes together" for what, _ in findings[0].related)
    assert kinds(launched(READ + COLLECTIVES[name], after, strict=True)) >= {("race", "error")}


def test_some_warps_and_another_warp_execute_different_instructions():
    source = """
extern "C" __global__ void k(int* out, int turns) {
    int t = threadIdx.x;
    for (int i = 0; i < turns; ++i) {
        if (t / 32 == 1) t = __shfl_xor_sync(~0u, t, 1); else t = __reduce_max_sync(~0u, t);
    }
    out[threadIdx.x] = t;
}
"""
    gpu, out, t = simulate.Device(schedules=4), np.zeros(96, np.int32), np.arange(96)
    assert gpu.launch(simulate.Config(1, 96), gpu.compile(source, "k"), out, 3).findings == ()
    assert out.tolist() == np.where(t // 32 == 1, t ^ 1, t | 31).tolist()


def test_the_instruction_between_the_read_and_the_arrival_is_named():
    before = COLLECTIVES["vote"] + "\n" + SYNC + READ + COLLECTIVES["shuffle"] + "  // named"
    (finding,) = launched(before, STORE)
    lines = SOURCE.replace("BEFORE", before).splitlines()
    (place,) = dict(finding.related)["its warp executes together"]
    assert lines[place.line - 1].endswith("// named")


@pytest.mark.parametrize("after", [STORE, LOAD], ids=["store", "load"])
@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_read_after_it_is_an_error(name, after):
    assert ("race", "error") in kinds(launched(COLLECTIVES[name] + READ, after))


@pytest.mark.parametrize("after", [STORE, LOAD], ids=["store", "load"])
def test_a_read_without_one_is_an_error(after):
    assert ("race", "error") in kinds(launched(READ, after))
    assert ("race", "error") in kinds(launched(READ + "v += elect_one();", after))


@pytest.mark.parametrize("after", [STORE, TMA_STORE], ids=["store", "tma"])
def test_a_write_before_a_shuffle_is_advice(after):
    assert kinds(launched(WRITE + FENCE + COLLECTIVES["shuffle"], after)) == {("race", "advice")}
    assert ("race", "error") in kinds(launched(WRITE + FENCE, after))


def test_a_write_before_a_shuffle_needs_a_proxy_fence():
    assert ("missing-proxy-fence", "error") in kinds(launched(WRITE + COLLECTIVES["shuffle"], TMA_STORE))
    ending = WRITE + COLLECTIVES["shuffle"] + "if (lane == 0) fence_proxy_async();"
    assert kinds(launched(ending, TMA_STORE)) == {("race", "advice")}


@pytest.mark.parametrize("name", ["shuffle", "wgmma", "mma", "ldmatrix"])
def test_a_barrier_of_the_warp_orders_the_accesses(name):
    assert launched(READ + COLLECTIVES[name] + SYNC, STORE, strict=True) == ()


def test_a_read_in_the_same_warp_after_a_write_and_a_shuffle_is_an_error():
    exchange = "set(shared + t, 5); v = __shfl_sync(~0u, t, lane ^ 1); v += get(shared + (t ^ 1));"
    assert ("race", "error") in kinds(launched(exchange + SYNC, ""))


def test_products_in_a_loop_are_advice():
    loop = "for (int i = 0; i < 40; ++i) { v += get(shared + (t ^ 1)); v += __shfl_sync(~0u, v, lane ^ 1); }"
    assert kinds(launched(loop, STORE)) == {("race", "advice")}


def test_a_race_in_addition_to_advice_is_an_error():
    """In the test, warp 0 reads after its shuffle, and the other warps read before their shuffles."""
    read = "v += get(shared + (t ^ 1));"
    before = f"if (t >= 32) {read} v += __shfl_sync(~0u, v, lane ^ 1); if (t < 32) {read}"
    assert ("race", "error") in kinds(launched(before, STORE))


# ---- a map that the elected lane changes again after the warp has copied it ----

MAPS = r"""
#include <cuda_tma/tma.cuh>
#include <cuda_tma/tensor_map_replace.cuh>
using namespace cuda_tma;

extern "C" __global__ void maps(const __grid_constant__ TensorMap given, TensorMap* copies, char* memory) {
    __shared__ alignas(128) TensorMap mine;
    const unsigned lane = threadIdx.x;
    if (lane < 16) mine.opaque[lane] = given.opaque[lane];
    __syncwarp();
    for (int group = 0; group < 2; ++group) {
        if (lane == 0) replace_global_address(mine, memory + 1024 * group);
        BEFORE
        copy_tensor_map_release(copies + group, mine);
        ENDING
    }
}
"""


@pytest.mark.parametrize(
    ("ending", "expected"), [("", {("race", "advice")}), ("__syncwarp();", set())], ids=["copy alone", "barrier"]
)
def test_a_map_that_is_replaced_after_its_copy_is_advice(ending, expected):
    gpu = simulate.Device(schedules=4)
    given, memory, copies = np.zeros(128, np.int32), np.zeros(2048, np.uint8), np.zeros(256, np.uint8)
    kernel = gpu.compile(MAPS.replace("BEFORE", "__syncwarp();").replace("ENDING", ending), "maps")
    arguments = gpu.create_tensor_map(given, box_dim=(128,)), copies, memory
    report = gpu.launch(simulate.Config(1, 32), kernel, *arguments)
    assert kinds(report.findings) == expected


def test_warps_that_diverge_and_reconverge():
    """In some iterations of the test's loop, the active lanes of a warp are not contiguous."""
    body = "for (int i = 0; i < 4; ++i) { if (t / 32 == i) v += elect_one(); v += __shfl_sync(~0u, v, lane ^ 1); }"
    assert launched(body + SYNC, STORE, strict=True) == ()
