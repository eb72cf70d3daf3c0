"""Tests of StridedMemoryView, with cuda.core's constructors, with streams, and with views of views."""

from types import SimpleNamespace

import numpy as np
import pytest
from cuda.core.utils import StridedMemoryView as CoreView

import cuda_tma
from cuda_tma import StridedMemoryView, TensorMapError
from cuda_tma._read.dlpack import describe_tensor
from cuda_tma._read.export import export_located

HOST = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)


def test_streams_are_ordered_as_cuda_core_orders_them(driver, device_tensor):
    """In cuda.core, the stream 0 is the legacy default stream, which is None in DLPack."""
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
    """The error for an empty tensor contains the dimension of extent 0, although an empty array of NumPy has strides of
    0."""
    with pytest.raises(TensorMapError, match=r"dimension 0 of shape \(0, 128\) has extent 0"):
        cuda_tma.create_tensor_map(np.zeros((0, 128), np.float32), box_dim=(8, 8))


# ---- calls of cuda.core that need a driver ----


def shown_as(**attributes):
    """Return a class of views for which cuda.core reports given attributes."""
    core_view = type("Shown", (CoreView,), attributes)
    return type("View", (StridedMemoryView, core_view), {})


# Each row contains a shape, the strides of cuda.core, the resulting strides, and the number of spanned elements.
LAYOUTS = [
    ((64, 128), None, (128, 1), 64 * 128), ((16, 8), (512, 2), (512, 2), 15 * 512 + 7 * 2 + 1),
    ((0, 8), (8, 1), (8, 1), 0), ((), (), (), 1), ((3, 4), (0, 1), (0, 1), 4),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "strides", "then", "span"), LAYOUTS)
def test_a_view_of_another_dtype_or_layout_spans_its_elements(
    driver, device_tensor, monkeypatch, shape, strides, then, span
):
    """The Buffer of a view spans the view's elements from the first to the last, and keeps the exporter alive."""
    asked = []

    def from_handle(*arguments, **keywords):
        asked.append((arguments, keywords))
        return "the buffer"

    def from_buffer(cls, *arguments, **keywords):
        asked.append((cls, arguments, keywords))
        return "the view"

    def view(self, layout=None, dtype=None):
        asked.append((layout, dtype))
        return SimpleNamespace(
            shape=shape, strides=strides, ptr=0x1230, _layout=SimpleNamespace(itemsize=8), dtype="its dtype",
            readonly="its flag", exporting_obj="its owner",
        )  # fmt: skip

    monkeypatch.setattr(cuda_tma._view, "Buffer", SimpleNamespace(from_handle=from_handle))
    view_type = shown_as(view=view, from_buffer=classmethod(from_buffer))
    made = view_type.from_dlpack(device_tensor((64, 128)), stream_ptr=-1).view("a layout", "a dtype")
    assert made == "the view" and asked == [
        ("a layout", "a dtype"), ((0x1230, 8 * span), {"owner": "its owner"}),
        (view_type, ("the buffer", shape, then), {"itemsize": 8, "dtype": "its dtype", "is_readonly": "its flag"}),
    ]  # fmt: skip


def without_export(view):
    """Return a view of a Buffer whose fields do not come from DLPack, but from the view itself."""
    del view._exported
    return view


def test_a_view_describes_itself(driver, device_tensor):
    driver.allocated = {(1 << 32, 1 << 33): 0}
    tensor = device_tensor((64, 128), (256, 1), "int16")
    view = without_export(StridedMemoryView.from_dlpack(tensor, stream_ptr=-1))
    descriptor = view.as_tensor_map((8, 16))
    params = descriptor.params
    assert (params.global_dim, params.global_strides, params.global_address) == ((128, 64), (512,), 1 << 32)
    assert (params.box_dim, params.data_type) == ((16, 8), cuda_tma.TensorMapDataType.UINT16)
    assert descriptor.tensor is tensor and view.dlpack_dtype == (0, 16, 1)
    tensor.layout = (*tensor.layout[:3], 1 << 33)
    assert descriptor.is_stale()


def test_a_view_without_an_export_describes_itself(driver, device_tensor):
    driver.allocated = {(1 << 32, 1 << 33): 0}
    view = StridedMemoryView.from_dlpack(device_tensor((64, 128)), stream_ptr=-1)
    before = view.as_tensor_map((8, 16))
    view._exported = None
    assert view.as_tensor_map((8, 16)) == before
    assert (view._exported.shape, view._exported.dtype_name) == ((64, 128), "float32")


@pytest.mark.parametrize(("dtype", "shown"), [(">f4", ">f4"), (">i2", ">i2")])
def test_a_view_of_foreign_byte_order(driver, device_tensor, dtype, shown):
    view = without_export(shown_as(dtype=np.dtype(dtype)).from_dlpack(device_tensor((64, 128)), stream_ptr=-1))
    with pytest.raises(TensorMapError, match=f"the view's dtype {shown} is not in native byte order, which TMA needs"):
        view.as_tensor_map((8, 8))


def test_a_view_without_a_dtype(driver, device_tensor):
    driver.allocated = {(1 << 32, 1 << 33): 0}
    tensor = device_tensor((64, 128), dtype="float64")
    view = without_export(shown_as(dtype=None).from_dlpack(tensor, stream_ptr=-1))
    with pytest.raises(TensorMapError, match=r"untyped \(8-byte elements\).*pass data_type="):
        view.as_tensor_map((8, 8))
    descriptor = view.as_tensor_map((8, 8), data_type="float64")
    assert descriptor.params.data_type == cuda_tma.TensorMapDataType.FLOAT64
    assert view.dlpack_dtype == (3, 64, 1)


def test_viewed_memory(driver, device_tensor):
    tensor = device_tensor((64, 128), dtype="int32")
    with pytest.warns(DeprecationWarning):
        constructed = StridedMemoryView(tensor, -1)
    for view in (
        StridedMemoryView.from_dlpack(tensor, stream_ptr=-1), StridedMemoryView.from_any_interface(tensor, -1),
        constructed,
    ):  # fmt: skip
        assert view.exporting_obj is tensor and type(view) is StridedMemoryView
        assert (view.dtype, view.dlpack_dtype) == (np.dtype("int32"), (0, 32, 1))
        assert (view.shape, view.ptr, view.device_id) == ((64, 128), 1 << 32, 0)
    plain = shown_as(exporting_obj="a Buffer", dtype=np.dtype("int8")).from_dlpack(tensor, stream_ptr=-1)
    assert (plain.exporting_obj, plain.dtype) == ("a Buffer", np.dtype("int8"))


def test_cuda_arrays_go_to_cuda_core_and_torch_by_dlpack(driver, device_tensor, monkeypatch):
    asked = []

    class Array:
        # cuda.core reads the attribute __cuda_array_interface__.
        __cuda_array_interface__ = None

    class Torch(Array, device_tensor):
        def untyped_storage(self):
            raise NotImplementedError

    def from_cuda_array_interface(cls, obj, stream_ptr=None):
        asked.append((cls, obj, stream_ptr))

    core_view = type("Core", (CoreView,), {"from_cuda_array_interface": classmethod(from_cuda_array_interface)})
    view_type = type("View", (StridedMemoryView, core_view), {})
    array, torch_like = Array(), Torch((4,), dtype="bfloat16")
    view_type.from_cuda_array_interface(array, -1)
    assert asked == [(view_type, array, -1)]
    view = view_type.from_cuda_array_interface(torch_like, -1)
    assert view.dlpack_dtype == (4, 16, 1) and torch_like.asked and len(asked) == 1


def test_a_view_of_nothing(driver):
    with pytest.raises(Exception, match="does not support any data exchange protocol"):
        StridedMemoryView(object(), -1).as_tensor_map((8, 8))


def test_the_device_of_unlabeled_memory_is_queried(driver):
    """Memory for which the driver reports no device belongs to the host."""
    driver.allocated = {(1 << 32, 1 << 33): 3}
    driver.pinned, driver.managed = ((1 << 33, 1 << 34),), ((1 << 34, 1 << 35),)
    found = [export_located(describe_tensor((4,), address=1 << n)).dlpack_device for n in (32, 33, 34, 40)]
    assert found[0] == (2, 3) and [device_type for device_type, _ in found[1:]] == [3, 13, 1] and found[3][1] == 0
    driver.errors["cuPointerGetAttribute"] = 700
    with pytest.raises(Exception, match="cuPointerGetAttribute failed with CUDA_ERROR_ILLEGAL_ADDRESS"):
        export_located(describe_tensor((4,), address=1 << 32))


def test_a_tensor_without_a_known_address_is_not_stale(driver, device_tensor):
    driver.allocated = {(1 << 32, 1 << 33): 0}
    view = without_export(shown_as(exporting_obj="no tensor").from_dlpack(device_tensor((64, 128)), stream_ptr=-1))
    descriptor = view.as_tensor_map((8, 8))
    assert (descriptor.is_stale(), descriptor.params.global_address) == (False, 1 << 32)
