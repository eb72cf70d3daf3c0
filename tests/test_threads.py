"""Tests of eight concurrent threads on the fake driver, in which the arguments of each driver call belong to one call
of the package.

With a GIL, the tests are fast and rarely find a fault. On a free-threaded CPython, the tests also cover the package's
shared state.
"""

import os
import struct
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from cuda import core

import cuda_tma
from cuda_tma._cuda import driver as _driver
from tests._threads import FREE_THREADED
from tests.support.fake_driver import INVALID_VALUE, FakeDriver
from tests.support.fake_graphs import offsets
from tests.support.launching import CONFIG, HANDLES, ForeignStream, kernel_name
from tests.support.typed_kernels import TILE

THREADS, ROUNDS = 8, 60
# The dictionary contains the initial state of the driver in each thread.
OF_THREADS = {"context": 0xC0DE, "device": 0, "stack": None}


class ThreadedDriver(FakeDriver):
    """A driver whose contexts belong to threads, as in the real driver. This driver keeps no state between calls."""

    def __new__(cls):
        self = super().__new__(cls)
        object.__setattr__(self, "own", threading.local())
        return self

    def __getattribute__(self, name):
        if name not in OF_THREADS:
            return super().__getattribute__(name)
        return self.own.__dict__.setdefault(name, [] if name == "stack" else OF_THREADS[name])

    def __setattr__(self, name, value):
        if name in OF_THREADS:
            self.own.__dict__[name] = value
        else:
            super().__setattr__(name, value)

    def cuKernelGetParamInfo(self, function, index, offset, size):
        sizes = self.kernels[function][1]
        if index >= len(sizes):
            return INVALID_VALUE
        offset[0], size[0] = offsets(sizes)[index], sizes[index]
        return 0

    def cuKernelGetName(self, out, function):
        self.names.append(self.kernels[function][0].encode())
        out[0] = self.names[-1]
        return 0


@pytest.fixture
def driver():
    before = _driver.snapshot()
    fake = ThreadedDriver()
    fake.names = []
    fake.install()
    yield fake
    _driver.restore(before)


def together(work):
    """Run work(thread, round) in all threads at once, in each round."""
    start = threading.Barrier(THREADS)

    def run(thread):
        start.wait()
        for round_ in range(ROUNDS):
            work(thread, round_)

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(run, thread) for thread in range(THREADS)]:
            done.result()


@pytest.fixture
def new_kernel(driver):
    def new_kernel(*sizes, types=()):
        handle = next(HANDLES)
        driver.kernels[handle] = (kernel_name(*types) if types else "k", list(sizes))
        return core.Kernel.from_handle(handle)

    return new_kernel


@pytest.fixture(autouse=True)
def switching_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.skipif(not FREE_THREADED, reason="needs a free-threaded CPython")
def test_an_import_leaves_the_gil_off():
    if os.environ.get("PYTHON_GIL") is None:
        assert not sys._is_gil_enabled()


def test_each_thread_makes_its_own_maps(driver, device_tensor):
    """Each thread makes its own tensor maps from keywords, options and new types of tensors."""

    def work(thread, round_):
        shape, box = (64 * (thread + 1), 128), (thread + 1, 32)
        tensor = type(f"Tensor{thread}{round_}", (device_tensor,), {})(shape, address=(thread + 1) << 32)
        by_keywords = cuda_tma.create_tensor_map(tensor, box_dim=box, swizzle="128B")
        by_options = cuda_tma.create_tensor_map(tensor, cuda_tma.TensorMapOptions(box, swizzle="128B"))
        assert by_keywords == by_options and by_keywords.tensor is tensor
        params = by_keywords.params
        assert (params.global_dim, params.box_dim, params.global_address) == (
            shape[::-1],
            box[::-1],
            (thread + 1) << 32,
        )

    together(work)


def test_new_kernels_streams_and_configurations(driver, new_kernel):
    """In the test, each launch has its own new kernel, stream and configuration."""
    shared = [new_kernel(8, 4) for _ in range(4)]

    def work(thread, round_):
        number = thread * ROUNDS + round_
        kernel = shared[round_ % 4] if thread % 2 else new_kernel(8, 4)
        config = core.LaunchConfig(grid=thread + 1, block=32)
        cuda_tma.launch(core.Stream.from_handle(0x9000 + 16 * number), config, kernel, number, thread)

    together(work)
    assert len(driver.launches) == THREADS * ROUNDS
    for launch in driver.launches:
        number, thread = struct.unpack("Q", launch.arguments[0])[0], struct.unpack("i", launch.arguments[1])[0]
        assert (launch.stream, launch.grid[0]) == (0x9000 + 16 * number, thread + 1)
        assert number // ROUNDS == thread


def test_a_shared_prepared_launch(driver, new_kernel, device_tensor):
    """Some threads set the arguments of a prepared launch, and other threads launch it. Each launched map is a map that
    a thread has set."""
    maps = [cuda_tma.create_tensor_map(device_tensor((64, 128), address=n << 32), box_dim=(n, 32)) for n in range(1, 9)]
    prepared = cuda_tma.prepare(new_kernel(128, 8), CONFIG, maps[0], 0)
    streams = [core.Stream.from_handle(0x5000 + 16 * n) for n in range(THREADS)]

    def work(thread, round_):
        if thread % 2:
            prepared[0] = maps[(thread + round_) % 8]
            prepared[1] = round_
        prepared(streams[thread])
        assert prepared[0] in maps

    together(work)
    legal = {bytes(each) for each in maps}
    assert all(launch.arguments[0] in legal for launch in driver.launches)
    assert {launch.stream for launch in driver.launches} == {int(stream.handle) for stream in streams}


def test_arguments_are_read_while_they_are_set(new_kernel):
    """The threads run only Python code. Without critical sections, a free-threaded CPython crashed in 6 of 13 runs."""
    prepared = cuda_tma.prepare(new_kernel(8, 8), CONFIG, 1 << 40, 1)
    repeats = 1000 if FREE_THREADED else 20

    def work(thread, round_):
        for number in range(repeats):
            if thread % 2:
                prepared[0] = (1 << 40) + number
            else:
                assert (prepared[0] >> 40, prepared[1]) == (1, 1)

    together(work)


def test_the_address_of_a_shared_descriptor_changes(driver, new_kernel, device_tensor):
    """One thread changes the descriptor, while other threads launch and read it.

    The bytes of the descriptor always belong to its present tensor."""
    tensors = [device_tensor((64, 128), address=n << 32) for n in range(1, 9)]
    descriptor = cuda_tma.create_tensor_map(tensors[0], box_dim=(16, 32))
    legal = {bytes(cuda_tma.create_tensor_map(tensor, box_dim=(16, 32))) for tensor in tensors}
    kernel = new_kernel(128)

    def work(thread, round_):
        if thread % 2:
            descriptor.replace_address(tensors[(thread * 3 + round_) % 8])
        cuda_tma.launch(ForeignStream(), CONFIG, kernel, descriptor)
        assert bytes(descriptor) in legal and descriptor.tensor in tensors

    together(work)
    assert all(launch.arguments[0] in legal for launch in driver.launches)


def test_typed_maps_of_tensors(driver, new_kernel, device_tensor):
    kernel = new_kernel(128, types=(TILE,))

    def work(thread, round_):
        tensor = device_tensor((64, 128), address=(thread * ROUNDS + round_ + 1) << 20)
        cuda_tma.launch(core.Stream.from_handle(0x7000 + 16 * thread), CONFIG, kernel, tensor)

    together(work)
    addresses = sorted(int.from_bytes(launch.arguments[0][:8], "little") for launch in driver.launches)
    assert addresses == [n << 20 for n in range(1, THREADS * ROUNDS + 1)]


def test_kernels_and_streams_that_end_during_launches(driver, new_kernel):
    """New objects may have the addresses of deleted objects. The package never uses the results of a deleted object for
    a new object."""

    def work(thread, round_):
        for size in (4, 8):
            kernel, stream = new_kernel(size), core.Stream.from_handle(0xA000 + 16 * size)
            cuda_tma.launch(stream, CONFIG, kernel, thread)
            del kernel, stream

    together(work)
    assert all(launch.stream == 0xA000 + 16 * len(launch.arguments[0]) for launch in driver.launches)
