"""Tests of cluster_launch.cuh on the simulator: running CTAs take over the work of CTAs that have not started."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = """
#include <cuda_tma/cluster_launch.cuh>
using namespace cuda_tma;
extern "C" __global__ void k(int* done, int* by) {
    __shared__ LaunchResponse response;
    __shared__ Barrier full;
    if (threadIdx.x == 0) { full.init(1); fence_barrier_init(); }
    __syncthreads();
    uint3 cta = {blockIdx.x, blockIdx.y, blockIdx.z};
    for (unsigned parity = 0;; parity ^= 1) {
        if (threadIdx.x == 0) {
            full.arrive_expect_tx(sizeof(LaunchResponse));
            try_cancel_launch(response, full);
            atomicAdd(&done[cta.y * gridDim.x + cta.x], 1);
            by[cta.y * gridDim.x + cta.x] = blockIdx.y * gridDim.x + blockIdx.x;
        }
        full.wait(parity);
        if (!is_launch_canceled(response)) return;
        cta = first_canceled_cta(response);
        fence_proxy_async();
        __syncthreads();
    }
}
"""


def launched(source: str, schedules: int) -> tuple[simulate.Report, np.ndarray, np.ndarray]:
    gpu = simulate.Device("10.0", multiprocessor_count=2, schedules=schedules)
    done, by = np.zeros((3, 4), np.int32), np.full((3, 4), -1, np.int32)
    return gpu.launch(simulate.Config((4, 3), 64), gpu.compile(source, "k"), done, by), done, by


@pytest.mark.parametrize("schedules", [1, 4])
def test_each_cta_is_done_once(schedules):
    report, done, by = launched(SOURCE, schedules)
    assert report.findings == ()
    assert (done == 1).all()
    assert len(np.unique(by)) < by.size


def test_a_request_before_all_threads_have_read_is_a_race():
    report, *_ = launched(SOURCE.replace("        __syncthreads();\n    }\n", "    }\n"), 1)
    (error,) = report.errors
    assert error.kind == "race" and "clusterlaunchcontrol.try_cancel" in error.message
    assert "try_cancel_launch(response, full);" in SOURCE.splitlines()[error.source[-1].line - 1]
