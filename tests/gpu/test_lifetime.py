"""Tests of the lifetime of a descriptor's memory. A descriptor keeps its memory alive, and releases the memory when the
descriptor is deleted."""

import gc
import resource

import numpy as np
import pytest

import cuda_tma

from .tile_reader import TileReader

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("watched")


@pytest.fixture(scope="module")
def reader(device, stream):
    return TileReader(device, stream)


def first_element(reader, descriptor):
    return reader.read(descriptor, (0, 0))[:4].view("float32")[0]


def churn():
    """Empty torch's memory cache, and overwrite the freed memory."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return [torch.full((1024, 1024), -1.0, device="cuda") for _ in range(8)]


def test_a_temporary(reader):
    descriptor = cuda_tma.create_tensor_map(torch.full((1024, 1024), 7.0, device="cuda"), box_dim=(4, 4))
    others = churn()
    assert first_element(reader, descriptor) == 7.0 and len(others) == 8
    assert not descriptor.is_stale()


@pytest.mark.parametrize("through_a_view", [False, True])
@pytest.mark.parametrize("repoint", ["data", "set_", "del"])
def test_a_tensor_whose_address_changes(reader, repoint, through_a_view):
    x = torch.full((1024, 1024), 7.0, device="cuda")
    source = cuda_tma.StridedMemoryView.from_any_interface(x, stream_ptr=-1) if through_a_view else x
    descriptor = cuda_tma.create_tensor_map(source, box_dim=(4, 4))
    other = torch.full((1024, 1024), 3.0, device="cuda")
    if repoint == "data":
        x.data = other
    elif repoint == "set_":
        x.set_(other)
    else:
        del x
    del source
    others = churn()
    assert first_element(reader, descriptor) == 7.0 and len(others) == 8
    assert descriptor.is_stale() is (repoint != "del")


def test_a_plain_cuda_core_view_is_kept_alive_too(reader):
    from cuda.core.utils import StridedMemoryView

    x = torch.full((1024, 1024), 7.0, device="cuda")
    descriptor = cuda_tma.create_tensor_map(StridedMemoryView.from_any_interface(x, stream_ptr=-1), box_dim=(4, 4))
    x.data = torch.full((1024, 1024), 3.0, device="cuda")
    others = churn()
    assert first_element(reader, descriptor) == 7.0 and len(others) == 8
    assert descriptor.is_stale()


def test_a_view_that_begins_inside_a_buffer(device, stream):
    from cuda.core.utils import StridedMemoryView

    buffer = device.allocate(64 * 64 * 4, stream=stream)
    whole = StridedMemoryView.from_buffer(buffer, (64, 64), dtype=np.dtype(np.float32))
    part = whole.view(whole._layout.sliced((slice(16, 32), slice(0, 64))))
    descriptor = cuda_tma.create_tensor_map(part, box_dim=(8, 8))
    assert descriptor.params.global_address == int(buffer.handle) + 16 * 64 * 4
    assert not descriptor.is_stale()


def test_a_tensor_that_holds_its_own_descriptor_can_be_collected(device):
    x = torch.zeros(1024, 1024, device="cuda")
    before = torch.cuda.memory_allocated()
    x.descriptor = cuda_tma.create_tensor_map(x, box_dim=(4, 4))
    del x
    gc.collect()
    assert torch.cuda.memory_allocated() == before - 4 * 1024 * 1024


def test_a_storage_resized_in_place(device):
    x = torch.full((1024, 1024), 7.0, device="cuda")
    descriptor = cuda_tma.create_tensor_map(x, box_dim=(4, 4))
    assert not descriptor.is_stale()
    x.untyped_storage().resize_(0)
    assert descriptor.is_stale()


def test_memory_is_freed_with_the_descriptor(device):
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    descriptor = cuda_tma.create_tensor_map(torch.zeros(1024, 1024, device="cuda"), box_dim=(4, 4))
    assert torch.cuda.memory_allocated() == before + 4 * 1024 * 1024
    del descriptor
    assert torch.cuda.memory_allocated() == before


def test_a_million_descriptors_leave_memory_flat(device):
    """Each descriptor takes at most 512 bytes in addition to the tensor's view."""
    view = cuda_tma.StridedMemoryView.from_any_interface(torch.zeros(64, 64, device="cuda"), stream_ptr=-1)
    options = cuda_tma.TensorMapOptions((4, 4))

    def cycle(count):
        for _ in range(count):
            cuda_tma.create_tensor_map(view, options)

    cycle(1000)
    on_device, on_host = torch.cuda.memory_allocated(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cycle(1_000_000)
    assert torch.cuda.memory_allocated() == on_device
    # The unit of ru_maxrss is KiB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - on_host < 256


def test_ten_thousand_cycles_leave_memory_flat(device):
    def cycle(count):
        for _ in range(count):
            descriptor = cuda_tma.create_tensor_map(torch.empty(64, 64, device="cuda"), box_dim=(4, 4))
            descriptor.replace_address(torch.empty(64, 64, device="cuda"))
            cuda_tma.StridedMemoryView.from_any_interface(descriptor.tensor, stream_ptr=-1).as_tensor_map((4, 4))

    # The test disables the garbage collector, because Python must free each object without it.
    gc.disable()
    try:
        cycle(2000)
        on_device, on_host = torch.cuda.memory_allocated(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        cycle(10_000)
    finally:
        gc.enable()
    assert torch.cuda.memory_allocated() == on_device
    # The unit of ru_maxrss is KiB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - on_host < 1024
