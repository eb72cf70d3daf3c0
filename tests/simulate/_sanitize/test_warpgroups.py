"""Tests of wgmma operands for which only some threads of the warpgroup have waited. The race is advice, and the finding
states the recorded behavior of hardware."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
#include <cuda_tma/tma.cuh>
#include <cuda_tma/wgmma.cuh>
using namespace cuda_tma;
__device__ unsigned at(const void* pointer) { return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }
__device__ unsigned long long matrix(const void* tile) {  // core matrices, 128 and 256 bytes apart
    return at(tile) >> 4 | 8ull << 16 | 16ull << 32;
}
__device__ void copy(void* to, const void* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(at(to)), "l"(from) : "memory");
}
extern "C" __global__ void k(const uint4* given, float* out) {
    __shared__ alignas(1024) uint4 tiles[256];
    __shared__ Barrier full;
    const int t = threadIdx.x;
    uint4* a = tiles;
    uint4* b = tiles + 128;
    if (t == 0) { full.init(1); fence_barrier_init(); }
    __syncthreads();
    FILL
    if (t >= 128) return;
    float c[4] = {};
    wgmma_fence();
    asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "  // wgmma
        "{%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "l"(matrix(a)), "l"(matrix(b)));
    wgmma_commit();
    wgmma_wait<0>();
    out[t] = c[0];
}
"""
STORE = "if (t < 128) tiles[t] = given[t], tiles[t + 128] = given[t + 128];\n"
COPY = """if (t < 128) {
    copy(tiles + t, given + t);
    copy(tiles + t + 128, given + t + 128);
    asm volatile("cp.async.wait_all;" ::: "memory");
}
"""
FENCE = "fence_proxy_async();\n"
SYNC = "__syncthreads();\n"
LOAD = """if (t == 0) {
    full.arrive_expect_tx(4096);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 4096, [%2];"
        :: "r"(at(tiles)), "l"(given), "r"(at(&full)) : "memory");
}
"""
STORED_BY_A_FIFTH_WARP = "if (t >= 128) for (int i = t - 128; i < 256; i += 32) tiles[i] = given[i];\n"
ADVICE = {
    "stores": STORE + FENCE,
    "cp.async": COPY + FENCE,
    "a wait by one warp": LOAD + "if (t < 32) full.wait(0);",
    "a wait by one thread of each warp": LOAD + "if (t % 32 == 0) full.wait(0);",
    "a barrier of two warps": STORE + FENCE + 'if (t < 64) asm volatile("bar.sync 1, 64;" ::: "memory");',
    "a fifth warp, one waits": (
        STORED_BY_A_FIFTH_WARP + FENCE + "__syncwarp();\n if (t == 128) full.arrive();\n if (t < 32) full.wait(0);"
    ),
}
RIGHT = {
    "stores": STORE + FENCE + SYNC,
    "cp.async": COPY + FENCE + SYNC,
    "a wait by all": LOAD + "full.wait(0);",
    "a wait by one thread of each warp, and its warp": LOAD + "if (t % 32 == 0) full.wait(0);\n __syncwarp();",
    "a barrier of the warpgroup": STORE + FENCE + 'if (t < 128) asm volatile("bar.sync 1, 128;" ::: "memory");',
    "a wait by one thread, and a barrier": LOAD + "if (t == 5) full.wait(0);\n" + SYNC,
    "a fifth warp": STORED_BY_A_FIFTH_WARP + FENCE + "__syncwarp();\n if (t == 128) full.arrive();\n full.wait(0);",
    "lanes that wait apart": LOAD + "if (t & 1) full.wait(0); else full.wait(0);",
}
WRONG = {
    "stores without a fence": (STORE, "missing-proxy-fence"),
    "stores without a fence, with a barrier": (STORE + SYNC, "missing-proxy-fence"),
    "cp.async without a fence": (COPY, "missing-proxy-fence"),
    "a fifth warp": (STORED_BY_A_FIFTH_WARP + FENCE, "race"),
    "no wait": (LOAD, "race"),
}


@cache
def compiled(fill: str) -> simulate.Kernel:
    return simulate.Device().compile(SOURCE.replace("FILL", fill), "k")


def launched(fill: str, strict: bool = False) -> tuple[simulate.Finding, ...]:
    gpu = simulate.Device(strict=strict, schedules=4)
    given, out = np.ones((256, 4), np.uint32), np.zeros(128, np.float32)
    return gpu.launch(simulate.Config(1, 160), compiled(fill), given, out).findings


@pytest.mark.parametrize("name", ADVICE)
def test_an_order_that_only_wgmma_keeps_is_advice(name):
    found = launched(ADVICE[name])
    assert {(finding.kind, finding.severity) for finding in found} == {("race", "advice")}, found
    assert all("wgmma is not a barrier for memory" in f.message and "An H200" in f.message for f in found)
    line = 1 + ["// wgmma" in line for line in SOURCE.replace("FILL", ADVICE[name]).splitlines()].index(True)
    assert {place.line for finding in found for place in finding.source} == {line}
    assert {finding.severity for finding in launched(ADVICE[name], strict=True) if finding.kind == "race"} == {"error"}


@pytest.mark.parametrize("name", RIGHT)
def test_operands_ordered_in_all_threads_are_right(name):
    assert launched(RIGHT[name]) == ()


@pytest.mark.parametrize("name", WRONG)
def test_operands_ordered_in_no_thread_are_an_error(name):
    fill, kind = WRONG[name]
    assert kind in {finding.kind for finding in launched(fill) if finding.severity == "error"}
