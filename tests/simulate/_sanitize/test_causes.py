"""Tests that the sanitizer reports one cause as one finding, under several schedules and in an unrolled loop."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

# A whole warp initializes each mbarrier, as in ThunderKittens, and the compiler unrolls the loop.
SOURCE = """
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
extern "C" __global__ void k(int* out) {
    __shared__ Barrier bars[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) bars[i].init(1);  // here
    __syncthreads();
    out[threadIdx.x] = 1;
}
"""


@pytest.mark.parametrize("schedules", [1, 2, 4])
def test_statements_of_an_unrolled_loop_are_one_finding(schedules):
    gpu, out = simulate.Device(schedules=schedules), np.zeros(32, np.int32)
    report = gpu.launch(simulate.Config(1, 32), gpu.compile(SOURCE, "k"), out)
    (finding,) = report.findings
    assert (finding.kind, finding.severity) == ("barrier-use", "error")
    assert SOURCE.splitlines()[finding.source[-1].line - 1].endswith("// here")
    assert out.tolist() == [1] * 32
