"""Tests that the sanitizer checks an access in at most 15 calls between modules, also after atomics and for TMA
copies."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate._sanitize import Sanitizer

MOST_CALLS = 15
ROOT = str(Path(simulate.__file__).parent)

THREADS = """
extern "C" __global__ void kernel(unsigned* values, unsigned* count) {
    __shared__ unsigned ring[64];
    const unsigned i = threadIdx.x;
    for (int turn = 0; turn < 2; ++turn) {
        ring[i] = values[i];
        __syncthreads();
        values[i] = ring[i ^ 1];
        __syncthreads();
    }
}
"""
ATOMICS = """
extern "C" __global__ void kernel(unsigned* values, unsigned* count) {
    const unsigned i = threadIdx.x;
    for (int turn = 0; turn < 2; ++turn) {
        atomicAdd(values + 64, 1);
        __threadfence();
        __syncthreads();
        if (i == 0) atomicAdd(count, 1);
        __syncthreads();
        values[i] = values[i] + 1;
    }
}
"""
TMA = """
#include <cuda_tma/pipeline.cuh>
using namespace cuda_tma;
extern "C" __global__ void kernel(const __grid_constant__ TensorMap map, unsigned* out) {
    __shared__ alignas(1024) unsigned tile[256];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
    }
    __syncthreads();
    for (int turn = 0; turn < 2; ++turn) {
        if (threadIdx.x == 0) {
            full.arrive_expect_tx(sizeof tile);
            load(tile, map, full, Coordinates{0, 0});
        }
        full.wait(turn & 1);
        out[threadIdx.x] = tile[threadIdx.x];
        fence_proxy_async();
        __syncthreads();
    }
}
"""


def of_package(frame):
    """Return the simulator's module in the innermost frame of the call stack."""
    while frame is not None and not frame.f_code.co_filename.startswith(ROOT):
        frame = frame.f_back
    return frame.f_code.co_filename if frame is not None else None


@pytest.fixture
def calls(monkeypatch):
    """A recorder of accesses, which counts the calls between modules that the sanitizer makes for each access."""
    found, access = [], Sanitizer.access

    def counted(self, given):
        numbers = [1]

        def note(frame, event, argument):
            if event == "call" and frame.f_code.co_filename.startswith(ROOT):
                numbers[0] += of_package(frame.f_back) not in (frame.f_code.co_filename, None)

        sys.setprofile(note)
        try:
            access(self, given)
        finally:
            sys.setprofile(None)
        found.append((given.proxy, given.space, given.kind, numbers[0]))

    monkeypatch.setattr(Sanitizer, "access", counted)
    return found


def launched(source, *arguments):
    gpu = simulate.Device()
    kernel, box = gpu.compile(source, "kernel"), {"box_dim": (16, 16)}
    arguments = [gpu.create_tensor_map(each, **box) if each.ndim == 2 else each for each in arguments]
    gpu.launch(simulate.Config(1, 64), kernel, *arguments).raise_for_errors()


def test_threads(calls):
    launched(THREADS, np.zeros(64, np.uint32), np.zeros(1, np.uint32))
    assert {each[1:3] for each in calls} == {
        (space, kind) for space in ("global", "shared") for kind in ("read", "write")
    }
    assert max(number for *_, number in calls) <= MOST_CALLS


def test_threads_after_atomics(calls):
    launched(ATOMICS, np.zeros(65, np.uint32), np.zeros(1, np.uint32))
    weak = [each for each in calls if each[2] != "atomic"]
    assert {each[2] for each in weak} == {"read", "write"}
    assert max(number for *_, number in weak[2:]) <= MOST_CALLS


def test_copies_by_tma(calls):
    launched(TMA, np.zeros((16, 16), np.uint32), np.zeros(64, np.uint32))
    copies = [each for each in calls if each[0] == "async"]
    assert {each[1:3] for each in copies} == {("global", "read"), ("shared", "write")}
    assert max(number for *_, number in copies) <= MOST_CALLS, copies
