"""Tests of the memory to which a view of the host belongs, and of arrays that a kernel cannot use."""

import numpy as np
import pytest

from cuda_tma.simulate._memory import host_array as module
from cuda_tma.simulate._memory.host_array import Extent, HostArray, Owner, host_array


@pytest.mark.parametrize("array", [np.array([object()]), np.zeros(2, [("a", "i4"), ("b", "O")])])
def test_an_array_of_python_objects(array):
    with pytest.raises(TypeError, match=r"the array's elements \(.*\) are Python objects; pass numbers"):
        host_array(array)


@pytest.mark.parametrize(("offset", "is_inside"), [(-1, False), (0, True), (8, True), (9, False)])
def test_a_view_that_begins_outside_of_its_owner(monkeypatch, offset, is_inside):
    owner = Owner(object, lambda _: Extent(64, 8), "the storage")
    found = HostArray(64 + offset, owner, True)
    monkeypatch.setattr(module, "_of_numpy", lambda array: found)
    if is_inside:
        assert host_array(np.zeros(1)) is found
        return
    with pytest.raises(ValueError, match=f"begins at 0x{64 + offset:x}, outside the storage at 0x40, which has been"):
        host_array(np.zeros(1))


def test_a_view_belongs_to_the_array_that_owns_its_memory():
    owner = np.zeros((8, 4), np.int32)
    view = owner[2:, 1:].T
    found = host_array(view)
    assert found.owner.watched() is owner and found.owner.is_whole and found.writeable
    assert found.owner.extent == (owner.ctypes.data, 128) and found.address == owner.ctypes.data + 36
    view.flags.writeable = False
    assert not host_array(view).writeable and host_array(owner).writeable


@pytest.mark.parametrize("exporter", [bytearray(32), b"0" * 32, memoryview(bytearray(32))])
def test_a_view_of_an_exporter_belongs_to_its_whole_memory(exporter):
    view = np.frombuffer(exporter, np.uint8)[8:16]
    found = host_array(view)
    assert (found.owner.extent.size, found.address - found.owner.extent.begin) == (32, 8)
    assert found.writeable is not isinstance(exporter, bytes)
    assert found.owner.name in ("the bytearray of 32 bytes", "the bytes of 32 bytes")


def test_the_bytes_of_an_exporter():
    assert module._buffer(bytearray(8)).size == 8
    every_second = memoryview(bytearray(8))[::2]
    assert [module._buffer(each) for each in (object(), None, every_second, 7)] == [None] * 4


def test_the_root_of_a_view():
    data = bytearray(16)
    array = np.frombuffer(memoryview(data), np.uint16)
    own = np.zeros(4)
    assert module._root(own[1:])[0] is own and module._root(own)[1] is None
    root, base = module._root(array[2:][1:])
    assert base is data and root.ctypes.data == array.ctypes.data
