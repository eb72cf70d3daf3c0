"""Prepared launches, while other threads use them: what the driver is given was prepared together.

The stand-in for the driver plays the other thread: the GIL is free while it runs.
"""

import gc
import itertools
import struct

import pytest
from cuda import core

import cuda_tma
from cuda_tma import TensorMapError

HANDLES = itertools.count(0x1000_0000, 16)
CONFIG = core.LaunchConfig(grid=1, block=32)


@pytest.fixture
def kernel(driver):
    """kernel(sizes) -> a kernel with parameters of these sizes."""

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
    """meanwhile(name, work): do the work once, while that entry point of the driver runs."""

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


def test_prepared_anew_while_the_driver_reads_the_configuration(driver, kernel, stream, meanwhile):
    clustered, cooperative = (core.LaunchConfig(grid=1, block=32) for _ in range(2))
    clustered.cluster, cooperative.is_cooperative = (2, 1, 1), True
    prepared = cuda_tma.prepare(kernel([8]), clustered, 1)

    def prepare_anew():
        prepared.__init__(kernel([8]), cooperative, 2)
        for _ in range(20):
            cuda_tma.prepare(kernel([8]), CONFIG, 3)

    meanwhile("cuLaunchKernelEx", prepare_anew)
    prepared(stream)
    prepared(stream)
    assert [launch.attributes for launch in driver.launches] == [{4: (2, 1, 1)}, {2: (1, 0, 0)}]
    assert [launch.arguments for launch in driver.launches] == [integers(1), integers(2)]


def test_an_argument_set_while_the_driver_reads_the_others(driver, kernel, stream, meanwhile):
    prepared = cuda_tma.prepare(kernel([8, 8]), CONFIG, 1, 1)
    meanwhile("cuLaunchKernelEx", lambda: prepared.__setitem__(0, 2))
    prepared(stream)
    prepared(stream)
    assert [launch.arguments for launch in driver.launches] == [integers(1, 1), integers(2, 1)]


def test_prepared_anew_while_the_kernel_is_found(driver, kernel, stream, meanwhile):
    one, other = kernel([8], "one"), kernel([8] * 3, "other")
    prepared = cuda_tma.prepare(one, CONFIG, 1)
    meanwhile("cuKernelGetFunction", lambda: prepared.__init__(other, CONFIG, 7, 8, 9))
    prepared(stream)
    prepared(stream)
    launched = [(launch.function & ~15, launch.arguments) for launch in driver.launches]
    assert launched == [(int(one.handle), integers(1)), (int(other.handle), integers(7, 8, 9))]


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


def test_two_arguments_set_at_once(kernel, device_tensor):
    """Packing the one runs Python, which sets the other: neither is lost."""
    prepared = cuda_tma.prepare(kernel([8, 8]), CONFIG, 1, 2)

    class Sets(device_tensor):
        def __dlpack__(self, **keywords):
            prepared[0] = 7
            return super().__dlpack__(**keywords)

    tensor = Sets((8,), address=64)
    prepared[1] = tensor
    assert list(prepared) == [7, tensor]


def test_an_argument_set_while_it_is_prepared_anew(driver, kernel, stream, device_tensor):
    """Of a kernel with fewer parameters."""
    prepared = cuda_tma.prepare(kernel([8] * 600), CONFIG, *range(600))

    class PreparesAnew(device_tensor):
        def __dlpack__(self, **keywords):
            prepared.__init__(kernel([8]), CONFIG, 7)
            gc.collect()
            return super().__dlpack__(**keywords)

    with pytest.raises(RuntimeError, match="argument 599: while it was packed, this launch was prepared anew"):
        prepared[599] = PreparesAnew((8,), address=64)
    prepared(stream)
    assert (len(prepared), list(prepared)) == (1, [7])
    assert driver.launches[-1].arguments == integers(7)


def test_the_end_of_an_old_argument_may_use_it(driver, kernel, stream, device_tensor):
    """It finds what was prepared last."""

    class Last(device_tensor):
        def __del__(self):
            ended.append(list(prepared))
            prepared[0] = 9

    ended = []
    prepared = cuda_tma.prepare(kernel([8]), CONFIG, Last((8,), address=64))
    prepared(stream)
    prepared.__init__(kernel([8]), CONFIG, 7)
    prepared(stream)
    assert ended == [[7]] and list(prepared) == [9]
    assert driver.launches[-1].arguments == integers(9)


def test_setting_a_single_byte_changes_no_other_object(driver, kernel, stream):
    prepared = cuda_tma.prepare(kernel([1]), CONFIG, 65)
    prepared[-1] = 66
    prepared(stream)
    assert driver.launches[-1].arguments == [b"B"] and bytes([65]) == b"A"


@pytest.mark.parametrize("index", [2, -3, slice(0, 1), "a"])
def test_what_is_no_argument(kernel, index):
    prepared = cuda_tma.prepare(kernel([8, 8]), CONFIG, 1, 2)
    with pytest.raises((IndexError, TypeError), match=r"outside the 2 arguments|cannot be interpreted as an integer"):
        prepared[index] = 3
    assert list(prepared) == [1, 2]
