"""Tests of schedules that run in forked processes. The results and the report do not depend on the number of
processes."""

from __future__ import annotations

import os
import sys
import threading

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate._device import processes, schedules
from cuda_tma.simulate._device.processes import cores, results_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux only")

# Two warps write one element, and all threads read it.
RACE = """
extern "C" __global__ void race(int* out) {
    __shared__ int value;
    if (threadIdx.x % 32 == 0) value = threadIdx.x;
    out[threadIdx.x] = value;
}
"""


@pytest.mark.parametrize("number", [0, 1, 2, 5])
def test_results_in_order(number):
    written = []

    def work(value: int) -> int:
        written.append(value)
        return value * value

    assert [*results_of(work, range(5), number)] == [0, 1, 4, 9, 16]
    # The list of this process stays empty when other processes do the work.
    assert written == ([] if number else [0, 1, 2, 3, 4])


def test_work_of_a_process_that_fails():
    here = os.getpid()

    def work(value: int) -> int:
        if os.getpid() != here and value == 2:
            raise RuntimeError("in a process")
        return value

    assert [*results_of(work, [0, 1, 2, 3, 4], 2)] == [0, 1, 2, 3, 4]


def test_an_error_of_the_work():
    def work(value: int) -> float:
        return 1 / value

    with pytest.raises(ZeroDivisionError):
        [*results_of(work, [1, 0], 2)]


def test_no_process_is_left():
    pids = []
    results = results_of(lambda value: os.getpid(), range(100), 2)
    pids += [next(results), next(results)]
    results.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_one_core_with_other_threads():
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        assert cores() == 1
    finally:
        end.set()
        thread.join()


def reported(processes_of_it: int, monkeypatch) -> tuple[simulate.Report, list[int]]:
    monkeypatch.setattr(schedules, "_processes", lambda number, seconds: processes_of_it)
    gpu, out = simulate.Device(schedules=5), np.zeros(128, np.int32)
    report = gpu.launch(simulate.Config(1, 128), gpu.compile(RACE, "race"), out)
    return report, out.tolist()


def test_the_report_on_several_cores(monkeypatch):
    (alone, memory), (forked, memory_after_fork) = reported(0, monkeypatch), reported(3, monkeypatch)
    assert alone.findings and str(alone) == str(forked)
    assert alone.findings == forked.findings and alone.schedules == forked.schedules
    assert alone.thread_instructions == forked.thread_instructions
    assert memory == memory_after_fork


def test_short_launches_stay_here(monkeypatch):
    monkeypatch.setattr(schedules, "cores", lambda: 4)
    assert [schedules._processes(3, 0.01), schedules._processes(3, 1.0), schedules._processes(99, 1.0)] == [0, 3, 4]
    monkeypatch.setattr(schedules, "cores", lambda: 1)
    assert schedules._processes(3, 1.0) == 0
    assert processes.cores() >= 1
