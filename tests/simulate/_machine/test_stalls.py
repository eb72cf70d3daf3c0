"""Tests of threads that repeat a timed wait until its time limit has passed."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
#include <cuda_tma/barrier.cuh>
#include <cuda_tma/fence.cuh>
using namespace cuda_tma;

extern "C" __global__ void patient(int turns, int* out) {
    __shared__ Barrier full, never;
    if (threadIdx.x == 0) {
        full.init(1);
        never.init(1);
        fence_barrier_init();
    }
    __syncthreads();
    for (int i = 0; i < turns; ++i) {
        if (threadIdx.x == 32) {
            never.try_wait(0);  // until its time is up
            full.arrive();
        }
        if (threadIdx.x == 0) full.wait(i % 2);
        __syncthreads();
    }
    out[threadIdx.x] = turns;
}
"""


@pytest.mark.parametrize("turns", [1, 60])
def test_time_may_pass_any_number_of_times_if_threads_go_on(turns):
    gpu, out = simulate.Device(), np.zeros(64, np.int32)
    report = gpu.launch(simulate.Config(1, 64), gpu.compile(SOURCE, "patient"), turns, out)
    assert report.errors == () and {*out.tolist()} == {turns}
