"""Tests of blocks that synchronize through global memory, with fences at different places, or without a barrier of the
block."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
__device__ void wait_for_all(unsigned* count, unsigned all) {
#if BARRIER == 0  // fences around the barriers: __threadfence() in each thread
    __threadfence();
    MEET;
    if (threadIdx.x == 0) {
        atomicAdd(count, 1);
        while (atomicAdd(count, 0) < all) {}
    }
    __syncthreads();
    __threadfence();
#elif BARRIER == 1  // fences in one thread
    MEET;
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(count, 1);
        while (*static_cast<volatile unsigned*>(count) < all) {}
        __threadfence();
    }
    __syncthreads();
#else
    MEET;
    if (threadIdx.x == 0) {
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" :: "l"(count) : "memory");
        unsigned found;
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(count) : "memory");
        while (found < all);
    }
    __syncthreads();
#endif
}

extern "C" __global__ void shift(int* from, int* to, unsigned* count, int rounds) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    for (int round = 0; round < rounds; ++round) {
        to[i] = from[(i + 37) % n] + 1;  // STEP
        wait_for_all(count, (round + 1) * gridDim.x);
        int* next = from;
        from = to;
        to = next;
    }
}

struct alignas(64) Map { char bytes[128]; };
extern "C" __global__ void hand_on(const __grid_constant__ Map map, float* memory, float* out, unsigned* flag) {
    __shared__ alignas(128) float tile[256];
    __shared__ alignas(8) unsigned long long full;
    const unsigned bar = __cvta_generic_to_shared(&full), at = __cvta_generic_to_shared(tile);
    if (blockIdx.x == 0) {
        for (int i = threadIdx.x; i < 256; i += blockDim.x) memory[i] = i;  // GIVEN
        asm volatile("fence.proxy.async.global;" ::: "memory");
        MEET;
        if (threadIdx.x == 0) asm volatile("st.release.gpu.global.u32 [%0], 1;" :: "l"(flag) : "memory");
    } else if (threadIdx.x == 0) {
        unsigned found;
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(flag) : "memory"); while (!found);
        asm volatile("fence.proxy.async.global; mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(bar) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" :: "r"(bar) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                     "[%1, {%2, %2}], [%3];" :: "r"(at), "l"(&map), "r"(0), "r"(bar) : "memory");  // TAKEN
        asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra again; }"
                     :: "r"(bar) : "memory");
        *out = tile[255];
    }
}
"""


def run(name: str, barrier: int, meet: str, **how) -> tuple[simulate.Report, list[np.ndarray]]:
    gpu = simulate.Device(schedules=3, **how)
    kernel = gpu.compile(SOURCE, name, defines={"BARRIER": barrier, "MEET": meet})
    count = np.zeros(1, np.uint32)
    if name == "shift":
        arrays = [np.arange(256, dtype=np.int32), np.zeros(256, np.int32)]
        given = (*arrays, count, 3)
    else:
        arrays = [np.zeros((8, 32), np.float32), np.zeros(1, np.float32)]
        given = (gpu.create_tensor_map(arrays[0], box_dim=(8, 32)), *arrays, count)
    config = simulate.Config(4 if name == "shift" else 2, 64, is_cooperative=True)
    return gpu.launch(config, kernel, *given), arrays


@pytest.mark.parametrize("barrier", [0, 1, 2])
def test_a_barrier_of_the_grid_orders_all(barrier):
    report, (_, to) = run("shift", barrier, "__syncthreads()", strict=True)
    expected = np.arange(256)
    for _ in range(3):
        expected = np.roll(expected, -37) + 1
    assert report.findings == ()
    np.testing.assert_array_equal(to, expected)


@pytest.mark.parametrize("barrier", [0, 1, 2])
def test_one_thread_releases_writes_of_others_only_after_a_barrier(barrier):
    report, _ = run("shift", barrier, "")
    (line,) = (i for i, text in enumerate(SOURCE.splitlines(), 1) if text.endswith("// STEP"))
    assert {(each.kind, each.severity, each.source[-1].line) for each in report.findings} == {("race", "error", line)}


def test_a_bulk_load_of_bytes_that_another_block_wrote():
    report, (_, out) = run("hand_on", 0, "__syncthreads()", strict=True)
    assert (report.findings, out) == ((), 255)
    report, _ = run("hand_on", 0, "")
    lines = SOURCE.splitlines()
    given, taken = (next(i for i, text in enumerate(lines, 1) if mark in text) for mark in ("// GIVEN", "// TAKEN"))
    (finding,) = report.findings
    assert (finding.kind, finding.severity, finding.other[-1].line) == ("race", "error", given)
    assert taken - 1 <= finding.source[-1].line <= taken
