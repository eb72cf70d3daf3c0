"""Loops without an end are found by their coming back to where they were; others are let end."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate import Config

SOURCE = r"""
extern "C" __global__ void polls(volatile int* out) { while (out[0] == 0) {} }
extern "C" __global__ void locked(int* out) { while (atomicCAS(out + 1, 1, 1) != 0) {} }
extern "C" __global__ void writes_the_same(volatile int* out) { while (out[0] == 0) out[2] = 7; }
extern "C" __global__ void turns_round(volatile int* out) { for (int i = 0; out[0] == 0; i = (i + 1) % 3) out[2] = i; }

extern "C" __global__ void looks_at_the_clock(int* out) {
    const long long start = clock64();
    while (clock64() - start < 30000) {}
    if (threadIdx.x == 0) out[0] = 1;
}
extern "C" __global__ void counts(int* out) {
    volatile int n = 0;
    while (n < 4000) n = n + 1;
    if (threadIdx.x == 0) out[0] = 1;
}
extern "C" __global__ void waits_for_one_who_counts(volatile int* out) {
    if (threadIdx.x >= 32) {
        for (volatile int n = 0; n < 3000;) n = n + 1;
        if (threadIdx.x == 32) out[0] = 1;
    }
    while (out[0] == 0) {}
}
"""


@pytest.fixture(scope="module")
def gpu() -> simulate.Device:
    return simulate.Device(multiprocessor_count=2)


@pytest.mark.parametrize("name", ["polls", "locked", "writes_the_same", "turns_round"])
def test_a_loop_that_changes_nothing(gpu, name):
    """With the budget that a launch has by default, four million steps."""
    (finding,) = gpu.launch(Config(2, 32), gpu.compile(SOURCE, name), np.array([0, 1, 0], np.int32)).findings
    steps = re.match(r"after (\d+) steps the kernel is where it has been before", finding.message)[1]
    line = 1 + SOURCE[: SOURCE.index(f"void {name}(")].count("\n")
    assert (finding.kind, finding.severity, finding.source[0].line) == ("no-progress", "error", line)
    assert int(steps) < 200_000


@pytest.mark.parametrize("order", ["early", "late", "random"])
@pytest.mark.parametrize("name", ["looks_at_the_clock", "counts", "waits_for_one_who_counts"])
def test_a_loop_that_ends(gpu, name, order):
    out = np.zeros(3, np.int32)
    report = gpu.launch(Config(1, 64), gpu.compile(SOURCE, name), out, order=order)
    assert report.findings == () and out[0] == 1
