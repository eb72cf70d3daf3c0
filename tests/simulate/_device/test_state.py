"""Tests of the state that launches on one device share, with several threads and with interrupts."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

import cuda_tma
from cuda_tma import simulate
from cuda_tma.simulate import Config, Device

SOURCE = r"""
struct Values { int of[64]; };
__device__ __noinline__ int get(const Values* values, int i) { return values->of[i & 63]; }
extern "C" __global__ void sum(const __grid_constant__ Values values, int* out) {
    for (int i = 0; i < 100; ++i) *out += get(&values, i);
}
"""
ONE = Config(1, 1)


@pytest.fixture(scope="module")
def ptx():
    return Device().compile(SOURCE, "sum").ptx


def numbers(value):
    return np.full(64, value, np.int32).tobytes()


def test_threads_launch_on_one_device(ptx):
    """If several threads launch on one device, each kernel reads its own parameters through a generic address."""
    gpu, sums = Device(), np.zeros(4, np.int32)
    kernel = gpu.load(ptx, "sum")

    def launches(number):
        for _ in range(5):
            gpu.launch(ONE, kernel, numbers(number + 1), sums[number:])

    threads = [threading.Thread(target=launches, args=(number,)) for number in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert sums.tolist() == [500, 1000, 1500, 2000]


@pytest.fixture(autouse=True)
def one_process(monkeypatch):
    """Run every schedule in this process, also on a loaded machine."""
    monkeypatch.setattr("cuda_tma.simulate._device.schedules.cores", lambda: 1)


@pytest.fixture
def interrupt(monkeypatch):
    """Interrupt a launch in its n-th schedule, before the kernel's first instruction."""

    def interrupt(after):
        runs = []
        go = simulate._machine.run.Running.go

        def interrupted(running):
            runs.append(running)
            if len(runs) == after:
                raise KeyboardInterrupt
            go(running)

        monkeypatch.setattr(simulate._machine.run.Running, "go", interrupted)

    return interrupt


@pytest.fixture
def interrupt_inside(monkeypatch):
    """Interrupt a launch while its kernel runs."""

    def stop(machine, until):
        raise KeyboardInterrupt

    monkeypatch.setattr(simulate._machine.machine.Machine, "run", stop)


def test_an_interrupt_leaves_no_parameters_in_the_address_space(ptx, interrupt_inside, monkeypatch):
    gpu, out = Device(), np.zeros(1, np.int32)
    kernel = gpu.load(ptx, "sum")
    gpu.address(out)
    before = [*gpu._memory]
    with pytest.raises(KeyboardInterrupt):
        gpu.launch(ONE, kernel, numbers(3), out)
    assert [*gpu._memory] == before
    monkeypatch.undo()
    gpu.launch(ONE, kernel, numbers(4), out).raise_for_errors()
    assert out[0] == 400


@pytest.mark.parametrize(("schedule", "left"), [(1, 7), (2, 307), (3, 307)])
def test_an_interrupt_leaves_memory_as_the_first_schedule_does(ptx, interrupt, schedule, left):
    gpu, out = Device(schedules=3), np.full(1, 7, np.int32)
    interrupt(schedule)
    with pytest.raises(KeyboardInterrupt):
        gpu.launch(ONE, gpu.load(ptx, "sum"), numbers(3), out)
    assert out[0] == left


@pytest.mark.parametrize("schedule", [2, 3])
def test_the_host_writes_to_an_array_during_a_later_schedule(ptx, schedule, monkeypatch):
    """Another thread of a program may copy to its own part of an allocation while a launch runs."""
    gpu, out, runs = Device(schedules=3), np.full(2, 7, np.int32), []
    go = simulate._machine.run.Running.go

    def with_a_write(running):
        runs.append(running)
        if len(runs) == schedule:
            out[1] = 77
        go(running)

    monkeypatch.setattr(simulate._machine.run.Running, "go", with_a_write)
    gpu.launch(ONE, gpu.load(ptx, "sum"), numbers(3), out)
    assert (len(runs), out.tolist()) == (3, [307, 77])


def test_the_host_writes_to_an_array_during_a_replay(monkeypatch):
    """The simulator repeats a launch whose reads race, to find whether the values have an effect."""
    source = """extern "C" __global__ void mixed(int* values, int* out) {
        int read = values[0];
        if (threadIdx.x == 32) values[0] = 5;
        out[threadIdx.x] = read > 100;
    }"""
    gpu, values, out, runs = Device(schedules=1), np.zeros(2, np.int32), np.zeros(64, np.int32), []
    kernel, go = gpu.compile(source, "mixed"), simulate._machine.run.Running.go

    def with_a_write(running):
        runs.append(running)
        if len(runs) == 2:
            values[1] = 77
        go(running)

    monkeypatch.setattr(simulate._machine.run.Running, "go", with_a_write)
    gpu.launch(Config(1, 64), kernel, values, out)
    assert (len(runs) > 1, values.tolist(), out.tolist()) == (True, [5, 77], [0] * 64)


def test_an_interrupt_leaves_a_read_only_view_read_only(ptx, interrupt_inside, monkeypatch):
    """The interrupted launch used the array itself, without a copy."""
    gpu, out = Device(), np.zeros(1, np.int32)
    kernel, view = gpu.load(ptx, "sum"), out.view()
    view.flags.writeable = False
    with pytest.raises(KeyboardInterrupt):
        gpu.launch(ONE, kernel, numbers(3), out)
    monkeypatch.undo()
    (finding,) = gpu.launch(ONE, kernel, numbers(3), view).findings
    assert "which is read-only" in finding.message
    assert out[0] == 0


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError("in the block")])
def test_an_exception_in_a_watched_block_ends_the_watch(error):
    own = cuda_tma.launch, cuda_tma.prepare
    with pytest.raises((KeyboardInterrupt, RuntimeError)), simulate.watch():
        assert (cuda_tma.launch, cuda_tma.prepare) != own
        raise error
    assert (cuda_tma.launch, cuda_tma.prepare) == own


def test_a_thread_that_waits_for_a_launch_continues_after_an_interrupt(ptx, interrupt_inside, monkeypatch):
    gpu, out = Device(), np.zeros(1, np.int32)
    kernel = gpu.load(ptx, "sum")
    with pytest.raises(KeyboardInterrupt):
        gpu.launch(ONE, kernel, numbers(3), out)
    monkeypatch.undo()
    thread = threading.Thread(target=lambda: gpu.launch(ONE, kernel, numbers(1), out), daemon=True)
    thread.start()
    thread.join(30)
    assert out[0] == 100
