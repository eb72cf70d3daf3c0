"""Tests of the limit on the size of the arrays that the sanitizer watches."""

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = """
extern "C" __global__ void races(int* data, long long last) { data[last] = threadIdx.x; }
"""
MOST_BYTES = 16 << 20


@pytest.mark.parametrize(("size", "kinds"), [(MOST_BYTES, ["race"]), (MOST_BYTES + 4, [])])
def test_an_array_of_more_than_16_mib_is_not_watched(size, kinds):
    gpu, data = simulate.Device(), np.zeros(size // 4, np.int32)
    report = gpu.launch(simulate.Config(1, 64), gpu.compile(SOURCE, "races"), data, np.int64(len(data) - 1))
    assert [finding.kind for finding in report.findings] == kinds
