"""Tests that one check of several threads' accesses gives the same reports as separate checks."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate._sanitize.model.global_shadow import GlobalShadow
from cuda_tma.simulate._sanitize.model.shadow import Shadow

KERNEL = """
extern "C" __global__ void kernel(int* out, int* in, int n) {
    __shared__ int shared[256];
    volatile int* seen = shared;
    const int i = threadIdx.x, warp = i / 32;
    %s
}
"""
BODIES = {
    "in order": "shared[i] = i; __syncthreads(); out[i] = shared[255 - i]; __syncthreads(); shared[i] = out[i];",
    "write after read": "shared[i] = i; __syncthreads(); out[i] = shared[i ^ 32]; shared[i] = 1;",
    "read after write": "shared[i] = i; out[i] = shared[i ^ 32];",
    "two warps at once": "shared[i % 32] = i; __syncthreads(); out[i] = shared[i % 32];",
    "two warps, one value": "shared[i % 32] = 7; __syncthreads(); out[i] = shared[i % 32];",
    "unwritten": "if (i < 200) shared[i] = i; __syncthreads(); out[i] = shared[i];",
    "volatile data": "seen[i] = i; out[i] = seen[i ^ 32];",
    "atomics": "shared[i] = 0; __syncthreads(); atomicAdd(shared + i % 8, i); __syncthreads(); out[i] = shared[i % 8];",
    "atomics and a read": "shared[i] = 0; __syncthreads(); atomicAdd(shared + i % 8, i); out[i] = shared[i % 8];",
    "global": "in[i] = i; __syncthreads(); out[i] = in[i ^ 32]; out[(i + 1) % 256] = n;",
    "global, one value": "out[i % 32] = 3;",
    "global, several CTAs": "out[i] = in[i] + blockIdx.x; if (blockIdx.x == 1) in[i] = i;",
    "one thread": "if (i == 0) for (int k = 0; k < 9; ++k) { shared[k] = in[k]; out[k] = shared[k / 2]; in[k] = k; }",
}


def report_of(body: str) -> tuple[simulate.Report, list[int], list[int]]:
    gpu, out, given = simulate.Device(schedules=3), np.zeros(256, np.int32), np.arange(256, dtype=np.int32)
    report = gpu.launch(simulate.Config(2, 256), gpu.compile(KERNEL % body, "kernel"), out, given, 5)
    return report, out.tolist(), given.tolist()


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_reports_are_equal(body, monkeypatch):
    touched, *memory = report_of(body)
    monkeypatch.setattr(Shadow, "touch", lambda *given: 0)
    monkeypatch.setattr(GlobalShadow, "touch", lambda *given: 0)
    judged, *other_memory = report_of(body)
    assert touched.findings == judged.findings
    assert str(touched) == str(judged)
    assert memory == other_memory


def test_the_bodies_have_findings_of_several_kinds():
    kinds = {finding.kind for body in BODIES.values() for finding in report_of(body)[0].findings}
    assert {"race", "uninitialized-read"} <= kinds
