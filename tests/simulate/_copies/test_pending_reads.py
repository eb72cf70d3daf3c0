"""Tests of bulk stores that are pending when their CTA ends. The next CTA on the multiprocessor writes other bytes into
the same shared memory."""

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
#include <cuda_tma/pipeline.cuh>
using namespace cuda_tma;
extern "C" __global__ void each_stores(int* out) {
    __shared__ alignas(128) int tile[32];
    tile[threadIdx.x] = 1 + blockIdx.x;
    fence_proxy_async();
    __syncwarp();
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128; cp.async.bulk.commit_group;"
                     :: "l"(out + 32 * blockIdx.x), "r"((unsigned)__cvta_generic_to_shared(tile)) : "memory");
}
"""
# The grid has more CTAs than the device runs at the same time.
CTAS = 200


@pytest.mark.parametrize("order", ["early", "late", "random"])
def test_a_store_reads_the_shared_memory_of_its_own_cta(order):
    gpu, out = simulate.Device(multiprocessor_count=1, sanitize=False), np.zeros((CTAS, 32), np.int32)
    gpu.launch(simulate.Config(CTAS, 32), gpu.compile(SOURCE, "each_stores"), out, order=order)
    assert (out == np.arange(1, CTAS + 1)[:, None]).all()
