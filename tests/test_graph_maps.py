"""A map of a node in an executable graph: copied when it is given, and what is refused leaves the one before."""

import struct

import pytest

import cuda_tma
from tests._graph import changed, definition, live, prepared  # noqa: F401
from tests.support.typed_kernels import kernel  # noqa: F401


def test_a_map_that_is_refused_leaves_the_one_before(driver, live, device_tensor):  # noqa: F811
    first, second = (
        cuda_tma.create_tensor_map(device_tensor((64, 128), address=n << 32), box_dim=(16, 32)) for n in (5, 6)
    )
    for _ in range(2):  # the first change is sent otherwise than those after it
        live[0] = first
        driver.errors["cuGraphExecKernelNodeSetParams"] = 1
        with pytest.raises(Exception, match="refused to change a node of kernel k"):
            live[0] = second
        del driver.errors["cuGraphExecKernelNodeSetParams"]
    live[2] = 8
    assert live[0] is first and changed(driver)[0] == bytes(first)


def test_a_map_is_copied_when_it_is_given(driver, live, device_tensor):  # noqa: F811
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    live[2] = 1
    live[0] = descriptor
    given = bytes(descriptor)
    descriptor.replace_address(7 << 32)
    live[2] = 2
    assert changed(driver) == [given, struct.pack("Q", 1 << 40), struct.pack("i", 2)] and given != bytes(descriptor)
