"""Tests of synchronize() and arm_watchdog() on a fake driver. The tests write the watchdog's reports in place of a
kernel."""

from __future__ import annotations

import ctypes
import gc
import threading
from types import SimpleNamespace
from weakref import WeakKeyDictionary

import numpy as np
import pytest
from cuda.bindings import driver as real

from cuda_tma import KernelHang, arm_watchdog, synchronize
from cuda_tma._cuda.core import CUDAError
from cuda_tma._watchdog import deadlines as watchdog
from cuda_tma._watchdog import memory
from tests._watchdog._fake import BUSY, OK, WORD, FakeDriver, FakeKernel


@pytest.fixture
def fake(monkeypatch):
    made = FakeDriver()
    monkeypatch.setattr(watchdog, "driver", made)
    monkeypatch.setattr(watchdog, "_watches", {})
    monkeypatch.setattr(watchdog, "name_of", lambda kernel: "gemm")
    monkeypatch.setattr(watchdog, "types_of", lambda kernel: None)
    monkeypatch.setattr(watchdog, "compiled_of", lambda kernel: None)
    clock = SimpleNamespace(now=100.0)
    clock.monotonic = lambda: clock.now

    def sleep(seconds):
        assert seconds <= 1e-3
        clock.now += 0.1

    clock.sleep = sleep
    monkeypatch.setattr(watchdog, "time", clock)
    return made


STREAM = SimpleNamespace(__cuda_stream__=(0, 4096))


@pytest.fixture
def kernel(fake):
    """Return a kernel with a watchdog, whose source is one line."""
    made = FakeKernel()
    watchdog.arm(made, "full.wait(0);", "/tmp/gemm.cu", 500)
    return made


def write(fake, slot=0, **fields):
    """Write a watchdog report as thread 32 of a kernel would write it."""
    buffer = np.frombuffer(fake.pinned[0], np.uint8)
    record = buffer[memory.HEAD.itemsize :].view(memory.RECORD)[slot]
    given = {"module": fake.head[1], "word": WORD, "warp": 1, "lanes": 1, "line": 1, "file": b"gemm.cu", "is_whole": 1}
    for name, value in (given | fields).items():
        record[name] = value
    buffer[: memory.HEAD.itemsize].view(memory.HEAD)["count"] += 1


TOLD = (
    "no thread of kernel gemm can go on:\n"
    "  block (0, 0): thread 32 waits at gemm.cu:1 for `full`, parity 0: 1 of its 2 arrivals is missing\n"
    "probable cause: init() expects 2 arrivals in each phase, and 1 came"
)


def test_a_kernel_receives_the_address_for_reports(fake, kernel):
    address, number, _ = fake.head
    assert address == ctypes.addressof(fake.pinned[0]) and number > 0
    head = np.frombuffer(fake.pinned[0], memory.HEAD, 1)
    assert (head["count"][0], head["capacity"][0]) == (0, memory.CAPACITY)
    assert not np.frombuffer(fake.pinned[0], np.uint8)[memory.HEAD.itemsize :].any()
    other = FakeKernel()
    arm_watchdog(other)
    assert len(fake.pinned) == 1 and fake.head[1] > number


def test_the_last_freed_kernels_are_known(fake, kernel):
    """The watchdog keeps only the last freed kernels, whose reports can still arrive. A list of all freed kernels would
    grow without bound."""
    (watch,) = watchdog._watches.values()
    for _ in range(200):
        watchdog.arm(FakeKernel(), "full.wait(0);", "/tmp/gemm.cu", 500)
    gc.collect()
    arm_watchdog(kernel)
    assert len(watch.modules) <= 2 + watchdog._MOST_GONE + 1 and len(watch.armed) == 1
    watchdog.arm(FakeKernel(), "full.wait(0);", "/tmp/gemm.cu", 500)
    gc.collect()
    write(fake)
    with pytest.raises(KernelHang) as raised:
        synchronize(STREAM)
    assert str(raised.value) == TOLD


def test_a_context_with_the_handle_of_an_earlier_one(fake, kernel):
    """The driver frees the memory of a context with the context, so the watchdogs of each context write to separate
    memory."""
    fake.context_ids[1] = 12
    synchronize(STREAM)  # The new context has no armed kernel, because the driver has freed the earlier context.
    assert fake.waited[-1] == 4096
    arm_watchdog(kernel)
    assert len(fake.pinned) == 2 and fake.head[0] == ctypes.addressof(fake.pinned[1])


def test_a_lost_context_without_an_id(fake, kernel):
    fake.cuCtxGetId = lambda context: (real.CUresult.CUDA_ERROR_ILLEGAL_INSTRUCTION, 0)
    write(fake)
    with pytest.raises(KernelHang):
        synchronize(STREAM)


def test_a_kernel_without_a_watchdog(fake):
    fake.found = real.CUresult.CUDA_ERROR_NOT_FOUND
    watchdog.arm(FakeKernel(), "", "k.cu", 500)
    with pytest.raises(
        ValueError, match=r"gemm has no watchdog: compile\(\.\.\., watchdog_ms=500\), or define CUDA_TMA"
    ):
        arm_watchdog(FakeKernel())
    fake.found = real.CUresult.CUDA_ERROR_INVALID_CONTEXT
    for arm in (arm_watchdog, lambda kernel: watchdog.arm(kernel, "", "k.cu", 500)):
        with pytest.raises(CUDAError, match="cuLibraryGetGlobal failed with CUDA_ERROR_INVALID_CONTEXT"):
            arm(FakeKernel())
    assert not fake.pinned


def test_without_any_watchdog_it_waits_as_the_driver_does(fake):
    synchronize(STREAM)
    assert fake.waited == [4096]


@pytest.mark.parametrize("stream", [STREAM, SimpleNamespace(__cuda_stream__=lambda: (0, 2))])
def test_a_written_report_is_raised_once(fake, kernel, stream):
    fake.answers = [BUSY] * 3
    synchronize(stream)
    write(fake)
    fake.device[16:20] = b"\1\2\3\4"  # The number identifies the grid that hangs.
    fake.answers = [BUSY]
    with pytest.raises(KernelHang) as raised:
        synchronize(stream)
    assert str(raised.value) == TOLD
    assert fake.device[16:20] == bytes(4)
    synchronize(stream)


def test_a_partial_report_is_raised_the_next_time(fake, kernel):
    write(fake, 0, is_whole=0, grid=1)
    write(fake, 1, grid=2)
    for slot in (1, 0):
        with pytest.raises(KernelHang) as raised:
            synchronize(STREAM)
        assert len(raised.value.hangs) == 1 and str(raised.value) == TOLD, slot
        np.frombuffer(fake.pinned[0], np.uint8)[memory.HEAD.itemsize :].view(memory.RECORD)["is_whole"][0] = 1
    synchronize(STREAM)


def test_more_than_there_is_room_for(fake, kernel):
    write(fake)
    np.frombuffer(fake.pinned[0], np.uint8)[: memory.HEAD.itemsize].view(memory.HEAD)["count"] = memory.CAPACITY + 7
    with pytest.raises(KernelHang, match="\n7 waiting warps were not recorded: the buffer is full$"):
        synchronize(STREAM)
    synchronize(STREAM)
    write(fake)
    with pytest.raises(KernelHang) as raised:
        synchronize(STREAM)
    assert str(raised.value) == TOLD


def test_a_lost_context(fake, kernel):
    lost = real.CUresult.CUDA_ERROR_ILLEGAL_INSTRUCTION
    fake.answers = [BUSY, lost]
    with pytest.raises(CUDAError, match="cuStreamQuery failed with CUDA_ERROR_ILLEGAL_INSTRUCTION"):
        synchronize(STREAM)
    write(fake)
    fake.answers = [lost]
    with pytest.raises(KernelHang) as raised:
        synchronize(STREAM)
    assert str(raised.value) == f"{TOLD}\nthe context is lost: CUDA_ERROR_ILLEGAL_INSTRUCTION"


def note(fake, slot, clock=1, file=0):
    fake.notes[slot] = (file, 1 << 31 | 1 << 20 | 12, 128 | slot << 11, 0, 0, 0xFFFFFFFF, clock)


def test_warps_that_wait_at_a_hardware_barrier(fake, kernel):
    name = ctypes.create_string_buffer(b"/tmp/gemm.cu", 200)
    note(fake, 2, file=ctypes.addressof(name))
    note(fake, 3, file=ctypes.addressof(name))
    fake.answers = [BUSY] * 40
    with pytest.raises(KernelHang) as raised:
        synchronize(STREAM)
    assert str(raised.value).startswith(
        "no thread of kernel gemm can go on:\n"
        "  block (0, 0): warps 2 to 3 wait at gemm.cu:12 for barrier 1 of the CTA: 64 of 128 threads are missing\n"
    )
    assert "the kernel is still running: nothing ends a wait at a hardware barrier" in str(raised.value)
    waited = 40 - len(fake.answers)
    # The unit is a tenth of a second. The time is the deadline, a further second, and the interval of the polls.
    assert 15 <= waited <= 24


def test_warps_that_wait_again_and_again_are_not_stuck(fake, kernel, monkeypatch):
    """The clock in a warp's notes shows that each wait of the warp is a new wait."""
    asked = fake.cuStreamQuery

    def query(stream):
        note(fake, 2, clock=len(fake.answers))
        return asked(stream)

    monkeypatch.setattr(fake, "cuStreamQuery", query)
    fake.answers = [BUSY] * 60
    synchronize(STREAM)
    assert not fake.answers


def test_a_file_s_name_that_cannot_be_read(fake, kernel):
    note(fake, 2, file=8)
    fake.answers = [BUSY] * 40
    with pytest.raises(KernelHang, match=r"warp 2 waits for barrier 1 of the CTA"):
        synchronize(STREAM)


def test_no_stream(fake):
    with pytest.raises(ValueError, match="has version 1; only version 0 is supported"):
        synchronize(SimpleNamespace(__cuda_stream__=(1, 4096)))
    with pytest.raises(TypeError, match="stream is a int; pass a cuda.core.Stream"):
        synchronize(4096)
    with pytest.raises(ValueError, match="the stream is closed"):
        synchronize(SimpleNamespace(__cuda_stream__=(0, 0), is_closed=True))


def test_two_threads_that_take_one_report(fake, kernel, monkeypatch):
    """If two threads read a watchdog report, the second thread waits until the first thread has finished."""
    write(fake)
    (watch,) = watchdog._watches.values()
    read, taken = memory.hangs_of, []
    other = threading.Thread(target=lambda: taken.append(watch.take()))

    def interrupted(*arguments):
        if other.ident is None:
            other.start()
            other.join(0.05)
        return read(*arguments)

    monkeypatch.setattr(memory, "hangs_of", interrupted)
    taken.append(watch.take())
    other.join()
    assert sorted(map(len, taken)) == [0, 1]


@pytest.mark.parametrize("more", [0, 1])
def test_the_buffer_is_emptied_when_more_than_half_is_full(fake, kernel, more):
    count = memory.CAPACITY // 2 + more
    for slot in range(count):
        write(fake, slot, grid=slot)
    with pytest.raises(KernelHang):
        synchronize(STREAM)
    head = np.frombuffer(fake.pinned[0], np.uint8)[: memory.HEAD.itemsize].view(memory.HEAD)
    assert int(head["count"][0]) == (0 if more else count)


def test_two_threads_that_arm_first_share_one_memory(fake):
    """If two threads arm kernels first, the second thread waits while the first thread allocates the watchdog's
    memory."""
    allocate, other = fake.cuMemHostAlloc, threading.Thread(target=lambda: watchdog.arm(FakeKernel(), "", "b.cu", 1))

    def interrupted(size, flags):
        if other.ident is None:
            other.start()
            other.join(0.05)
        return allocate(size, flags)

    fake.cuMemHostAlloc = interrupted
    watchdog.arm(FakeKernel(), "", "a.cu", 1)
    other.join()
    assert len(fake.pinned) == len(watchdog._watches) == 1


@pytest.mark.parametrize("use", ["arm", "armed"])
def test_another_thread_waits_while_armed_kernels_are_read_or_changed(fake, kernel, use):
    """A change of the dictionary of armed kernels during an iteration would raise an error in the iterating thread."""
    (watch,) = watchdog._watches.values()
    kernels, held = [FakeKernel()], []

    class Guarded(WeakKeyDictionary):
        def values(self):
            held.append(watch._lock.locked())
            return super().values()

        def __setitem__(self, key, value):
            held.append(watch._lock.locked())
            super().__setitem__(key, value)

    watch._armed = Guarded(watch._armed)
    held.clear()
    if use == "arm":
        watch.arm(kernels[0], ctypes.addressof(fake.device), memory.Watched("gemm"), 1.0)
    else:
        assert len(watch.armed) == 1
    assert held == [True]


def test_a_lost_context_with_a_report(fake, kernel):
    """The watchdog writes nothing to the memory of a lost context, because a failed write would hide the report."""
    write(fake)
    fake.answers = [real.CUresult.CUDA_ERROR_LAUNCH_FAILED]
    fake.cuMemcpyHtoDAsync = lambda *_: (real.CUresult.CUDA_ERROR_LAUNCH_FAILED,)
    with pytest.raises(KernelHang, match="the context is lost: CUDA_ERROR_LAUNCH_FAILED"):
        synchronize(STREAM)


@pytest.mark.parametrize(("handle", "current"), [(0, True), (1, True), (2, True), (3, False)])
def test_a_default_stream_is_of_the_current_context(fake, kernel, handle, current):
    """The driver returns no context for CU_STREAM_LEGACY (1) and CU_STREAM_PER_THREAD (2)."""
    asked = []
    fake.cuStreamGetCtx = lambda stream: asked.append(int(stream)) or (OK, real.CUcontext(1))
    synchronize(SimpleNamespace(__cuda_stream__=(0, handle)))
    assert asked == ([] if current else [handle])


def test_an_error_of_the_driver_is_raised(fake):
    fake.cuMemHostAlloc = lambda *_: (real.CUresult.CUDA_ERROR_OUT_OF_MEMORY, 0)
    with pytest.raises(CUDAError, match="cuMemHostAlloc failed with CUDA_ERROR_OUT_OF_MEMORY"):
        watchdog.arm(FakeKernel(), "", "a.cu", 1)
    assert watchdog._watches == {}


def test_eight_threads_arm_and_take_each_report_once(fake):
    """Eight threads arm one kernel each, and all eight threads take reports. Each report is taken once."""
    kernels, taken, begin = [FakeKernel() for _ in range(8)], [], threading.Barrier(8)

    def work(kernel):
        begin.wait()
        watchdog.arm(kernel, "full.wait(0);", "/tmp/gemm.cu", 500)
        begin.wait()
        (watch,) = watchdog._watches.values()
        for _ in range(20):
            taken.extend(watch.take())

    threads = [threading.Thread(target=work, args=(kernel,)) for kernel in kernels]
    watchdog.arm(FakeKernel(), "", "a.cu", 1)
    for slot in range(10):
        write(fake, slot, grid=slot)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (watch,) = watchdog._watches.values()
    assert len(taken) == 10 and len(watch.armed) == 8 and len({number for _, number, _ in watch.armed}) == 8
