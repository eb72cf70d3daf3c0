"""Tests of launches in eight threads, after a fork, and in a new process."""

from __future__ import annotations

import gc
import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

from cuda_tma import simulate

PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry adds(.param .u64 values, .param .u32 number, .param .u32 lanes) {
    .reg .b64 %rd<4>; .reg .b32 %r<6>;
    ld.param.u64 %rd1, [values];
    ld.param.u32 %r3, [number];
    ld.param.u32 %r4, [lanes];
    mov.u32 %r1, %tid.x;
    rem.u32 %r5, %r1, %r4;
    mul.wide.u32 %rd2, %r5, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r2, [%rd3];
    add.u32 %r2, %r2, %r3;
    st.global.u32 [%rd3], %r2;
    ret;
}
"""
THREADS = 8


def added(gpu: simulate.Device, number: int) -> tuple[list[int], list[str]]:
    """Launch a kernel with its own array. In a launch with an odd number, two warps race on the same words."""
    values = np.arange(64, dtype=np.uint32)
    lanes = 32 if number % 2 else 64
    report = gpu.launch(simulate.Config(1, 64), gpu.load(PTX, "adds"), values, np.uint32(number), np.uint32(lanes))
    return (values - np.arange(64, dtype=np.uint32)).tolist(), [finding.kind for finding in report.findings]


def expected(number: int) -> tuple[set[int], set[str]]:
    return {number} if number % 2 == 0 else {0, number}, {"race"} if number % 2 else set()


def in_a_process(number: int) -> tuple[list[int], list[str]]:
    return added(simulate.Device(), number)


@pytest.mark.parametrize("is_one_device", [True, False])
def test_launches_of_eight_threads_are_apart(is_one_device):
    one, begin = simulate.Device(), threading.Barrier(THREADS)

    def work(number: int) -> tuple[list[int], list[str]]:
        begin.wait()
        return added(one if is_one_device else simulate.Device(), number)

    with ThreadPoolExecutor(THREADS) as pool:
        results = [*pool.map(work, range(2, 2 + THREADS))]
    for number, (values, kinds) in enumerate(results, 2):
        wanted = expected(number)
        assert {*kinds} == wanted[1]
        if not wanted[1]:
            assert {*values} == wanted[0]
    gc.collect()
    added(one, 2)
    # A launch removes the memory of arrays that Python has deleted.
    assert len([*one._memory]) <= 1


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_launches_in_another_process(method):
    """The parent process has launched a kernel with a time limit. A forked process does not have the thread of the time
    limit."""
    gpu = simulate.Device(time_limit=60.0)
    assert {*added(gpu, 4)[0]} == {4}
    with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        results = [*pool.map(in_a_process, (2, 3))]
    assert ({*results[0][0]}, results[0][1]) == ({2}, []) and {*results[1][1]} == {"race"}
    assert {*added(gpu, 6)[0]} == {6}
