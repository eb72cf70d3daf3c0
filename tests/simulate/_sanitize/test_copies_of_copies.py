"""Tests of a copy from global memory that another block's copy has written, as in Triton's tutorial 04."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
#include <cuda_tma/tma.cuh>
#include <cuda_tma/bulk.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(int* message, unsigned* ready, int* out) {
    __shared__ __align__(128) int tile[32];
    __shared__ Barrier full;
    if (blockIdx.x == 0) {
        tile[threadIdx.x] = threadIdx.x;
        fence_proxy_async();
        __syncthreads();
        if (threadIdx.x == 0) {
            if (COPIES) {
                store_bulk(message, tile, sizeof(tile));
                commit_group();
                wait_group<0>();
            } else {
                for (int i = 0; i < 32; ++i) message[i] = tile[i];
            }
            __threadfence();
            atomicExch(ready, 1);
        }
    } else if (threadIdx.x == 0) {
        while (atomicAdd(ready, 0) == 0) {}
        __threadfence();
        if (FENCE) asm volatile("fence.proxy.async;" ::: "memory");
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(sizeof(tile));
        load_bulk(tile, message, sizeof(tile), full);
        full.wait(0);
        for (int i = 0; i < 32; ++i) out[i] = tile[i];
    }
}
"""


def found(*, copies: bool, fence: bool = False, strict: bool = False) -> set[tuple[str, str]]:
    gpu = simulate.Device(strict=strict)
    names = {"COPIES": copies, "FENCE": fence}
    kernel = gpu.compile(SOURCE, "kernel", options=[f"-D{name}={int(value)}" for name, value in names.items()])
    message, ready, out = np.zeros(32, np.int32), np.zeros(1, np.uint32), np.zeros(32, np.int32)
    report = gpu.launch(simulate.Config(2, 32), kernel, message, ready, out)
    assert out.tolist() == list(range(32))
    return {(each.kind, each.severity) for each in report.findings}


def test_a_copy_of_the_bytes_of_a_copy_needs_a_fence_only_by_the_letter():
    assert found(copies=True) == {("missing-proxy-fence", "advice")}
    assert found(copies=True, strict=True) == {("missing-proxy-fence", "error")}


@pytest.mark.parametrize("copies", [False, True])
def test_a_proxy_fence_orders_the_copy(copies):
    assert found(copies=copies, fence=True, strict=True) == set()


def test_a_copy_of_the_bytes_of_a_thread_needs_a_fence():
    assert found(copies=False) == {("missing-proxy-fence", "error")}
