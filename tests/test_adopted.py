"""Tensor maps made elsewhere: TensorMapDescriptor.from_bytes."""

import dataclasses

import pytest

import cuda_tma
from cuda_tma import (
    TensorMapDescriptor,
    TensorMapError,
)


def test_an_adopted_map_takes_its_own_tensor(driver, device_tensor):
    """Whatever stride it has where no step is made."""
    tensor = device_tensor((4, 1, 64))
    params = cuda_tma.create_tensor_map(tensor, box_dim=(1, 1, 8)).params
    odd = dataclasses.replace(params, global_strides=(1024, params.global_strides[1]))
    adopted = TensorMapDescriptor.from_bytes(cuda_tma.encode(odd), tensor)
    adopted.replace_address(device_tensor((4, 1, 64), address=1 << 33))
    assert adopted.params.global_address == 1 << 33


def test_a_descriptor_made_elsewhere_is_adopted(driver, device_tensor):
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


def test_adoption_keeps_bits_that_nobody_explains(driver, device_tensor):
    raw = bytearray(bytes(cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))))
    raw[100] = 0x5A
    adopted = TensorMapDescriptor.from_bytes(raw)
    assert bytes(adopted) == raw and adopted.params.unexplained == ((25, 0x5A),)


def test_adoption_refuses_what_is_no_map(driver, device_tensor):
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
