"""Tests of the objects that the package accepts or refuses as streams."""

from unittest import mock

import pytest
from cuda import core

import cuda_tma
from cuda_tma import TensorMapError

CONFIG = core.LaunchConfig(grid=1, block=32)
FOREIGN = core.LEGACY_DEFAULT_STREAM, core.PER_THREAD_DEFAULT_STREAM


class Endless:
    """An object whose attribute for its stream is the object itself."""

    @property
    def stream(self):
        return self


class Protocol:
    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return 0, self.handle


@pytest.fixture
def kernel(driver):
    driver.kernels[0x1000] = ("k", [8])
    return core.Kernel.from_handle(0x1000)


@pytest.fixture
def map_kernel(driver):
    driver.kernels[0x2000] = ("m", [128])
    return core.Kernel.from_handle(0x2000)


@pytest.fixture
def descriptor(driver, device_tensor):
    return cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))


NO_STREAMS = [mock.Mock(), Endless(), mock.MagicMock(spec=["stream"]), 5, None]


@pytest.mark.parametrize("stream", NO_STREAMS, ids=lambda stream: type(stream).__name__)
def test_invalid_stream(driver, kernel, descriptor, stream):
    maps = cuda_tma.create_tensor_maps([descriptor.tensor], {"box_dim": (16, 32)})
    message = f"^stream is a {type(stream).__name__}; launch takes a cuda.core.Stream, a GraphBuilder or an object with"
    for call in (
        lambda: cuda_tma.launch(stream, CONFIG, kernel, 1),
        lambda: cuda_tma.prepare(kernel, CONFIG, 1)(stream),
        lambda: maps.upload(stream),
    ):
        with pytest.raises(TypeError, match=message):
            call()
    assert driver.launches == []


def test_a_builders_stream_is_launched_on(driver, kernel):
    class Builder:
        def __init__(self, stream):
            self.stream = stream

    for stream, handle in ((Protocol(0x70), 0x70), (core.Stream.from_handle(0x5000), 0x5000)):
        cuda_tma.launch(Builder(stream), CONFIG, kernel, 1)
        cuda_tma.prepare(kernel, CONFIG, 1)(Builder(stream))
        assert [launch.stream for launch in driver.launches[-2:]] == [handle] * 2
    with pytest.raises(TypeError, match="stream is a Builder; launch takes"):
        cuda_tma.launch(Builder(Builder(Protocol(0x70))), CONFIG, kernel, 1)


@pytest.mark.parametrize(("stream", "handle"), [(FOREIGN[0], 1), (FOREIGN[1], 2), (Protocol(1), 1), (Protocol(2), 2)])
def test_default_streams_are_of_the_context_that_is_current_then(
    driver, kernel, map_kernel, descriptor, stream, handle
):
    """The driver resolves a default stream at each call, so the package stores no context for a default stream."""
    prepared = cuda_tma.prepare(map_kernel, CONFIG, descriptor)
    for _ in range(2):
        cuda_tma.launch(stream, CONFIG, map_kernel, descriptor)
        prepared(stream)
    assert [launch.stream for launch in driver.launches] == [handle] * 4
    driver.stream_context = 0xBEEF
    with pytest.raises(TensorMapError, match="in context 0xbeef; a tensor map is valid in its own context"):
        prepared(stream)
    with pytest.raises(TensorMapError, match="in context 0xbeef"):
        cuda_tma.launch(stream, CONFIG, map_kernel, descriptor)
    # A green context shares the memory of the primary context.
    driver.green, driver.stream_context = (0xBEEF,), 0xBEEF
    prepared(stream)
    driver.green = ()
    with pytest.raises(TensorMapError, match="in context 0xbeef"):
        prepared(stream)
    cuda_tma.launch(stream, CONFIG, kernel, 1)
    # The handle of a kernel is valid in any context.
    assert driver.launches[-1].function == 0x1000


def test_a_streams_handle_and_context_are_queried_once(driver, map_kernel, descriptor):
    stream = core.Stream.from_handle(0x5000)
    prepared = cuda_tma.prepare(map_kernel, CONFIG, descriptor)
    for _ in range(3):
        cuda_tma.launch(stream, CONFIG, map_kernel, descriptor)
        prepared(stream)
    assert len(driver.called("cuStreamGetCtx")) == len(driver.called("cuCtxGetId")) == 1
    assert {launch.stream for launch in driver.launches} == {0x5000}


def test_shared_contexts_are_queried_once(driver, map_kernel, descriptor):
    driver.green, driver.stream_context = (0x6EE,), 0x6EE
    stream = core.Stream.from_handle(0x5000)
    for _ in range(3):
        cuda_tma.launch(stream, CONFIG, map_kernel, descriptor)
    assert len(driver.called("cuDevicePrimaryCtxGetState")) == 1


@pytest.mark.parametrize("names", [{"cuStreamGetCtx"}, {"cuCtxGetId"}])
def test_a_stream_whose_context_the_driver_does_not_report(driver, map_kernel, descriptor, names):
    """A launch on a stream runs even if the driver does not report the context of the stream."""
    driver.errors = dict.fromkeys(names, 1)
    stream = core.Stream.from_handle(0x5000)
    for _ in range(2):
        cuda_tma.launch(stream, CONFIG, map_kernel, descriptor)
    cuda_tma.prepare(map_kernel, CONFIG, descriptor)(stream)
    assert [(launch.function, launch.arguments) for launch in driver.launches] == [(0x2000, [bytes(descriptor)])] * 3


def test_the_kernel_is_looked_up_in_the_streams_context(driver, kernel):
    """A context that is current before a launch is current again after the launch, even if the stream belongs to
    another context."""
    driver.stream_context = 0xBEE5
    cuda_tma.launch(core.Stream.from_handle(0x5000), CONFIG, kernel, 1)
    assert driver.launches[-1].function == 0x1000 | 5 and (driver.context, driver.stack) == (0xC0DE, [])
    assert driver.called("cuCtxPushCurrent") == [(0xBEE5,)]


@pytest.mark.parametrize("failing", ["cuCtxPushCurrent", "cuKernelGetFunction"])
def test_a_kernel_not_found_in_a_context_is_launched_directly(driver, kernel, failing):
    driver.errors = {failing: 1}
    for _ in range(2):
        cuda_tma.launch(core.Stream.from_handle(0x5000), CONFIG, kernel, 1)
    assert [launch.function for launch in driver.launches] == [0x1000] * 2 and driver.stack == []
    assert len(driver.called(failing)) == 1


class Subclass(core.Stream):
    """A subclass of a stream with a property that is true if the stream is closed."""

    ended = False
    handle = 0x5000

    @property
    def is_closed(self):
        return self.ended


@pytest.mark.skipif(not hasattr(core.Stream, "is_closed"), reason="cuda.core before 1.2 has no is_closed")
def test_a_subclass_reports_whether_it_is_closed(driver, kernel):
    stream = Subclass.__new__(Subclass)
    prepared = cuda_tma.prepare(kernel, CONFIG, 1)
    cuda_tma.launch(stream, CONFIG, kernel, 1)
    prepared(stream)
    stream.ended = True
    with pytest.raises(ValueError, match=r"^the stream is closed; launch on an open one \(Device\(\).create_stream"):
        cuda_tma.launch(stream, CONFIG, kernel, 1)
    with pytest.raises(ValueError, match="the stream is closed"):
        prepared(stream)
    stream.ended = False
    prepared(stream)
    assert [launch.stream for launch in driver.launches] == [0x5000] * 3


@pytest.mark.parametrize("version", [1, -1])
def test_another_version_of_the_protocol(driver, kernel, version):
    class Other:
        __cuda_stream__ = (version, 0x70)

    with pytest.raises(ValueError, match=f"__cuda_stream__ has version {version}; only version 0 is supported"):
        cuda_tma.launch(Other(), CONFIG, kernel, 1)


@pytest.mark.parametrize("number", [0, 2])
def test_the_descriptor_of_another_context_is_named(driver, device_tensor, number):
    driver.kernels[0x3000] = ("k", [128, 8, 128])
    kernel = core.Kernel.from_handle(0x3000)
    here, there = [], []
    for context, made in ((0xC0DE, here), (0xBEEF, there)):
        driver.context = context
        made += [cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32)) for _ in range(2)]
    arguments = [here[0], 7, here[1]]
    stream = core.Stream.from_handle(0x5000)
    cuda_tma.launch(stream, CONFIG, kernel, *arguments)
    arguments[number] = there[0]
    with pytest.raises(TensorMapError, match=f"^argument {number}: the descriptor was made on device 0 in context 0xb"):
        cuda_tma.launch(stream, CONFIG, kernel, *arguments)
    with pytest.raises(TensorMapError, match=f"^argument {number}: the descriptor was made on device 0 in context 0xb"):
        cuda_tma.prepare(kernel, CONFIG, *arguments)(stream)


def test_another_stream_at_the_address_of_a_closed_one(driver, kernel):
    """A prepared launch stores results for a stream, and must not use the results for a new stream at the same
    address."""
    firsts = [core.Stream.from_handle(handle) for handle in range(0x10000, 0x11000, 16)]
    prepared = {id(stream): cuda_tma.prepare(kernel, CONFIG, 1) for stream in firsts}
    for stream in firsts:
        prepared[id(stream)](stream)
    del stream, firsts
    others = [(core.Stream.from_handle(handle), handle) for handle in range(0x20000, 0x22000, 16)]
    again = [(stream, handle) for stream, handle in others if id(stream) in prepared]
    if not again:
        pytest.skip("memory is not used again here")
    for stream, handle in again:
        prepared[id(stream)](stream)
        cuda_tma.launch(stream, CONFIG, kernel, 1)
        assert [launch.stream for launch in driver.launches[-2:]] == [handle] * 2
