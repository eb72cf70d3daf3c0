"""Tests of prepared launches, whose arguments change one at a time."""

import dataclasses

import pytest
from cuda import core

import cuda_tma
from cuda_tma import TensorMapError
from tests.support.launching import CONFIG, HANDLES, ForeignStream


def test_a_subclass_may_launch_otherwise(driver):
    class Twice(cuda_tma.PreparedLaunch):
        def __init__(self, kernel, config, *args):
            super().__init__(kernel, config, *args)
            self.count = len(args)

        def __call__(self, stream):
            super().__call__(stream)
            super().__call__(stream)

    handle = next(HANDLES)
    driver.kernels[handle] = ("k", [4])
    twice = Twice(core.Kernel.from_handle(handle), CONFIG, 3)
    twice(core.Stream.from_handle(0x1000))
    twice(stream=core.Stream.from_handle(0x2000))
    launched = [(launch.stream, launch.arguments[0][0]) for launch in driver.launches]
    assert launched == [(0x1000, 3)] * 2 + [(0x2000, 3)] * 2 and twice.count == 1


def test_a_launch_is_prepared_once(driver):
    """For a prepared launch, a second call of __init__ has no effect. A call of __init__ without arguments raises an
    error."""
    handle = next(HANDLES)
    driver.kernels[handle] = ("k", [4])
    prepared = cuda_tma.prepare(core.Kernel.from_handle(handle), CONFIG, 3)
    prepared.__init__(core.Kernel.from_handle(handle), CONFIG, 4)
    prepared(core.Stream.from_handle(0x1000))
    assert list(prepared) == [3] and driver.launches[-1].arguments == [(3).to_bytes(4, "little")]
    with pytest.raises(TypeError, match="argument"):
        cuda_tma.PreparedLaunch.__new__(cuda_tma.PreparedLaunch)


@pytest.mark.parametrize(
    ("config", "arguments"), [({"bad": 1}, ()), (CONFIG, (1,)), (CONFIG, (1, "text")), (CONFIG, ())]
)
def test_launches_that_cannot_be_prepared(driver, config, arguments):
    handle = next(HANDLES)
    driver.kernels[handle] = ("k", [8] * 8000)
    with pytest.raises(TypeError):
        cuda_tma.prepare(core.Kernel.from_handle(handle), config, *arguments)


def test_a_failed_assignment_leaves_the_arguments_unchanged(driver):
    handle = next(HANDLES)
    driver.kernels[handle] = ("k", [4, 4])
    prepared = cuda_tma.prepare(core.Kernel.from_handle(handle), CONFIG, 3, 4)
    prepared(core.Stream.from_handle(0x1000))
    with pytest.raises(TypeError, match="argument 1 of kernel k: the parameter takes 4 bytes, and a str"):
        prepared[1] = "text"
    prepared[0] = 5
    prepared(core.Stream.from_handle(0x1000))
    first, second = driver.launches
    assert list(prepared) == [5, 4]
    assert second == dataclasses.replace(first, arguments=[value.to_bytes(4, "little") for value in (5, 4)])


def test_closed_and_changed_streams_of_a_prepared_launch(driver, device_tensor):
    """A check of a descriptor for one stream is not valid for another stream or another descriptor."""
    handle = next(HANDLES)
    driver.kernels[handle] = ("k", [128])
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    prepared = cuda_tma.prepare(core.Kernel.from_handle(handle), CONFIG, descriptor)
    here = core.Stream.from_handle(0x1000)
    prepared(here)
    driver.stream_context = 0xBEEF
    elsewhere = core.Stream.from_handle(0x2000)
    with pytest.raises(TensorMapError, match="in context 0xbeef"):
        prepared(elsewhere)
    prepared(here)
    driver.context = 0xBEEF
    prepared[0] = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    with pytest.raises(TensorMapError, match="made on device 0 in context 0xbeef"):
        prepared(here)
    prepared(elsewhere)
    elsewhere.close()
    with pytest.raises(ValueError, match="the stream is closed"):
        prepared(elsewhere)
    with pytest.raises(ValueError, match="the stream is closed"):
        cuda_tma.launch(elsewhere, CONFIG, core.Kernel.from_handle(handle), prepared[0])
    assert [launch.stream for launch in driver.launches] == [0x1000, 0x1000, 0x2000]


def test_a_prepared_launch_only_launches(driver, device_tensor):
    handle = next(HANDLES)
    driver.kernels[handle] = ("k", [128, 4])
    maps = [cuda_tma.create_tensor_map(device_tensor((64, 128), address=1 << n), box_dim=(16, 32)) for n in (32, 33)]
    config = core.LaunchConfig(grid=3, block=32)
    prepared = cuda_tma.prepare(core.Kernel.from_handle(handle), config, maps[0], 7)
    prepared(ForeignStream())
    prepared[0], prepared[-1] = maps[1], 8
    prepared(ForeignStream(0x99))
    first, second = driver.launches
    assert first.arguments == [bytes(maps[0]), b"\7\0\0\0"] and first.grid == (3, 1, 1)
    assert second.arguments == [bytes(maps[1]), b"\x08\0\0\0"] and second.stream == 0x99
    assert len(prepared) == 2 and prepared[0] is maps[1] and prepared[1] == 8
    with pytest.raises(TypeError, match="argument 1"):
        prepared[1] = 1.5j
    with pytest.raises(IndexError):
        prepared[2] = 0
    assert prepared[1] == 8
    driver.stream_context = 0xBEEF
    with pytest.raises(TensorMapError, match="made on device 0"):
        prepared(ForeignStream())
    with pytest.raises(TypeError, match="takes 2 arguments, and 1 was given"):
        cuda_tma.prepare(core.Kernel.from_handle(handle), config, maps[0])
