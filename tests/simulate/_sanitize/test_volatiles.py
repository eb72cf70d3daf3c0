"""Tests of volatile loads of shared memory. A load of unordered data is a race, and the poll of a flag is right."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

HEAD = r"""
#define T threadIdx.x
__device__ void put(volatile int* at, int value) { *at = value; }  // PUT
__device__ int get(const volatile int* at) { return *at; }  // GET
extern "C" __global__ void kernel(const int* x, int* out) {
    __shared__ int s[96];
    s[T] = x[T];
    if (T < 32) s[64 + T] = 0;
    __syncthreads();
"""
HALVES = "for (int n : {32, 16, 8, 4, 2, 1}) { put(s + T, get(s + T) + get(s + T + n)); %s }"
SUM = f"if (T < 32) {{ {HALVES} }} if (T == 0) out[0] = s[0]; }}"
FENCE = "__threadfence_block();"


def launch(body: str) -> tuple[simulate.Report, int]:
    """Return the report of a launch, and the value of out[0] after the launch."""
    gpu, x, out = simulate.Device(schedules=2), np.arange(64, dtype=np.int32), np.zeros(1, np.int32)
    return gpu.launch(simulate.Config(1, 64), gpu.compile(HEAD + body, "kernel"), x, out), int(out[0])


def test_a_warp_that_exchanges_data_without_syncwarp_races():
    report, _ = launch(SUM % "")
    assert {(finding.kind, finding.severity) for finding in report.findings} == {("race", "error")}
    finding = report.findings[0]
    assert (HEAD.splitlines()[finding.source[0].line - 1][-6:], finding.other[0].line) == ("// GET", 3)
    assert "nothing orders the two" in finding.message
    assert "__syncwarp()" in finding.remedy


def test_syncwarp_orders_volatile_accesses():
    report, total = launch(SUM % "__syncwarp();")
    assert report.findings == ()
    assert total == sum(range(64))


@pytest.mark.parametrize("read", ["s[1]", "get(s + 1)"])
def test_a_polled_flag_and_data_after_fences_are_right(read):
    body = "if (T == 40) { put(s + 1, 7); %s put(s, 1); } if (T == 1) { while (!get(s)); %s out[0] = %s; } }"
    report, value = launch(body % (FENCE, FENCE, read))
    assert (report.findings, value) == ((), 7)


def test_volatile_data_and_a_flag_without_fences_race():
    body = "if (T == 40) { put(s + 1, 7); put(s, 1); } if (T == 1) { while (!get(s)); out[0] = get(s + 1); } }"
    report, _ = launch(body)
    assert {finding.kind for finding in report.errors} == {"race"}


def test_an_early_end_of_a_search_is_right():
    search = "for (int i = 0; i < 8 && !get(s + 70); ++i) if (x[T] * i == 60) put(s + 70, 1); out[0] = 1; }"
    report, _ = launch(search)
    assert report.errors == ()
