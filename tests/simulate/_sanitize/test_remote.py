"""Tests of shared memory of a CTA that has ended, and of fences between proxies in one direction."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

enum { LOAD, STORE, LOAD_AND_USE };
extern "C" __global__ void __cluster_dims__(2) kernel(int* out) {
    __shared__ int part[32];
    part[threadIdx.x] = threadIdx.x;
    cluster_sync();
    if (cluster_cta_rank() == 0) {
        const unsigned at = cluster_address(&part[threadIdx.x], 1);
        int value = 0;
        if (USE == STORE) asm volatile("st.shared::cluster.s32 [%0], 1;" :: "r"(at) : "memory");  // STORE
        else asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(value) : "r"(at) : "memory");  // LOAD
        out[threadIdx.x] = value;
    }
    END
}
"""
RELAXED, SYNC = "cluster_arrive_relaxed(); cluster_wait();", "cluster_sync();"


def launched(use: str, end: str) -> simulate.Report:
    gpu = simulate.Device(schedules=4)
    kernel = gpu.compile(SOURCE, "kernel", defines={"USE": use, "END": end})
    return gpu.launch(simulate.Config(2, 32), kernel, np.zeros(32, np.int32))


def line_of(mark: str) -> int:
    return next(number for number, text in enumerate(SOURCE.split("\n"), 1) if f"// {mark}" in text)


def test_a_load_before_a_relaxed_arrival_and_a_wait_is_advice():
    (finding,) = launched("LOAD", RELAXED).findings
    assert (finding.kind, finding.severity) == ("early-exit", "advice")
    assert finding.source[-1].line == line_of("LOAD") and "arrive without .relaxed" in finding.remedy


@pytest.mark.parametrize(
    ("use", "end"),
    [("LOAD", "cluster_arrive_relaxed();"), ("LOAD", ""), ("STORE", RELAXED), ("STORE", "cluster_arrive();")],
)
def test_other_uses_that_no_wait_covers_are_errors(use: str, end: str):
    (finding,) = launched(use, end).findings
    assert (finding.kind, finding.severity, finding.source[-1].line) == ("early-exit", "error", line_of(use))


@pytest.mark.parametrize("use", ["LOAD", "STORE"])
def test_a_barrier_of_the_cluster_covers_both(use: str):
    assert launched(use, SYNC).findings == ()


FENCED = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

#define ONE_WAY(SEMANTICS, SPACE) \
    asm volatile("fence.proxy.async::generic." SEMANTICS ".sync_restrict::shared::" SPACE ".cluster;" ::: "memory")
extern "C" __global__ void kernel(int* out) {
    __shared__ __align__(128) int tile[32];
    tile[threadIdx.x] = threadIdx.x;  // WRITE
    WRITER
    __syncthreads();
    if (threadIdx.x == 0) {
        ISSUER
        store_bulk(out, tile, 128);  // COPY
        commit_group();
        wait_group_read<0>();
    }
}
"""
RELEASE, ACQUIRE = 'ONE_WAY("release", "cta");', 'ONE_WAY("acquire", "cluster");'


def fenced(writer: str, issuer: str) -> simulate.Report:
    gpu = simulate.Device(schedules=4)
    kernel = gpu.compile(FENCED, "kernel", defines={"WRITER": writer, "ISSUER": issuer})
    return gpu.launch(simulate.Config(1, 32), kernel, np.zeros(32, np.int32))


@pytest.mark.parametrize(("writer", "issuer"), [(RELEASE, ACQUIRE), (RELEASE, ""), ("", ACQUIRE)])
def test_a_one_way_fence_to_the_async_proxy_is_enough(writer: str, issuer: str):
    assert fenced(writer, issuer).findings == ()


def test_without_a_fence_the_copy_may_read_old_values():
    (finding,) = fenced("", "").findings
    assert (finding.kind, finding.severity) == ("missing-proxy-fence", "error")


CROSSED = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
#define ONE_WAY(SEMANTICS, SPACE) \
    asm volatile("fence.proxy.async::generic." SEMANTICS ".sync_restrict::shared::" SPACE ".cluster;" ::: "memory")

extern "C" __global__ void __cluster_dims__(2) kernel(int* out) {
    __shared__ int value;
    if (threadIdx.x == 0) value = 1;
    FENCE
    cluster_arrive_relaxed();
    cluster_wait();
    if (cluster_cta_rank() == 0) {
        int found;
        asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(found) : "r"(cluster_address(&value, 1)) : "memory");
        out[threadIdx.x] = found;
    }
    cluster_sync();
}
"""


@pytest.mark.parametrize(("fence", "kinds"), [(RELEASE, []), ("", ["race"])])
def test_the_release_of_a_one_way_fence_has_the_scope_of_the_cluster(fence: str, kinds: list[str]):
    gpu = simulate.Device(schedules=2)
    kernel = gpu.compile(CROSSED, "kernel", defines={"FENCE": fence})
    report = gpu.launch(simulate.Config(2, 32), kernel, np.zeros(32, np.int32))
    assert [finding.kind for finding in report.findings] == kinds
