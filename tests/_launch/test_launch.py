"""Tests of launch() with kernels, streams and contexts of a fake driver."""

import inspect

import pytest
from cuda import core
from hypothesis import given
from hypothesis import strategies as st

import cuda_tma
from cuda_tma import TensorMapError
from cuda_tma._cuda import driver as _driver
from tests.support.fake_driver import FakeDriver
from tests.support.launching import CONFIG, HANDLES, ForeignStream


def test_a_descriptor_of_another_context(launch, driver, device_tensor):
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    driver.stream_context, driver.devices = 0xBEEF, {0xBEEF: 1}
    with pytest.raises(TensorMapError, match=r"made on device 0 in context 0xc0de.*on device 1 in context 0xbeef"):
        launch("k", [128], descriptor)
    assert driver.launches == [] and driver.context == 0xC0DE


PRIMARY, GREEN, OTHER_GREEN, OWN = 0xC0DE, 0x6EE, 0x6EF, 0xBEEF


@pytest.mark.parametrize("made_in", [PRIMARY, GREEN, OTHER_GREEN, OWN])
@pytest.mark.parametrize("launched_in", [PRIMARY, GREEN, OTHER_GREEN, OWN])
@pytest.mark.parametrize("same_device", [True, False])
def test_green_contexts_share_the_primary_contexts_memory(
    launch, driver, device_tensor, made_in, launched_in, same_device
):
    driver.green = (GREEN, OTHER_GREEN)
    driver.context, driver.stream_context = made_in, launched_in
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    driver.devices = {} if same_device else {launched_in: 1}
    stream = core.Stream.from_handle(0x1000)
    if made_in == launched_in or (same_device and OWN not in (made_in, launched_in)):
        for _ in range(2):
            assert launch("k", [128], descriptor, stream=stream).arguments == [bytes(descriptor)]
    else:
        with pytest.raises(TensorMapError, match=f"in context {made_in:#x}.*in context {launched_in:#x}"):
            launch("k", [128], descriptor, stream=stream)
    assert driver.retained == 0 and driver.stack == []


def test_a_default_stream_is_of_the_current_context(launch, driver, device_tensor):
    driver.green, driver.context, driver.stream_context = (GREEN,), GREEN, PRIMARY
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    assert launch("k", [128], descriptor, stream=core.LEGACY_DEFAULT_STREAM).arguments == [bytes(descriptor)]
    driver.stream_context = OWN
    with pytest.raises(TensorMapError, match=f"in context {GREEN:#x}.*in context {OWN:#x}"):
        launch("k", [128], descriptor, stream=core.LEGACY_DEFAULT_STREAM)


def test_streams(launch, driver):
    class WithAttribute:
        __cuda_stream__ = (0, 0x99)

    class Builder:
        stream = ForeignStream(0x55)

    assert launch("k", [], stream=WithAttribute()).stream == 0x99
    assert launch("k", [], stream=Builder()).stream == 0x55
    assert launch("k", [], stream=ForeignStream(0)).stream == 0
    with pytest.raises(TypeError, match="stream is a str; launch takes a cuda.core.Stream"):
        launch("k", [], stream="0")

    class Newer:
        __cuda_stream__ = (1, 0x99)

    with pytest.raises(ValueError, match="has version 1; only version 0 is supported"):
        launch("k", [], stream=Newer())


def test_the_first_contexts_function_is_launched(driver):
    """In an unknown context, or in a context other than the first context, launch() uses the context-free kernel."""
    handle = next(HANDLES)
    driver.kernels[handle] = ("k", [])
    kernel = core.Kernel.from_handle(handle)

    def launched(stream):
        cuda_tma.launch(stream, CONFIG, kernel)
        cuda_tma.prepare(kernel, CONFIG)(stream)
        function, again = (launch.function for launch in driver.launches[-2:])
        assert function == again
        return function

    assert launched(ForeignStream()) == handle
    first = core.Stream.from_handle(0x1000)
    assert launched(first) == launched(core.Stream.from_handle(0x2000)) == handle | 0xE
    driver.stream_context = 0xBEE5
    elsewhere = core.Stream.from_handle(0x3000)
    assert launched(elsewhere) == handle
    # The fake driver creates a new context at the address of the first context.
    driver.stream_context, driver.context_ids = 0xC0DE, {0xC0DE: 5}
    assert launched(core.Stream.from_handle(0x4000)) == handle
    assert launched(first) == handle | 0xE and driver.context == 0xC0DE and driver.stack == []


@pytest.mark.parametrize("missing", ["cuKernelGetFunction", "cuCtxGetId"])
def test_a_driver_without_functions_launches_kernels(driver, missing):
    driver.install(without=[missing])
    handle = next(HANDLES)
    driver.kernels[handle] = ("k", [])
    cuda_tma.launch(core.Stream.from_handle(0x1000), CONFIG, core.Kernel.from_handle(handle))
    assert driver.launches[-1].function == handle


@given(st.lists(st.tuples(st.sampled_from(["new", "drop", "launch"]), st.integers(0, 2)), max_size=60))
def test_streams_are_created_and_destroyed(steps):
    """Python creates and deletes streams at equal addresses. Each launch uses the handle of its own stream."""
    before, fake = _driver.snapshot(), FakeDriver()
    fake.install()
    try:
        handle = next(HANDLES)
        fake.kernels[handle] = ("k", [])
        kernel = core.Kernel.from_handle(handle)
        prepared = cuda_tma.prepare(kernel, CONFIG)
        # The dictionary maps a number to a stream and its handle.
        streams = {}
        for step, number in steps:
            if step == "new":
                own = next(HANDLES)
                streams[number] = core.Stream.from_handle(own), own
            elif step == "drop":
                streams.pop(number, None)
            elif number in streams:
                stream, own = streams[number]
                cuda_tma.launch(stream, CONFIG, kernel)
                prepared(stream)
                assert [launch.stream for launch in fake.launches[-2:]] == [own, own]
                del stream
    finally:
        _driver.restore(before)


def test_arguments_by_name(driver):
    handle = next(HANDLES)
    driver.kernels[handle] = ("k", [])
    kernel = core.Kernel.from_handle(handle)
    cuda_tma.launch(stream=ForeignStream(), config=CONFIG, kernel=kernel)
    cuda_tma.launch(ForeignStream(), kernel=kernel, config=CONFIG)
    cuda_tma.prepare(kernel, CONFIG)(stream=ForeignStream())
    assert [launch.grid for launch in driver.launches] == [(2, 3, 4)] * 3
    assert str(inspect.signature(cuda_tma.launch)) == "(stream, config, kernel, *args)"
    for call in (
        lambda: cuda_tma.launch(ForeignStream(), CONFIG),
        lambda: cuda_tma.launch(ForeignStream(), CONFIG, kernel, stram=1),
        lambda: cuda_tma.prepare(kernel, CONFIG)(),
        lambda: cuda_tma.prepare(kernel, CONFIG)(ForeignStream(), 1),
        lambda: cuda_tma.prepare(kernel, CONFIG)(strem=ForeignStream()),
    ):
        with pytest.raises(TypeError, match="argument"):
            call()
    assert len(driver.launches) == 3


def test_invalid_kernel(driver):
    with pytest.raises(TypeError, match="kernel is a str; launch takes a cuda.core.Kernel"):
        cuda_tma.launch(ForeignStream(), CONFIG, "kernel")


def test_a_refused_launch_is_named(launch, driver):
    driver.errors["cuLaunchKernelEx"] = 1
    with pytest.raises(
        Exception, match="CUDA_ERROR_INVALID_VALUE: the driver refused to launch k with LaunchConfig"
    ) as e:
        launch("k", [], config=core.LaunchConfig(grid=1, block=32))
    assert type(e.value).__name__ == "CUDAError"


def test_an_error_while_reading_the_parameters_is_not_kept(driver):
    kernel = core.Kernel.from_handle(next(HANDLES))
    driver.kernels[int(kernel.handle)] = ("k", [4])
    driver.errors["cuKernelGetParamInfo"] = 700
    with pytest.raises(Exception, match="cuKernelGetParamInfo failed"):
        cuda_tma.launch(ForeignStream(), CONFIG, kernel, 1)
    driver.errors.clear()
    cuda_tma.launch(ForeignStream(), CONFIG, kernel, 1)
    assert driver.launches[-1].arguments == [b"\1\0\0\0"]


def test_a_kernel_that_goes_is_forgotten(driver):
    """A new kernel can have the same handle and the same address as a deleted kernel."""
    handle = next(HANDLES)
    for sizes in ([4], [8, 8]):
        driver.kernels[handle] = ("k", sizes)
        kernel = core.Kernel.from_handle(handle)
        cuda_tma.launch(ForeignStream(), CONFIG, kernel, *[1] * len(sizes))
        assert [len(argument) for argument in driver.launches[-1].arguments] == sizes
        del kernel
