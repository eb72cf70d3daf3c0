"""Tests of the limits on the dynamic shared memory and the local memory of a launch."""

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
#include <cuda_tma/dynamic_shared.cuh>
extern "C" __global__ void dynamic(int* out) {
    int (&values)[64] = cuda_tma::dynamic_shared<int[64]>();
    values[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = values[threadIdx.x];
}
extern "C" __global__ void local(int* out, int at) {
    int values[256];
    for (int i = 0; i < 256; ++i) values[i] = i + at;
    out[threadIdx.x] = values[at];
}
"""


@pytest.fixture(scope="module")
def gpu():
    return simulate.Device()


@pytest.mark.parametrize("given", [256, 300])
def test_enough_dynamic_shared_memory(gpu, given):
    out = np.zeros(64, np.int32)
    config = simulate.Config(1, 64, shmem_size=given)
    assert gpu.launch(config, gpu.compile(SOURCE, "dynamic"), out).findings == ()
    assert out.tolist() == [*range(64)]


@pytest.mark.parametrize("given", [1, 255])
def test_less_dynamic_shared_memory_than_the_kernel_needs(gpu, given):
    with pytest.raises(ValueError, match="256"):
        gpu.launch(simulate.Config(1, 64, shmem_size=given), gpu.compile(SOURCE, "dynamic"), np.zeros(64, np.int32))


def test_local_memory_of_many_threads(gpu):
    out = np.zeros(256, np.int32)
    assert gpu.launch(simulate.Config(1, 256), gpu.compile(SOURCE, "local"), out, 7).findings == ()
    assert {*out.tolist()} == {14}
