"""The fixture for tests of kernels: a launch with an error fails the test that made it."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma.simulate import Config, fixture

pytest_plugins = ["cuda_tma.simulate.fixture"]

SOURCE = 'extern "C" __global__ void fill(int* out, int n) { if (threadIdx.x < n) out[threadIdx.x] = 7; }'


@pytest.mark.parametrize("count", [4, 5])
def test_errors_fail_the_test(count):
    steps = fixture._gpu_without_errors()
    gpu, out = next(steps), np.zeros(4, np.int32)
    report = gpu.launch(Config(1, 32), gpu.compile(SOURCE, "fill"), out, count)
    assert gpu.reports == [report]
    if count == 4:
        assert next(steps, None) is None and out.tolist() == [7] * 4
    else:
        with pytest.raises(pytest.fail.Exception, match=r"fill.cu:1: error: a write of 4 bytes .*\[out-of-bounds\]"):
            next(steps)


def test_pytest_finds_it(simulated_gpu):
    out = np.zeros(4, np.int32)
    simulated_gpu.launch(Config(1, 4), simulated_gpu.compile(SOURCE, "fill"), out, 9)
    assert out.tolist() == [7] * 4
