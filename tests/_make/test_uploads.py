"""Tests of uploads of tensor maps to device memory. During a stream capture, the package itself allocates the
memory."""

import ctypes
import gc

import pytest
from cuda import core

import cuda_tma
from cuda_tma import TensorMapOptions
from cuda_tma._cuda import driver as _driver
from cuda_tma._make import device_memory as _device_memory

STREAM, OWN = 0x5000, 0xC0D3


class ForeignStream:
    """A stand-in for a stream of torch, which has only a handle."""

    def __init__(self, handle=STREAM):
        self.__cuda_stream__ = (0, handle)


class CoreMemory:
    """A stand-in for cuda.core's Device that records the requests to its memory resource. The stand-in has no method
    allocate(), because that method would require set_current()."""

    def __init__(self):
        self.asked = []

    def __call__(self, device_id):
        self.device_id = device_id
        return self

    @property
    def memory_resource(self):
        class Resource:
            @staticmethod
            def allocate(size, *, stream):
                self.asked.append((self.device_id, size, stream))
                return core.Buffer.from_handle(0xB0FFE800, size)

        return Resource


@pytest.fixture
def memory(monkeypatch):
    found = CoreMemory()
    monkeypatch.setattr(_device_memory, "CoreDevice", found)
    return found


@pytest.fixture
def maps(driver, device_tensor):
    driver.context, driver.device = OWN, 3
    tensors = [device_tensor((64, 128), address=1 << n, device_id=3) for n in (32, 33, 34)]
    return cuda_tma.create_tensor_maps(tensors, TensorMapOptions((16, 32)))


def test_memory_is_cuda_cores(driver, maps, memory):
    stream = core.Stream.from_handle(STREAM)
    buffer = maps.upload(stream)
    assert (int(buffer.handle), buffer.size) == (0xB0FFE800, 384)
    assert memory.asked == [(3, 384, stream)] and memory.asked[0][2] is stream
    assert driver.copies == [(0xB0FFE800, bytes(maps), STREAM)]
    assert driver.memory == {}


@pytest.mark.parametrize(("handle", "wanted"), [(STREAM, STREAM), (0, 1), (1, 1), (2, 2)])
def test_a_foreign_stream_becomes_cuda_cores(driver, maps, memory, handle, wanted):
    """The upload needs no call of set_current(), even if only torch has created the context."""
    maps.upload(ForeignStream(handle))
    ((device_id, size, stream),) = memory.asked
    assert (device_id, size, type(stream), int(stream.handle)) == (3, 384, core.Stream, wanted)
    assert driver.copies[0][2] == handle


def test_a_graph_builder_allocates_on_its_stream(driver, maps, memory):
    class Builder:
        stream = core.Stream.from_handle(STREAM)

    maps.upload(Builder)
    assert memory.asked[0][2] is Builder.stream


def test_a_capture_gets_memory_of_its_own(driver, maps, memory):
    """An upload during a capture uses memory that is valid until the Buffer is freed. Memory of the graph would limit
    the graph to one launch."""
    driver.capturing = (STREAM,)
    # The current context is not the context of the stream.
    driver.context = 0xD00D
    buffer = maps.upload(ForeignStream())
    address = int(buffer.handle)
    assert driver.memory == {address: (384, OWN)} and memory.asked == [] and buffer.size == 384
    assert driver.copies == [(address, bytes(maps), STREAM)]
    assert (driver.context, driver.capture_mode, driver.stack) == (0xD00D, 0, [])
    del buffer
    gc.collect()
    assert driver.memory == {}
    assert (driver.context, driver.capture_mode, driver.stack) == (0xD00D, 0, [])
    # The stream of the second upload does not capture a graph.
    other = maps.upload(ForeignStream(STREAM + 16))
    assert len(memory.asked) == 1 and int(other.handle) == 0xB0FFE800


@pytest.mark.parametrize(
    ("call", "captures"),
    [("cuStreamIsCapturing", False), ("cuMemAlloc", True), ("cuMemcpyHtoDAsync", True), ("cuMemcpyHtoDAsync", False)],
)
def test_a_failed_upload_leaves_nothing(driver, maps, memory, call, captures):
    driver.capturing = (STREAM,) if captures else ()
    driver.errors[call] = 700
    with pytest.raises(Exception, match=f"{call} failed with CUDA_ERROR_ILLEGAL_ADDRESS"):
        maps.upload(ForeignStream())
    gc.collect()
    assert (driver.memory, driver.copies, driver.stack, driver.capture_mode) == ({}, [], [], 0)


def test_a_context_that_is_gone(driver, maps):
    driver.capturing = (STREAM,)
    driver.errors["cuCtxPushCurrent"] = 700
    with pytest.raises(Exception, match="cuMemAlloc failed with CUDA_ERROR_ILLEGAL_ADDRESS"):
        maps.upload(ForeignStream())
    assert driver.memory == {} and driver.called("cuMemAlloc") == [] and driver.called("cuCtxPopCurrent") == []


def test_a_capture_mode_that_is_refused(driver, maps):
    """The upload restores the thread's capture mode, even if the second change of the mode fails."""

    class Once(dict):
        __getitem__ = dict.pop

    driver.capturing, driver.errors = (STREAM,), Once(cuThreadExchangeStreamCaptureMode=700)
    with pytest.raises(Exception, match="cuMemAlloc failed with CUDA_ERROR_ILLEGAL_ADDRESS"):
        maps.upload(ForeignStream())
    assert driver.called("cuMemAlloc") == [] and (driver.capture_mode, driver.stack) == (0, [])


def test_memory_is_allocated_and_freed_without_the_gil(driver, maps):
    """An allocation may wait for the device, and the device may wait for a host function in Python."""
    driver.capturing, driver.context = (STREAM,), OWN
    # PyGILState_Check() returns 0, the code of success, if the thread does not hold the GIL.
    has_gil = ctypes.cast(ctypes.pythonapi.PyGILState_Check, ctypes.c_void_p).value
    _driver.install(_driver.snapshot() | {"cuCtxPushCurrent": has_gil})
    # The fake driver returns the contexts of the stack to the calls that pop a context.
    driver.stack = [(OWN, 3)] * 2
    buffer = maps.upload(ForeignStream())
    assert driver.memory == {int(buffer.handle): (384, OWN)}
    del buffer
    gc.collect()
    assert driver.memory == {} and driver.stack == []


def test_no_maps_need_no_memory(driver, memory):
    buffer = cuda_tma.create_tensor_maps([], TensorMapOptions((16, 32))).upload(ForeignStream())
    assert (int(buffer.handle), buffer.size, memory.asked, driver.copies) == (0, 0, [], [])
