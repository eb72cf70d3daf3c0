"""Tests of races between CTAs that run one after another, on a machine that runs one CTA at a time."""

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
#include <cuda_tma/bulk.cuh>
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
extern "C" __global__ void later(int* data, int* out, int by_copy, int shift) {
    extern __shared__ __align__(128) int tile[];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        for (int i = 0; i < 4; ++i) data[32 * blockIdx.x + i] = i;
        fence_proxy_async_global();
    }
    __syncthreads();
    if (blockIdx.x == 1 && threadIdx.x == 0) {
        if (by_copy) {
            full.arrive_expect_tx(16);
            load_bulk(tile, data + shift, 16, full);
            full.wait(0);
            out[0] = tile[3];
        } else out[0] = data[shift + 3];
    }
}
"""


@pytest.fixture(scope="module")
def kernel():
    return simulate.Device().compile(SOURCE, "later")


@pytest.mark.parametrize("by_copy", [0, 1])
@pytest.mark.parametrize(("shift", "kinds"), [(0, ["race"]), (32, []), (64, [])])
def test_a_write_of_the_earlier_cta_in_its_place(kernel, by_copy, shift, kinds):
    """Nothing orders two CTAs of a grid, even if one begins after the end of the other."""
    gpu, data, out = simulate.Device(multiprocessor_count=1), np.zeros(96, np.int32), np.zeros(1, np.int32)
    report = gpu.launch(simulate.Config(2, 32, shmem_size=200_000), kernel, data, out, by_copy, shift)
    assert [finding.kind for finding in report.findings] == kinds and out[0] == (0 if shift == 64 else 3)
