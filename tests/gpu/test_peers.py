"""Tests of mistakes that this package refuses with a reason. cuda.core 1.2 accepts them, or refuses them without a
reason."""

import numpy as np
import pytest
from cuda import core

import cuda_tma
from cuda_tma import TensorMapError

torch = pytest.importorskip("torch")

CoreView = core.utils.StridedMemoryView
View = cuda_tma.StridedMemoryView


def both(tensor):
    return CoreView.from_any_interface(tensor, stream_ptr=-1), View.from_any_interface(tensor, stream_ptr=-1)


def test_a_strided_innermost_dimension(device):
    theirs, ours = both(torch.zeros(64, 128, device="cuda")[:, ::2])
    # cuda.core accepts a slice of every second column, and the copy also loads the skipped columns.
    theirs.as_tensor_map((16, 32))
    with pytest.raises(TensorMapError, match=r"dimension 1, the innermost, has stride 2 .*contiguous\(\)"):
        ours.as_tensor_map((16, 32))


def test_a_transposed_matrix(device):
    _, ours = both(torch.zeros(64, 128, device="cuda").T)
    with pytest.raises(TensorMapError, match=r"Dimension 0 is contiguous: pass tensor.permute\(1, 0\)"):
        ours.as_tensor_map((16, 32))


def test_replacing_the_address_by_another_shape_and_dtype(device):
    theirs, ours = both(torch.zeros(256, 256, device="cuda"))
    other = torch.zeros(16, dtype=torch.float64, device="cuda")
    theirs.as_tensor_map((16, 32)).replace_address(other)
    descriptor = ours.as_tensor_map((16, 32))
    before = bytes(descriptor), descriptor.params, descriptor.tensor
    with pytest.raises(TensorMapError, match="dtype is int32, and the descriptor was made for float32"):
        descriptor.replace_address(torch.zeros(256, 256, dtype=torch.int32, device="cuda"))
    with pytest.raises(TensorMapError, match="dtype is float64, and the descriptor was made for float32"):
        descriptor.replace_address(other)
    with pytest.raises(TensorMapError, match=r"shape is \(16,\), and the descriptor was made for \(256, 256\)"):
        descriptor.replace_address(torch.zeros(16, device="cuda"))
    with pytest.raises(TensorMapError, match=r"shape is \(256, 128\)"):
        descriptor.replace_address(torch.zeros(256, 128, device="cuda"))
    with pytest.raises(TensorMapError, match=r"strides .* is \(2048,\), .* \(1024,\)"):
        descriptor.replace_address(torch.zeros(256, 512, device="cuda")[:, :256])
    with pytest.raises(TensorMapError, match="host memory"):
        descriptor.replace_address(torch.zeros(256, 256))
    with pytest.raises(TensorMapError, match="multiple of 16 bytes"):
        descriptor.replace_address(descriptor.params.global_address + 4)
    for address in (-16, 0, 2**64):
        with pytest.raises(TensorMapError, match="not a 64-bit address"):
            descriptor.replace_address(address)
    assert (bytes(descriptor), descriptor.params, descriptor.tensor) == before


def test_replacing_the_address(device):
    x, y = torch.zeros(2, 64, 128, device="cuda")
    descriptor = cuda_tma.create_tensor_map(x, box_dim=(16, 32))
    descriptor.replace_address(y)
    assert descriptor == cuda_tma.create_tensor_map(y, box_dim=(16, 32))
    assert descriptor.tensor is y
    descriptor.replace_address(x.data_ptr())
    assert descriptor == cuda_tma.create_tensor_map(x, box_dim=(16, 32))
    assert descriptor.tensor is None and descriptor.params.global_address == x.data_ptr()


def test_a_uint8_override_on_float32(device):
    theirs, ours = both(torch.zeros(64, 128, device="cuda"))
    # cuda.core accepts a quarter of each row, with the wrong stride.
    theirs.as_tensor_map((16, 32), data_type=np.uint8)
    with pytest.raises(TensorMapError, match="UINT8 has 8-bit elements and the tensor's are float32, 32 bits"):
        ours.as_tensor_map((16, 32), data_type=np.uint8)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float4_e2m1fn_x2"])
def test_narrow_floats(device, dtype):
    x = torch.zeros(64, 128, dtype=torch.uint8, device="cuda").view(getattr(torch, dtype))
    with pytest.raises(Exception, match="Unsupported"):
        CoreView.from_any_interface(x, stream_ptr=-1)
    ours = View.from_any_interface(x, stream_ptr=-1)
    assert ours.as_tensor_map((16, 32), data_type="UINT8").params.global_dim == (128, 64)
    if dtype == "float4_e2m1fn_x2":
        with pytest.raises(TensorMapError, match="16U4_ALIGN8B.*16U4_ALIGN16B"):
            ours.as_tensor_map((16, 32))


def test_a_broken_rule_is_named(device):
    theirs, ours = both(torch.zeros(64, 1733, device="cuda"))
    with pytest.raises(Exception) as bare:
        theirs.as_tensor_map((16, 300), swizzle=_core_128b())
    assert "1733" not in str(bare.value)
    with pytest.raises(TensorMapError) as explained:
        ours.as_tensor_map((16, 300), swizzle="128B")
    message = str(explained.value)
    # The message contains the wrong stride and the legal stride.
    assert "6932 bytes" in message and "1733" in message and "1736" in message
    # The message contains the box and its limit.
    assert "300" in message and "256" in message
    assert len(explained.value.violations) >= 2


def _core_128b():
    from cuda.core._tensor_map import TensorMapSwizzle

    return TensorMapSwizzle.SWIZZLE_128B


def test_conjugate_and_negative_views(device):
    z = torch.zeros(8, 8, dtype=torch.complex64, device="cuda")
    with pytest.raises(TensorMapError, match=r"conjugate bit.*resolve_conj\(\)"):
        cuda_tma.create_tensor_map(z.conj(), box_dim=(4, 4))
    with pytest.raises(TensorMapError, match=r"negative bit.*resolve_neg\(\)"):
        cuda_tma.create_tensor_map(z.conj().imag, box_dim=(4, 4))
    with pytest.raises(TensorMapError, match="negative bit"):
        cuda_tma.create_tensor_map(torch._neg_view(torch.zeros(8, 8, device="cuda")), box_dim=(4, 4))
    for make in (core.utils.StridedMemoryView, cuda_tma.StridedMemoryView):
        with pytest.raises(TensorMapError, match="negative bit"):
            cuda_tma.create_tensor_map(make.from_dlpack(z.conj().imag, stream_ptr=-1), box_dim=(4, 4))


def test_a_tensor_without_memory(device):
    x = torch.zeros(64, 128, device="cuda")
    x.untyped_storage().resize_(0)
    with pytest.raises(TensorMapError, match=r"address 0"):
        cuda_tma.create_tensor_map(x, box_dim=(4, 4))
