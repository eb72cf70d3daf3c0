"""Tests of TensorMapDescriptor.from_bytes, which reads external tensor maps."""

import ctypes
import dataclasses

import numpy as np
import pytest
from cuda.bindings.driver import CUtensorMap

import cuda_tma
from cuda_tma import (
    TensorMapDescriptor,
    TensorMapError,
)


def test_an_adopted_map_takes_its_own_tensor(driver, device_tensor):
    """An adopted map accepts a tensor with a different stride in a dimension of extent 1, because this stride has no
    effect."""
    tensor = device_tensor((4, 1, 64))
    params = cuda_tma.create_tensor_map(tensor, box_dim=(1, 1, 8)).params
    odd = dataclasses.replace(params, global_strides=(1024, params.global_strides[1]))
    adopted = TensorMapDescriptor.from_bytes(cuda_tma.encode(odd), tensor)
    adopted.replace_address(device_tensor((4, 1, 64), address=1 << 33))
    assert adopted.params.global_address == 1 << 33


def test_an_external_descriptor_is_adopted(driver, device_tensor):
    tensor = device_tensor((64, 128))
    made = cuda_tma.create_tensor_map(tensor, box_dim=(16, 32), swizzle="128B")
    adopted = TensorMapDescriptor.from_bytes(bytes(made), tensor)
    assert adopted == made and adopted.params == made.params and adopted.tensor is tensor
    assert adopted.context == driver.context and adopted.tx_bytes == 2048
    other = device_tensor((64, 128), address=1 << 33)
    adopted.replace_address(other)
    assert adopted == cuda_tma.create_tensor_map(other, box_dim=(16, 32), swizzle="128B")
    with pytest.raises(TensorMapError, match=r"shape is \(64, 64\)"):
        adopted.replace_address(device_tensor((64, 64)))
    assert TensorMapDescriptor.from_bytes(bytearray(bytes(made))).tensor is None
    assert repr(TensorMapDescriptor.from_bytes(bytes(made))) == repr(made)


def test_adoption_keeps_unexplained_bits(driver, device_tensor):
    raw = bytearray(bytes(cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))))
    raw[100] = 0x5A
    adopted = TensorMapDescriptor.from_bytes(raw)
    assert bytes(adopted) == raw and adopted.params.unexplained == ((25, 0x5A),)


def test_adoption_refuses_bytes_that_are_not_a_map(driver, device_tensor):
    made = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    with pytest.raises(TensorMapError, match="128 bytes, not 127"):
        TensorMapDescriptor.from_bytes(bytes(made)[:127])
    with pytest.raises(TensorMapError, match="begins at 0x100000000 and the tensor at 0x200000000"):
        TensorMapDescriptor.from_bytes(bytes(made), device_tensor((64, 128), address=1 << 33))
    illegal = dataclasses.replace(made.params, box_dim=(33, 16))
    with pytest.raises(TensorMapError, match="33"):
        TensorMapDescriptor.from_bytes(cuda_tma.encode(illegal))


def test_an_adopted_im2col_map_compares_tensors(driver, device_tensor):
    params = cuda_tma.Im2colParams(
        data_type=7,
        global_address=1 << 32,
        global_dim=(64, 8, 4),
        global_strides=(256, 2048),
        element_strides=(1, 1, 1),
        pixel_box_lower_corner=(0,),
        pixel_box_upper_corner=(0,),
        channels_per_pixel=32,
        pixels_per_column=8,
    )
    adopted = TensorMapDescriptor.from_bytes(cuda_tma.encode(params))
    assert adopted.params == params and "im2col, rank 3" in repr(adopted)
    with pytest.raises(TensorMapError, match=r"shape is \(4, 9, 64\), and the descriptor was made for \(4, 8, 64\)"):
        adopted.replace_address(device_tensor((4, 9, 64)))
    adopted.replace_address(device_tensor((4, 8, 64), address=1 << 33))
    assert adopted.params == dataclasses.replace(params, global_address=1 << 33)


def test_the_checked_bytes_are_kept(driver, device_tensor):
    """In the test, a subclass of bytes converts to other bytes. The function from_bytes() reads the 128 bytes once."""

    class Turncoat(bytes):
        def __bytes__(self):
            return b"short"

    made = bytes(cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32)))
    assert bytes(TensorMapDescriptor.from_bytes(Turncoat(made))) == made
    with pytest.raises(TensorMapError, match="128 bytes, not 127"):
        TensorMapDescriptor.from_bytes(Turncoat(made[:127]))


def test_every_kind_of_128_bytes(driver, device_tensor):
    made = bytes(cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32)))
    words = np.frombuffer(made, np.uint64)
    array = bytearray(made)
    for raw in (made, array, memoryview(made), memoryview(made).cast("I"), words, words.reshape(4, 4)):
        assert bytes(TensorMapDescriptor.from_bytes(raw)) == made
    adopted = TensorMapDescriptor.from_bytes(array)
    # A change of the array does not change the descriptor, which has a copy.
    array[:] = bytes(128)
    assert bytes(adopted) == made
    for raw, given in [(made + b"0", "129"), (words[:8], ""), (list(made), ""), (3, ""), (None, ""), ("text", "")]:
        with pytest.raises(TensorMapError, match=f"a tensor map has 128 bytes, not {given}"):
            TensorMapDescriptor.from_bytes(raw)


def test_a_map_of_cuda_bindings_is_adopted(driver, device_tensor):
    tensor = device_tensor((64, 128))
    made = cuda_tma.create_tensor_map(tensor, box_dim=(16, 16), swizzle="64B")
    native = CUtensorMap()
    ctypes.memmove(int(native.getPtr()), bytes(made), 128)
    adopted = TensorMapDescriptor.from_bytes(native, tensor)
    assert adopted == made and adopted.tensor is tensor and adopted.params == made.params
    with pytest.raises(TensorMapError, match="begins at 0x100000000 and the tensor at 0x200000000"):
        TensorMapDescriptor.from_bytes(native, device_tensor((64, 128), address=1 << 33))
    # No encoder has written the new CUtensorMap, whose bytes are 0.
    with pytest.raises(TensorMapError):
        TensorMapDescriptor.from_bytes(CUtensorMap())


def test_memory_that_the_device_cannot_read(driver, device_tensor):
    made = bytes(cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32)))
    with pytest.raises(TensorMapError, match="is on device 1 and the current device is 0"):
        TensorMapDescriptor.from_bytes(made, device_tensor((64, 128), device_id=1))
    with pytest.raises(TensorMapError, match="host memory"):
        TensorMapDescriptor.from_bytes(made, np.zeros((64, 128), np.float32))
    driver.context = 0
    with pytest.raises(TensorMapError, match="no CUDA context is current"):
        TensorMapDescriptor.from_bytes(made)


def test_the_rules_of_an_adopted_map_are_those_of_its_device(driver, device_tensor):
    """The swizzle mode 128B_ATOM_32B of an adopted map is legal from compute capability 10.0 on."""
    driver.context, driver.device, driver.compute_capability = 0xD2, 2, (10, 0)
    made = cuda_tma.create_tensor_map(
        device_tensor((64, 128), device_id=2), box_dim=(16, 32), swizzle="128B_ATOM_32B", l2_promotion="128B"
    )
    adopted = TensorMapDescriptor.from_bytes(bytes(made))
    assert adopted.context == 0xD2 and "device 2)" in repr(adopted) and adopted == made
    assert "float32 (64, 128)" in repr(adopted)
    with pytest.raises(TensorMapError, match="data_type=FLOAT32 has 32-bit elements and the tensor's are float64"):
        adopted.replace_address(device_tensor((64, 128), dtype="float64", device_id=2))
    driver.compute_capability = (9, 0)
    with pytest.raises(TensorMapError, match="0 to 3 before compute capability 10.0"):
        TensorMapDescriptor.from_bytes(bytes(made))


def test_adopted_bytes_hold_no_dtype(driver, device_tensor):
    """Maps of int8 and of uint8 have the same bytes, so an adopted map accepts tensors of both types."""
    made = cuda_tma.create_tensor_map(device_tensor((64, 128), dtype="int8"), box_dim=(16, 32))
    adopted = TensorMapDescriptor.from_bytes(bytes(made))
    assert "uint8 (64, 128)" in repr(adopted)
    for address, dtype in ((1 << 33, "uint8"), (1 << 34, "int8")):
        adopted.replace_address(device_tensor((64, 128), dtype=dtype, address=address))
        assert adopted.params.global_address == address


def test_an_adopted_map_of_32_byte_addresses(driver, device_tensor):
    options = cuda_tma.TensorMapOptions((1, 8, 8, 16), interleave="32B", swizzle="32B")
    made = cuda_tma.create_tensor_map(device_tensor((4, 16, 16, 16), dtype="uint16"), options)
    adopted = TensorMapDescriptor.from_bytes(bytes(made))
    with pytest.raises(TensorMapError, match="0x200000010 is not a multiple of 32 bytes.* lower one is 0x200000000"):
        adopted.replace_address((1 << 33) + 16)
    message = r"strides \(bytes, outermost first\) is \(16384, 512, 32\), .* made for \(8192, 512, 32\)"
    with pytest.raises(TensorMapError, match=message):
        adopted.replace_address(device_tensor((4, 16, 16, 16), (8192, 256, 16, 1), dtype="uint16"))
    adopted.replace_address((1 << 33) + 32)
    assert adopted.params == dataclasses.replace(made.params, global_address=(1 << 33) + 32)
