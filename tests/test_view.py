"""StridedMemoryView: cuda.core's constructors, streams, and views of views."""

import numpy as np
import pytest
from cuda.core.utils import StridedMemoryView as CoreView

import cuda_tma
from cuda_tma import StridedMemoryView, TensorMapError

HOST = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)


def test_streams_are_ordered_as_cuda_core_orders_them(driver, device_tensor):
    """0 is the legacy default stream, which DLPack calls None."""
    for stream_ptr in (0, 1, 0x70):
        asked = []
        for view_type in (StridedMemoryView, CoreView):
            tensor = device_tensor((64, 128))
            view_type.from_dlpack(tensor, stream_ptr)
            asked.append(tensor.asked[-1][0])
        assert asked == [stream_ptr or None] * 2
    unordered = device_tensor((64, 128))
    StridedMemoryView.from_dlpack(unordered, -1)
    assert [stream for stream, _ in unordered.asked] == [-1]


def test_a_failing_constructor_changes_nothing(driver, device_tensor):
    view = StridedMemoryView.from_any_interface(device_tensor((64, 128)), stream_ptr=-1)
    with pytest.warns(DeprecationWarning), pytest.raises(BufferError, match="ambiguous"):
        view.__init__(device_tensor((32, 256), address=1 << 33))
    assert view.as_tensor_map((8, 8)).params.global_address == view.ptr == 1 << 32


@pytest.mark.parametrize("view_type", [StridedMemoryView, CoreView])
def test_a_view_of_a_view_follows_the_tensor(driver, device_tensor, view_type):
    tensor = device_tensor((64, 128))
    inner = StridedMemoryView.from_any_interface(tensor, stream_ptr=-1)
    outer = view_type.from_any_interface(inner, stream_ptr=-1)
    descriptor = cuda_tma.create_tensor_map(outer, box_dim=(8, 8))
    assert descriptor.tensor is tensor and not descriptor.is_stale()
    tensor.layout = (*tensor.layout[:3], 1 << 33)
    assert descriptor.is_stale()


def test_no_buffer_holds_a_flipped_tensor(driver):
    with pytest.raises(TensorMapError, match=r"strides \(-64, 1\): a Buffer begins at the first element; pass a copy"):
        StridedMemoryView.from_any_interface(HOST[::-1], stream_ptr=-1).view()


def test_an_empty_tensor_is_named_so(driver):
    """NumPy's has strides of 0."""
    with pytest.raises(TensorMapError, match=r"dimension 0 of shape \(0, 128\) has extent 0"):
        cuda_tma.create_tensor_map(np.zeros((0, 128), np.float32), box_dim=(8, 8))
