"""Tests of ``clusterlaunchcontrol``, by which a cluster takes over the work of clusters that have not begun."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

# Each CTA marks its index, and then takes over CTAs until a request fails.
KERNEL = """
extern "C" __global__ void kernel(int *done, int *by) {
    __shared__ alignas(16) unsigned long long response[2];
    __shared__ alignas(8) unsigned long long full;
    unsigned at = (unsigned)__cvta_generic_to_shared(response), bar = (unsigned)__cvta_generic_to_shared(&full);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar) : "memory");
    __syncthreads();
    unsigned x = blockIdx.x, y = blockIdx.y, more = 1, phase = 0;
    while (more) {
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 16;" :: "r"(bar) : "memory");
            asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
                         ".b128 [%0], [%1];"
                         :: "r"(at), "r"(bar) : "memory");
            atomicAdd(&done[y * gridDim.x + x], 1);
            by[y * gridDim.x + x] = blockIdx.x;
        }
        asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra L; }"
                     :: "r"(bar), "r"(phase) : "memory");
        asm volatile("{ .reg .pred p; .reg .b128 q; .reg .b64 lo, hi;\\n"
                     "ld.shared.v2.b64 {lo, hi}, [%3]; mov.b128 q, {lo, hi};\\n"
                     "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, q; selp.u32 %0, 1, 0, p;\\n"
                     "QUERY }"
                     : "=r"(more), "=r"(x), "=r"(y) : "r"(at) : "memory");
        asm volatile("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;" ::: "memory");
        __syncthreads();
        phase ^= 1;
    }
}
"""
SINGLE = """clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, q;\\n"
"clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %2, q;"""
VECTOR = "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%1, %2, _, _}, q;"


@pytest.mark.parametrize("query", [SINGLE, VECTOR], ids=["single", "vector"])
def test_each_cta_is_done_once(query):
    gpu = simulate.Device("10.0", schedules=4)
    kernel = gpu.compile(KERNEL.replace("QUERY", query), "kernel")
    done, by = np.zeros((3, 4), np.int32), np.full((3, 4), -1, np.int32)
    report = gpu.launch(simulate.Config(grid=(4, 3), block=64), kernel, done, by)
    report.raise_for_errors()
    assert (done == 1).all()


CLUSTERS = """
extern "C" __global__ __cluster_dims__(2) void kernel(int *done) {
    __shared__ alignas(16) unsigned long long response[2];
    __shared__ alignas(8) unsigned long long full;
    unsigned at = (unsigned)__cvta_generic_to_shared(response), bar = (unsigned)__cvta_generic_to_shared(&full);
    unsigned rank = blockIdx.x % 2, x = blockIdx.x - rank, more = 1, phase = 0;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    while (more) {
        asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 16;" :: "r"(bar) : "memory");
            done[x + rank] += 1;
        }
        asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
        if (threadIdx.x == 0 && rank == 0)
            asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
                         ".multicast::cluster::all.b128 [%0], [%1];" :: "r"(at), "r"(bar) : "memory");
        asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra L; }"
                     :: "r"(bar), "r"(phase) : "memory");
        asm volatile("{ .reg .pred p; .reg .b128 q; .reg .b64 lo, hi;\\n"
                     "ld.shared.v2.b64 {lo, hi}, [%2]; mov.b128 q, {lo, hi};\\n"
                     "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, q; selp.u32 %0, 1, 0, p;\\n"
                     "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, q; }"
                     : "=r"(more), "=r"(x) : "r"(at) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        phase ^= 1;
    }
}
"""


def test_a_response_for_each_cta_of_a_cluster():
    gpu = simulate.Device("10.0", schedules=4)
    done = np.zeros(10, np.int32)
    report = gpu.launch(simulate.Config(grid=5, block=32, cluster=2), gpu.compile(CLUSTERS, "kernel"), done)
    report.raise_for_errors()
    assert (done == 1).all()


def test_clusters_are_canceled():
    """In the test, half of the clusters of a small grid begin. The other clusters are canceled, or begin after another
    cluster has ended."""
    gpu = simulate.Device("10.0")
    kernel = gpu.compile(KERNEL.replace("QUERY", VECTOR), "kernel")
    done, by = np.zeros((1, 8), np.int32), np.full((1, 8), -1, np.int32)
    gpu.launch(simulate.Config(grid=8, block=32), kernel, done, by).raise_for_errors()
    assert (by[0] != np.arange(8)).sum() == 4
    assert (by[0, :4] == np.arange(4)).all()
