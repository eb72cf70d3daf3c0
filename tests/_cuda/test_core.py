"""Tests of the exchange of tensor map descriptors with cuda.core, without a driver."""

import ctypes

import numpy as np
import pytest

import cuda_tma
from cuda_tma import TensorMapError
from cuda_tma._cuda import core as _core

CoreDescriptor = pytest.importorskip("cuda.core").TensorMapDescriptor
OPTIONS = cuda_tma.TensorMapOptions((16, 32), swizzle="128B")
# A TensorMapDescriptor of cuda.core 1.2 contains the ordinal of its device at offset 256. The ordinal -1 means that no
# context was current.
DEVICE_OFFSET = 256


@pytest.fixture
def views(monkeypatch):
    """Replace cuda.core's StridedMemoryView by a class that records its constructor's arguments."""
    made = []

    class View:
        @classmethod
        def from_buffer(cls, buffer, shape, *, dtype):
            made.append((buffer, shape, dtype))
            return cls()

        def as_tensor_map(self, *, box_dim):
            descriptor = CoreDescriptor.__new__(CoreDescriptor)
            ctypes.c_int.from_address(id(descriptor) + DEVICE_OFFSET).value = -1
            made[-1] += (box_dim,)
            return descriptor

    monkeypatch.setattr(_core, "StridedMemoryView", View)
    return made


def test_the_bytes_go_both_ways(driver, device_tensor, views):
    tensor = device_tensor((64, 128))
    ours = cuda_tma.create_tensor_map(tensor, OPTIONS)
    theirs = ours.to_cuda_core()
    assert type(theirs) is CoreDescriptor
    ((buffer, shape, dtype, box_dim),) = views
    assert (int(buffer.handle), buffer.size, shape, dtype, box_dim) == (1 << 32, 16, (16,), np.uint8, (16,))
    again = cuda_tma.TensorMapDescriptor.from_bytes(theirs, tensor)
    assert again == ours and again.tensor is tensor
    ours.replace_address(1 << 33)
    assert cuda_tma.TensorMapDescriptor.from_bytes(theirs).params.global_address == 1 << 32


def test_our_launch_takes_theirs(driver, device_tensor, views, launch):
    ours = cuda_tma.create_tensor_map(device_tensor((64, 128)), OPTIONS)
    assert launch("k", [128], ours.to_cuda_core()).arguments == [bytes(ours)]


def test_another_context_is_refused(driver, device_tensor, views):
    ours = cuda_tma.create_tensor_map(device_tensor((64, 128)), OPTIONS)
    driver.context = 0xBEEF
    with pytest.raises(TensorMapError, match="the map was made in context 0xc0de"):
        ours.to_cuda_core()
    assert views == []


def test_a_copy_is_not_written_to(driver, device_tensor, views, monkeypatch):
    """If cuda.core could write to its copy of a descriptor, a launch would receive the changed bytes."""
    ours = cuda_tma.create_tensor_map(device_tensor((64, 128)), OPTIONS)
    elsewhere = ctypes.c_void_p(ctypes.addressof(ctypes.create_string_buffer(128)))
    holder = type("Holder", (), {"__init__": lambda self, values: None, "ptr": ctypes.addressof(elsewhere)})
    monkeypatch.setattr(_core, "ParamHolder", holder)
    with pytest.raises(RuntimeError, match="passes only a copy of them to launches"):
        ours.to_cuda_core()
