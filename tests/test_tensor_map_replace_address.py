"""Tests of the replacement of a descriptor's address, and of the memory that the descriptor keeps alive."""

import gc
import sys
import weakref

import numpy as np
import pytest

import cuda_tma
from cuda_tma import (
    TensorMapDescriptor,
    TensorMapError,
)
from tests.support.buffers import WRITABLE, asked, check_read_only_bytes

# ---- memory ----


def test_adopted_memory_outlives_the_tensor(driver):
    """In torch, the assignment ``x.data = ...`` replaces the storage of a tensor. Every function that makes a
    descriptor keeps the first storage."""
    torch = pytest.importorskip("torch")
    driver.pinned = ((0, 1 << 63),)

    def adopted(x):
        made = cuda_tma.create_tensor_map(x, box_dim=(16, 32))
        return TensorMapDescriptor.from_bytes(bytes(made), x)

    def replaced(x):
        made = cuda_tma.create_tensor_map(torch.zeros(64, 128), box_dim=(16, 32))
        made.replace_address(x)
        return made

    for make in (lambda x: cuda_tma.create_tensor_map(x, box_dim=(16, 32)), adopted, replaced):
        memory = np.zeros((64, 128), np.float32).view(Owner)
        reference = weakref.ref(memory)
        x = torch.from_numpy(memory)
        descriptor = make(x)
        assert descriptor.tensor is x and descriptor.is_stale() is False
        x.data = torch.zeros(1)
        del memory
        gc.collect()
        assert reference() is not None and descriptor.is_stale() is True
        # The new address does not belong to a tensor.
        descriptor.replace_address(1 << 40)
        gc.collect()
        assert reference() is None and descriptor.is_stale() is False


class Owner(np.ndarray):
    """An array that supports weak references."""


def test_a_replaced_tensor_is_queried(driver, device_tensor):
    first, second = device_tensor((64, 128)), device_tensor((64, 128), address=1 << 33)
    reference = weakref.ref(first)
    descriptor = cuda_tma.create_tensor_map(first, box_dim=(16, 32))
    descriptor.replace_address(second)
    del first
    gc.collect()
    assert reference() is None and descriptor.is_stale() is False and descriptor.tensor is second
    second.layout = (*second.layout[:3], 1 << 34)
    assert descriptor.is_stale() is True


def test_a_torch_descriptor_is_fresh_after_a_replacement(driver):
    torch = pytest.importorskip("torch")
    driver.pinned = ((0, 1 << 63),)
    descriptor = cuda_tma.create_tensor_map(torch.zeros(64, 128), box_dim=(16, 32))
    descriptor.replace_address(torch.zeros(64, 128))
    assert descriptor.is_stale() is False and descriptor.params.global_address == descriptor.tensor.data_ptr()


@pytest.mark.parametrize("kind", ["pinned", "managed", "allocated"])
def test_owner_of_the_memory(driver, device_tensor, kind):
    """The test uses tensors in pinned memory, in managed memory, and in managed memory that a library reports as memory
    of one device."""
    host = np.zeros((64, 128), np.float32)
    address = -(-host.ctypes.data // 16) * 16
    everything = (0, 1 << 63)
    setattr(driver, kind, {everything: 1} if kind == "allocated" else (everything,))
    elsewhere = device_tensor((64, 128), device_id=1)
    if kind == "managed":
        assert cuda_tma.create_tensor_map(elsewhere, box_dim=(16, 32)).params.global_address == 1 << 32
    else:
        with pytest.raises(TensorMapError, match="on device 1 and the current device is 0"):
            cuda_tma.create_tensor_map(elsewhere, box_dim=(16, 32))
    if host.ctypes.data == address:
        # NumPy reports host memory, but the driver reports the device, and the package uses the driver's result.
        if kind == "allocated":
            with pytest.raises(TensorMapError, match="on device 1 and the current device is 0"):
                cuda_tma.create_tensor_map(host, box_dim=(16, 32))
        else:
            assert cuda_tma.create_tensor_map(host, box_dim=(16, 32)).params.global_address == address


# ---- replacements, and failures ----


@pytest.mark.parametrize("value", ["int", "tensor"])
def test_a_map_is_changed_where_it_is_valid(driver, device_tensor, value):
    tensor, other = device_tensor((64, 128)), device_tensor((64, 128), address=1 << 33)
    descriptor = cuda_tma.create_tensor_map(tensor, box_dim=(16, 32))
    before = bytes(descriptor)
    driver.context, driver.devices = 0xBEEF, {0xC0DE: 0, 0xBEEF: 0}
    with pytest.raises(TensorMapError, match="made in context 0xc0de, and context 0xbeef is current, which does not"):
        descriptor.replace_address(other if value == "tensor" else 1 << 33)
    assert bytes(descriptor) == before and descriptor.tensor is tensor and driver.stack == []
    # A green context shares the memory of the primary context.
    driver.green = (0xC0DE, 0xBEEF)
    descriptor.replace_address(other if value == "tensor" else 1 << 33)
    assert descriptor.params.global_address == 1 << 33
    driver.context = 0
    with pytest.raises(TensorMapError, match="no CUDA context is current"):
        descriptor.replace_address(1 << 34)


@pytest.mark.parametrize("value", ["int", "tensor"])
@pytest.mark.parametrize("way", ["at once", "half done"])
def test_a_failed_replacement_is_undone(driver, device_tensor, value, way):
    tensor, other = device_tensor((64, 128)), device_tensor((64, 128), address=0x2_0000_4440)
    descriptor = cuda_tma.create_tensor_map(tensor, box_dim=(16, 32))
    before = bytes(descriptor)
    if way == "at once":
        driver.errors["cuTensorMapReplaceAddress"] = 700
    else:
        driver.half_replaced = 700
    with pytest.raises(Exception, match="cuTensorMapReplaceAddress failed with CUDA_ERROR_ILLEGAL_ADDRESS") as error:
        descriptor.replace_address(other if value == "tensor" else 0x2_0000_4440)
    assert type(error.value).__name__ == "CUDAError"
    assert bytes(descriptor) == before and descriptor.tensor is tensor and descriptor.is_stale() is False
    assert descriptor.params.global_address == 1 << 32


@pytest.mark.parametrize(
    ("call", "result", "message"),
    [
        ("cuTensorMapEncodeTiled", 201, "no CUDA context is current on this thread"),
        ("cuTensorMapEncodeTiled", 700, "encoder failed with CUDA_ERROR_ILLEGAL_ADDRESS, for any arguments"),
        ("cuTensorMapEncodeTiled", 2, "encoder failed with CUDA_ERROR_OUT_OF_MEMORY, for any arguments"),
        ("cuTensorMapSetAllocationClass", 700, "cuTensorMapSetAllocationClass failed with CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("cuCtxGetCurrent", 3, "no CUDA context is current on this thread"),
        ("cuCtxGetDevice", 700, "cuCtxGetDevice failed with CUDA_ERROR_ILLEGAL_ADDRESS"),
    ],
)
def test_errors_of_the_driver_are_reported(driver, device_tensor, call, result, message):
    # A new context requires a query of its device.
    driver.context = 0xFACE0 + len(call) + result
    driver.errors[call] = result
    with pytest.raises(Exception, match=message):
        cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    driver.errors.clear()
    assert cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32)).context == driver.context


def test_an_error_without_a_name(driver, device_tensor):
    driver.errors |= {"cuTensorMapEncodeTiled": 700, "cuGetErrorName": 1}
    with pytest.raises(TensorMapError, match="the driver's encoder failed with CUDA error 700"):
        cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))


def test_a_refusal_that_no_rule_explains(driver, device_tensor):
    """If no rule explains a refusal of the driver, the error contains the driver's arguments, including the allocation
    class."""
    driver.errors["cuTensorMapEncodeTiled"] = 1
    with pytest.raises(TensorMapError) as error:
        cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32), allocation_class="LARGE")
    assert error.value.violations == () and "float32" in str(error.value) and "(64, 128)" in str(error.value)


def test_rules_are_those_of_the_device(driver, device_tensor):
    """The error text for an adopted map follows the rules for the intended device's compute capability."""
    driver.context, driver.device, driver.compute_capability = 0xD3, 3, (9, 0)
    with pytest.raises(TensorMapError, match="swizzle is 4 .*0 to 3 before compute capability 10.0"):
        cuda_tma.create_tensor_map(device_tensor((64, 128), device_id=3), box_dim=(16, 32), swizzle="128B_ATOM_32B")
    assert [arguments[1:] for arguments in driver.called("cuDeviceGetAttribute")] == [(75, 3), (76, 3)]
    driver.compute_capability = (10, 0)
    descriptor = cuda_tma.create_tensor_map(
        device_tensor((64, 128), device_id=3), box_dim=(16, 32), swizzle="128B_ATOM_32B"
    )
    assert descriptor.params.swizzle == 4 and descriptor.params.rank == 2


def test_the_buffer_is_read_only(driver, device_tensor):
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    view = memoryview(descriptor)
    assert (view.format, view.shape, view.strides, view.itemsize, view.nbytes) == ("B", (128,), (1,), 1, 128)
    assert view.readonly and view.obj is descriptor and view.contiguous and view.ndim == 1
    assert np.frombuffer(descriptor, np.uint64)[0] == 1 << 32
    check_read_only_bytes(descriptor, descriptor.address, 128)
    with pytest.raises(BufferError, match="a TensorMapDescriptor is read-only; it has a method that replaces address"):
        asked(descriptor, WRITABLE)
    references = sys.getrefcount(descriptor)
    del view
    assert sys.getrefcount(descriptor) == references - 1
    descriptor.replace_address(1 << 33)
    assert bytes(memoryview(descriptor)) == bytes(descriptor)


@pytest.mark.parametrize(
    ("data_type", "bytes_needed"), [("16U4_ALIGN8B", 16), ("16U4_ALIGN16B", 32), ("16U6_ALIGN16B", 32), ("UINT8", 16)]
)
def test_alignment_of_an_address(driver, device_tensor, data_type, bytes_needed):
    """The alignment of an address is 32 bytes for types that are padded to 16 bytes (cuTensorMapEncodeTiled,
    globalAddress)."""
    driver.compute_capability = (10, 0)
    tensor = device_tensor((8, 192), dtype="uint8")
    descriptor = cuda_tma.create_tensor_map(tensor, box_dim=(4, 128), data_type=data_type)
    before = bytes(descriptor)
    if bytes_needed == 32:
        for address in ((1 << 33) + 16, device_tensor((8, 192), dtype="uint8", address=(1 << 33) + 16)):
            with pytest.raises(TensorMapError, match="0x200000010 is not a multiple of 32 bytes"):
                descriptor.replace_address(address)
        assert bytes(descriptor) == before
    descriptor.replace_address((1 << 33) + bytes_needed)
    assert descriptor.params.global_address == (1 << 33) + bytes_needed
