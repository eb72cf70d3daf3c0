"""Tests of instructions that need a launch with clusters, as observed on an H200, and of instructions that do not."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
#include <cuda_tma/store_async.cuh>
using namespace cuda_tma;

enum { STORE, REDUCE, ARRIVE };
template <int What>
__device__ void signal_peer(int* out) {
    __shared__ Barrier full;
    __shared__ unsigned value;
    if (threadIdx.x == 0) {
        value = 0;
        full.init(1);
        fence_barrier_init();
    }
    cluster_sync();
    if (threadIdx.x == 0) {
        if (What != ARRIVE) full.arrive_expect_tx(4);
        if (What == STORE) store_async(&value, 0, 5u, full);
        if (What == REDUCE) reduce_async<Reduction::add>(&value, 0, 5u, full);
        if (What == ARRIVE) full.arrive_at(0);
    }
    full.wait_cluster(0);
    unsigned is_explicit;
    asm("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(is_explicit));
    out[blockIdx.x * 32 + threadIdx.x] = value + 100 * is_explicit;
}
extern "C" __global__ void stores(int* out) { signal_peer<STORE>(out); }
extern "C" __global__ void reduces(int* out) { signal_peer<REDUCE>(out); }
extern "C" __global__ void arrives(int* out) { signal_peer<ARRIVE>(out); }
extern "C" __global__ void __cluster_dims__(1) stores_in_clusters(int* out) { signal_peer<STORE>(out); }
"""


@cache
def compiled(name: str) -> simulate.Kernel:
    return simulate.Device().compile(SOURCE, name)


def launched(name: str, cluster: int | None = None) -> tuple[simulate.Report, int]:
    out = np.zeros(64, np.int32)
    report = simulate.Device(strict=True).launch(simulate.Config(2, 32, cluster), compiled(name), out)
    assert (out == out[0]).all()
    return report, int(out[0])


@pytest.mark.parametrize(("name", "instruction"), [("stores", "st.async"), ("reduces", "red.async")])
def test_an_asynchronous_store_without_clusters_is_an_error(name, instruction):
    report, value = launched(name)
    (finding,) = report.findings
    assert (finding.kind, finding.severity, finding.threads, value) == ("cluster", "error", (0,), 5)
    assert finding.message.startswith(f"thread 0 (warp 0) issues {instruction} in a launch without clusters. Observed")
    assert "Config(cluster=1)" in finding.remedy and finding.source and finding.count == 2
    assert finding.happened == f"thread 0 (warp 0) issues {instruction} in a launch without clusters"


@pytest.mark.parametrize(("name", "cluster"), [("stores", 1), ("reduces", 1), ("stores_in_clusters", None)])
def test_clusters_of_one_cta_are_clusters(name, cluster):
    report, value = launched(name, cluster)
    assert report.findings == () and value == 105


def test_an_arrival_needs_no_cluster():
    report, value = launched("arrives")
    assert report.findings == () and value == 0
