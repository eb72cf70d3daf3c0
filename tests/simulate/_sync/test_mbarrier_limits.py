"""Tests of the largest count and the largest tx-count of an mbarrier (PTX ISA, "Range of the tx-count")."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
#include <cuda_tma/barrier.cuh>
using namespace cuda_tma;

extern "C" __global__ void count(unsigned value, int* out) {
    __shared__ Barrier full;
    full.init(value);
    full.invalidate();
    out[0] = 1;
}
extern "C" __global__ void bytes(unsigned value, int* out) {
    __shared__ Barrier full;
    full.init(1);
    full.expect_tx(value);
    full.invalidate();
    out[0] = 1;
}
"""
GPU = simulate.Device()
MOST = 2**20 - 1


@pytest.mark.parametrize(("name", "kind"), [("count", "barrier-use"), ("bytes", "transaction-count")])
@pytest.mark.parametrize("excess", [0, 1])
def test_the_largest_value_is_allowed_and_the_next_one_is_a_finding(name, kind, excess):
    out = np.zeros(1, np.int32)
    report = GPU.launch(simulate.Config(1, 1), GPU.compile(SOURCE, name), MOST + excess, out)
    assert [each.kind for each in report.errors] == [kind] * excess
