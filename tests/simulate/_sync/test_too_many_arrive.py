"""Tests of more threads at a named barrier than its number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
extern "C" __global__ void meet(int* out) {
    if (threadIdx.x < WARPS * 32) asm volatile("barrier.sync 1, 64;" ::: "memory");
    out[threadIdx.x] = 1;
}
"""
GPU = simulate.Device()


@pytest.mark.parametrize(("warps", "found"), [(2, []), (3, ["barrier-divergence"]), (4, ["barrier-divergence"])])
def test_the_arrivals_of_a_phase_are_counted(warps, found):
    kernel = GPU.compile(SOURCE, "meet", defines={"WARPS": warps})
    report = GPU.launch(simulate.Config(1, 128), kernel, np.zeros(128, np.int32))
    assert [each.kind for each in report.errors] == found


def test_a_cta_does_not_count_arrivals_of_an_ended_cta():
    """Each CTA ends with arrivals for which no thread waits, as FlashAttention-3's CTAs without a tile do."""
    source = r"""
    extern "C" __global__ void arrive(int* out) {
        asm volatile("barrier.cta.arrive.aligned 1, 96;" ::: "memory");
        out[blockIdx.x * 64 + threadIdx.x] = 1;
    }
    """
    gpu = simulate.Device(multiprocessor_count=1)
    report = gpu.launch(simulate.Config(64, 64), gpu.compile(source, "arrive"), np.zeros(4096, np.int32))
    assert [each.message for each in report.errors] == []
