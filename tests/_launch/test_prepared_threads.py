"""Tests of prepared launches that several threads use. Each launch passes arguments to the driver that were prepared
together.

The fake driver runs the work of the second thread, because another thread can run during a driver call without the GIL.
"""

import copy
import ctypes
import gc
import itertools
import pickle
import struct
import sys

import pytest
from cuda import core

import cuda_tma
from cuda_tma import TensorMapError
from cuda_tma._cuda import driver as _driver

HANDLES = itertools.count(0x1000_0000, 16)
CONFIG = core.LaunchConfig(grid=1, block=32)


@pytest.fixture
def kernel(driver):
    """Return a function that makes a kernel with parameters of given sizes."""

    def kernel(sizes, name="k"):
        handle = next(HANDLES)
        driver.kernels[handle] = (name, sizes)
        return core.Kernel.from_handle(handle)

    return kernel


@pytest.fixture
def stream():
    return core.Stream.from_handle(0x1000)


@pytest.fixture
def meanwhile(driver):
    """Return a function that makes given work run once, during the next call of a named driver function."""

    def meanwhile(name, work):
        call, pending = getattr(driver, name), [work]

        def called(*arguments):
            if pending:
                pending.pop()()
            return call(*arguments)

        setattr(driver, name, called)
        driver.install()

    return meanwhile


def integers(*values):
    return [struct.pack("Q", value) for value in values]


def test_an_argument_set_while_the_driver_reads_the_others(driver, kernel, stream, meanwhile):
    prepared = cuda_tma.prepare(kernel([8, 8]), CONFIG, 1, 1)
    meanwhile("cuLaunchKernelEx", lambda: prepared.__setitem__(0, 2))
    prepared(stream)
    prepared(stream)
    assert [launch.arguments for launch in driver.launches] == [integers(1, 1), integers(2, 1)]


def test_a_descriptor_set_while_the_kernel_is_found_is_compared(driver, kernel, stream, meanwhile, device_tensor):
    here = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(8, 8))
    driver.context = 0xBEEF
    there = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(8, 8))
    driver.context = 0xC0DE
    prepared = cuda_tma.prepare(kernel([128]), CONFIG, here)
    meanwhile("cuKernelGetFunction", lambda: prepared.__setitem__(0, there))
    prepared(stream)
    with pytest.raises(TensorMapError, match="in context 0xbeef"):
        prepared(stream)
    assert [launch.arguments for launch in driver.launches] == [[bytes(here)]]


def test_an_argument_set_while_the_kernel_is_found(driver, kernel, stream, meanwhile):
    """If the stream changes during a launch, the launch does not store results that belong to the earlier stream."""
    prepared = cuda_tma.prepare(kernel([8]), CONFIG, 1)
    meanwhile("cuKernelGetFunction", lambda: prepared.__setitem__(0, 2))
    prepared(stream)
    prepared(stream)
    assert [launch.arguments for launch in driver.launches] == [integers(1), integers(2)]


def test_the_driver_reads_a_configuration_of_its_own(driver, kernel, stream, meanwhile):
    """While the driver reads a configuration, other threads prepare launches with other configurations. The
    configuration that the driver reads does not change."""
    clustered, cooperative = (core.LaunchConfig(grid=1, block=32) for _ in range(2))
    clustered.cluster, cooperative.is_cooperative = (2, 1, 1), True
    one = kernel([8])
    prepared = cuda_tma.prepare(one, clustered, 1)
    meanwhile("cuLaunchKernelEx", lambda: cuda_tma.prepare(one, cooperative, 2)(stream))
    prepared(stream)
    prepared(stream)
    assert [launch.attributes for launch in driver.launches] == [{2: (1, 0, 0)}, *[{4: (2, 1, 1)}] * 2]


def test_two_arguments_set_at_once(kernel, device_tensor):
    """The conversion of the first argument runs Python code that sets the second argument. The launch uses both new
    values."""
    prepared = cuda_tma.prepare(kernel([8, 8]), CONFIG, 1, 2)

    class Sets(device_tensor):
        def __dlpack__(self, **keywords):
            prepared[0] = 7
            return super().__dlpack__(**keywords)

    tensor = Sets((8,), address=64)
    prepared[1] = tensor
    assert list(prepared) == [7, tensor]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the collector runs only between bytecodes")
def test_an_argument_set_by_the_garbage_collector_is_not_lost(kernel):
    """The garbage collector runs during the conversion of new arguments, and a finalizer sets another argument."""
    prepared = cuda_tma.prepare(kernel([8, 8]), CONFIG, 1, 2)

    class Sets:
        def __init__(self):
            self.itself = self

        def __del__(self):
            prepared[0] = 7

    Sets()
    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        prepared[1] = 5
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert list(prepared) == [7, 5]


def test_the_end_of_an_old_argument_may_use_it(driver, kernel, stream, device_tensor):
    """When an argument of a prepared launch is replaced, the finalizer of the old argument can read the new
    argument."""

    class Last(device_tensor):
        def __del__(self):
            ended.append(list(prepared))
            prepared[0] = 9

    ended = []
    prepared = cuda_tma.prepare(kernel([8]), CONFIG, Last((8,), address=64))
    prepared(stream)
    prepared[0] = 7
    prepared(stream)
    assert ended == [[7]] and list(prepared) == [9]
    assert driver.launches[-1].arguments == integers(9)


def test_setting_a_single_byte_changes_no_other_object(driver, kernel, stream):
    prepared = cuda_tma.prepare(kernel([1]), CONFIG, 65)
    prepared[-1] = 66
    prepared(stream)
    assert driver.launches[-1].arguments == [b"B"] and bytes([65]) == b"A"


@pytest.mark.parametrize("index", [2, -3, slice(0, 1), "a"])
def test_invalid_argument(kernel, index):
    prepared = cuda_tma.prepare(kernel([8, 8]), CONFIG, 1, 2)
    with pytest.raises((IndexError, TypeError), match=r"outside the 2 arguments|cannot be interpreted as an integer"):
        prepared[index] = 3
    assert list(prepared) == [1, 2]


@pytest.mark.parametrize("door", ["launch", "prepared", "by name"])
def test_the_gil_is_free_while_the_driver_launches(driver, kernel, stream, door):
    """A Python function replaces the driver's launch function. It returns an error if the calling thread holds the
    GIL."""
    entry_points = dict(_driver.snapshot())
    has_gil = ctypes.cast(ctypes.pythonapi.PyGILState_Check, ctypes.c_void_p).value
    _driver.install({**entry_points, "cuLaunchKernelEx": has_gil})
    one = kernel([8])
    if door == "launch":
        cuda_tma.launch(stream, CONFIG, one, 1)
    elif door == "prepared":
        cuda_tma.prepare(one, CONFIG, 1)(stream)
    else:
        cuda_tma.launch(stream=stream, config=CONFIG, kernel=kernel([]))


def test_the_gil_is_free_while_a_kernel_is_loaded(driver, kernel, stream):
    """The launch releases the GIL before it makes the stream's context current to load the kernel."""
    has_gil = ctypes.cast(ctypes.pythonapi.PyGILState_Check, ctypes.c_void_p).value
    _driver.install({**_driver.snapshot(), "cuCtxPushCurrent": has_gil, "cuCtxPopCurrent": has_gil})
    cuda_tma.launch(stream, CONFIG, kernel([8]), 1)
    assert len(driver.called("cuKernelGetFunction")) == 1


def test_a_prepared_launch_does_not_keep_a_default_stream(driver, kernel, device_tensor):
    """A default stream belongs to the current context, which may change before the next launch."""
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(8, 8))
    prepared = cuda_tma.prepare(kernel([128]), CONFIG, descriptor)
    for default in (core.LEGACY_DEFAULT_STREAM, core.PER_THREAD_DEFAULT_STREAM):
        driver.stream_context = 0xC0DE
        prepared(default)
        driver.stream_context = 0xBEEF
        with pytest.raises(TensorMapError, match="in context 0xbeef"):
            prepared(default)


def test_a_prepared_launch_reads_a_stream_once(driver, kernel, device_tensor, stream):
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(8, 8))
    driver.green, driver.stream_context = (0x6EE,), 0x6EE
    prepared = cuda_tma.prepare(kernel([128]), CONFIG, descriptor)
    for _ in range(3):
        prepared(stream)
    assert len(driver.called("cuDevicePrimaryCtxGetState")) == 1 and len(driver.launches) == 3
    # The launch queries the context of the stream again, because an argument has changed.
    prepared[0] = descriptor
    prepared(stream)
    assert driver.launches[-1].arguments == [bytes(descriptor)]


def test_later_changes_of_the_configuration_do_not_count(driver, kernel, stream):
    config = core.LaunchConfig(grid=2, block=32, shmem_size=5)
    prepared = cuda_tma.prepare(kernel([8]), config, 1)
    config.grid, config.shmem_size = (7, 1, 1), 6
    prepared(stream)
    assert (driver.launches[-1].grid, driver.launches[-1].shared_mem_bytes) == ((2, 1, 1), 5)


@pytest.mark.parametrize("made", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_prepared_launch_is_neither_copied_nor_pickled(kernel, made):
    prepared = cuda_tma.prepare(kernel([8]), CONFIG, 1)
    with pytest.raises(TypeError, match=r"a prepared launch cannot be copied or pickled: .*Make another: prepare\("):
        made(prepared)


def test_a_refused_prepared_launch_is_named(driver, kernel, stream):
    prepared = cuda_tma.prepare(kernel([8], "wide"), core.LaunchConfig(grid=1, block=32), 1)
    driver.errors["cuLaunchKernelEx"] = 1
    for _ in range(2):
        with pytest.raises(Exception, match="CUDA_ERROR_INVALID_VALUE: the driver refused to launch wide with Launch"):
            prepared(stream)


@pytest.mark.parametrize("size_bytes", [1016, 1024, 1032, 4096])
def test_blocks_of_any_size(driver, kernel, stream, size_bytes):
    """Parameter blocks of at most 1024 bytes are on the stack."""
    one = kernel([8] * (size_bytes // 8))
    numbers = list(range(size_bytes // 8))
    cuda_tma.launch(stream, CONFIG, one, *numbers)
    cuda_tma.prepare(one, CONFIG, *numbers)(stream)
    assert [launch.arguments for launch in driver.launches] == [integers(*numbers)] * 2
    with pytest.raises(TypeError, match=f"takes {size_bytes // 8} arguments, and 0 were given"):
        cuda_tma.launch(stream, CONFIG, one)
