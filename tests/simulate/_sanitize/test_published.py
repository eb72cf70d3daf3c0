"""Tests of values that the last block reads from other blocks, with and without the fences of the CUDA C++ Programming
Guide."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
__device__ void arrive_at(unsigned* count) {
    asm volatile("red.release.gpu.add.u32 [%0], 1;" :: "l"(count) : "memory");
}

extern "C" __global__ void last_block(const float* in, float* partial, float* out, unsigned* count) {
    __shared__ float sums[64];
    __shared__ bool is_last;
    sums[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    for (int step = 32; step > 0; step /= 2) {
        if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
#if FAULT != 3
        __syncthreads();
#endif
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sums[0];  // WRITE
#if FAULT == 0 || FAULT == 3
        __threadfence();
#elif FAULT == 2
        __threadfence_block();
#endif
        is_last = atomicAdd(count, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last || threadIdx.x) return;
    float sum = 0;
    for (int i = 0; i < gridDim.x; ++i) sum += static_cast<volatile float*>(partial)[i];  // READ
    *out = sum;
}

extern "C" __global__ void released(const float* in, float* partial, float* out, unsigned* count) {
    partial[blockIdx.x * blockDim.x + threadIdx.x] = 1;
    if (FAULT) return;
    __syncthreads();
    if (threadIdx.x == 0) arrive_at(count);
    if (blockIdx.x || threadIdx.x) return;
    while (*static_cast<volatile unsigned*>(count) != gridDim.x) {}
    *out = static_cast<volatile float*>(partial)[gridDim.x * blockDim.x - 1];
}

extern "C" __global__ void all_fence(const float* in, float* partial, float* out, unsigned* count) {
    __shared__ bool is_last;
    if (threadIdx.x >= 32) for (int i = 0; i < 20; ++i) partial[blockIdx.x * blockDim.x + threadIdx.x] = in[i] + i;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicAdd(count, 1) == gridDim.x - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    if (threadIdx.x == 0) *out = partial[33] + partial[gridDim.x * blockDim.x - 1];
}

extern "C" __global__ void locked(const float* in, float* partial, float* out, unsigned* mutex) {
    if (threadIdx.x) return;
    while (atomicCAS(mutex, 0u, 1u) != 0u) {}
    if (FAULT != 1) __threadfence();
    *out += 1;  // UPDATE
    if (FAULT != 2) __threadfence();
    atomicExch(mutex, 0u);
}
"""


def launched(name: str, fault: int) -> tuple[simulate.Report, float]:
    gpu = simulate.Device(schedules=2)
    kernel = gpu.compile(SOURCE, name, defines={"FAULT": fault})
    given, partial, out = np.ones(320, np.float32), np.zeros(320, np.float32), np.zeros(1, np.float32)
    report = gpu.launch(simulate.Config(5, 64), kernel, given, partial, out, np.zeros(1, np.uint32))
    return report, out[0]


def line_of(text: str) -> int:
    return SOURCE[: SOURCE.index(text)].count("\n") + 1


@pytest.mark.parametrize(("name", "expected"), [("last_block", 320), ("released", 1), ("all_fence", 40), ("locked", 5)])
def test_released_values_may_be_read(name, expected):
    report, out = launched(name, 0)
    assert (report.findings, out) == ((), expected)


@pytest.mark.parametrize("fault", [1, 2])
def test_a_missing_fence_or_one_of_the_block_only_is_a_race(fault):
    report, _ = launched("last_block", fault)
    (finding,) = report.findings
    assert (finding.kind, finding.severity) == ("race", "error")
    assert (finding.source[-1].line, finding.other[-1].line) == (line_of("// READ"), line_of("// WRITE"))
    assert "__threadfence() and an atomic" in finding.remedy


@pytest.mark.parametrize("fault", [1, 2])
def test_a_lock_without_one_of_its_fences_is_a_race(fault):
    report, _ = launched("locked", fault)
    assert {(each.kind, each.source[-1].line) for each in report.findings} == {("race", line_of("// UPDATE"))}


def test_a_message_counts_the_bytes_of_one_block():
    report, _ = launched("last_block", 3)
    (finding,) = report.findings
    assert finding.message.startswith(
        "thread 0 (warp 0) and 15 other threads read 64 bytes at `sums` + 64 bytes while thread 16 (warp 0)"
    )


SHARED = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
__device__ void fence() { if (FENCE == 1) __threadfence_block(); else if (FENCE == 2) __threadfence(); }
extern "C" __global__ void kernel(int* out) {  // warp 1 of the last CTA of a cluster writes, warp 0 of the first reads
    __shared__ int values[32];
    __shared__ unsigned flag;
    if (threadIdx.x == 0) flag = 0;
    cluster_sync();
    const unsigned last = cluster_cta_count() - 1, lane = threadIdx.x % 32;
    if (threadIdx.x >= 32 && cluster_cta_rank() == last) {
        const unsigned to = cluster_address(values + lane, 0);
        asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(to), "r"(lane) : "memory");
        fence();
        __syncwarp();
        if (lane == 0)
            asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], 1;" :: "r"(cluster_address(&flag, 0))
                         : "memory");
    } else if (threadIdx.x < 32 && cluster_cta_rank() == 0) {
        while (*(volatile unsigned*)&flag == 0) {}
        fence();
        out[lane] = values[31 - lane];
    }
    cluster_sync();
}
"""


@pytest.mark.parametrize(("ctas", "fence", "is_right"), [(1, 1, True), (2, 2, True), (2, 1, False), (1, 0, False)])
def test_a_flag_in_shared_memory_releases_the_fenced_writes_of_its_warp(ctas, fence, is_right):
    gpu, out = simulate.Device(schedules=2), np.zeros(32, np.int32)
    kernel = gpu.compile(SHARED, "kernel", defines={"FENCE": fence})
    report = gpu.launch(simulate.Config(1, 64, ctas), kernel, out)
    assert {finding.kind for finding in report.errors} == (set() if is_right else {"race"})
    assert out.tolist() == [*range(31, -1, -1)]
