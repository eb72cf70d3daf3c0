"""Tests of views of torch's tensors that cuda.core fills without DLPack. The views equal the views that DLPack
fills."""

import ctypes
import gc
import subprocess
import sys
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from cuda.core.utils import StridedMemoryView as CoreView

import cuda_tma
from cuda_tma import StridedMemoryView, TensorMapError
from cuda_tma._cuda import core
from cuda_tma._read import export
from cuda_tma._read.export import describe_torch_view, export_tensor

torch = pytest.importorskip("torch")


class Reader:
    """A stand-in for cuda.core's reader of torch's tensors, which records the tensors."""

    def __init__(self):
        # cuda.core also loads the library with RTLD_GLOBAL to find the symbols of torch.
        ctypes.CDLL(torch._C.__file__, mode=ctypes.RTLD_GLOBAL)
        self.read = pytest.importorskip("cuda.core._tensor_bridge").view_as_torch_tensor
        self.given = []

    def __call__(self, tensor, stream, view):
        self.given.append((tensor, stream))
        return self.read(tensor, stream, view)


@pytest.fixture
def reader(driver):
    driver.pinned = ((1, 1 << 63),)
    reader = Reader()
    before = export.set_torch_reader(reader)
    yield reader
    assert export.set_torch_reader(before) is reader


def by_dlpack(tensor):
    before = export.set_torch_reader(False)
    try:
        return StridedMemoryView.from_any_interface(tensor, stream_ptr=-1)
    finally:
        export.set_torch_reader(before)


def shown(view):
    return {
        **{name: getattr(view, name) for name in ("ptr", "shape", "strides", "dtype", "device_id", "dlpack_dtype")},
        **{name: getattr(view, name) for name in ("is_device_accessible", "readonly")},
        "export": [
            getattr(export_tensor(view), name) for name in ("data_pointer", "shape", "strides", "dlpack_device")
        ],
    }


BY_CORE = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16),
    *(torch.float32, torch.float64, torch.complex64, torch.complex128),
)
BY_DLPACK = (torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2, torch.complex32)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("constructor", ["from_any_interface", "from_dlpack"])
@pytest.mark.parametrize("dtype", [*BY_CORE, *BY_DLPACK], ids=str)
def test_it_shows_the_same_as_the_view_by_dlpack(reader, dtype, constructor):
    tensor = torch.zeros(8, 32).to(dtype)
    tensors = [tensor, tensor[2:, :16], tensor.T, tensor[:, 1], tensor.flatten()[:1], torch.zeros((), dtype=dtype)]
    for each in tensors:
        view = getattr(StridedMemoryView, constructor)(each, stream_ptr=-1)
        assert type(view) is StridedMemoryView and view.exporting_obj is each
        assert export_tensor(view).source is each and export_tensor(view) is export_tensor(view)
        # The dtype complex32 has no name in this version of cuda.core.
        if dtype is not torch.complex32:
            assert shown(view) == shown(by_dlpack(each))
            assert export_tensor(view).dtype_name == str(dtype).removeprefix("torch.")
    assert [stream for _, stream in reader.given] == ([-1] * len(tensors) if dtype in BY_CORE else [])


WITHOUT_ML_DTYPES = """
import sys, torch
sys.modules["ml_dtypes"] = None
from cuda_tma import StridedMemoryView
from cuda_tma._read.export import set_torch_reader
given = []
set_torch_reader(lambda tensor, stream, view: given.append(tensor.dtype))
views = [StridedMemoryView.from_any_interface(torch.zeros(4, dtype=getattr(torch, name)), -1) for name in sys.argv[1:]]
print(views[0].dtype, *given)
"""


def test_without_ml_dtypes_bfloat16_goes_by_dlpack():
    """Without ml_dtypes, cuda.core has no dtype for bfloat16, and this package uses uint16."""
    names = ("bfloat16", "float16")
    done = subprocess.run([sys.executable, "-c", WITHOUT_ML_DTYPES, *names], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("uint16 torch.float16\n", "")


def test_a_stream_is_ordered_by_dlpack(reader):
    tensor = torch.zeros(4)
    for constructor in (StridedMemoryView.from_any_interface, StridedMemoryView.from_dlpack):
        assert constructor(tensor, 0).ptr == tensor.data_ptr()
        with pytest.raises(AssertionError, match="stream should be None on cpu"):
            constructor(tensor, 1)
    with pytest.raises(BufferError, match="ambiguous"):
        StridedMemoryView.from_dlpack(tensor)
    assert reader.given == []


def test_lazy_views_and_tensors_without_memory_are_refused(reader):
    conjugate = torch.ones(16, 16, dtype=torch.complex64).conj()
    for tensor, message in (
        (torch._neg_view(torch.ones(4)), "its negative bit set"), (conjugate, "its conjugate bit set"),
        (conjugate.imag, "its negative bit set"), (torch.eye(4).to_sparse(), r"to_dense\(\)$"),
        (torch.ones(4, device="meta"), "Pass a tensor with memory$"),
    ):  # fmt: skip
        for constructor in (StridedMemoryView.from_any_interface, StridedMemoryView.from_dlpack):
            with pytest.raises(TensorMapError, match=message):
                constructor(tensor, -1)
    assert reader.given == []


def test_the_storage_is_kept(reader):
    """In torch, the assignment ``x.data = y`` replaces the storage of a tensor. A view of the tensor and a tensor map
    of the view keep the first storage."""

    class Array(np.ndarray):
        """An array that supports weak references, unlike NumPy's arrays."""

    array = np.zeros((16, 16), np.float32).view(Array)
    gone, address = weakref.ref(array), array.ctypes.data
    tensor = torch.from_numpy(array)
    view = StridedMemoryView.from_any_interface(tensor, stream_ptr=-1)
    del array
    tensor.data = torch.zeros(8, 8, dtype=torch.int8)
    gc.collect()
    assert gone() is not None and len(reader.given) == 1
    descriptor = view.as_tensor_map((8, 8))
    assert (descriptor.params.global_address, descriptor.params.global_dim) == (address, (16, 16))
    assert (view.dtype, view.shape, descriptor.tensor, descriptor.is_stale()) == (np.float32, (16, 16), tensor, True)
    del view
    gc.collect()
    assert gone() is not None
    del descriptor
    gc.collect()
    assert gone() is None


def test_a_view_of_another_dtype_keeps_the_storage(reader, monkeypatch):
    asked = []
    monkeypatch.setattr(cuda_tma._view, "Buffer", SimpleNamespace(from_handle=lambda *_, owner: asked.append(owner)))
    viewed = SimpleNamespace(
        shape=(4,), strides=None, ptr=16, _layout=SimpleNamespace(itemsize=4), dtype="", readonly=False
    )
    core_view = type("Core", (CoreView,), {"view": lambda *_: viewed, "from_buffer": classmethod(lambda *_, **__: 0)})
    tensor = torch.zeros(4)
    view = type("View", (StridedMemoryView, core_view), {}).from_any_interface(tensor, stream_ptr=-1)
    view.view()
    assert asked == [export_tensor(view)] and asked[0].source is tensor and len(reader.given) == 1


def test_a_tensor_that_has_its_view_is_collected(reader):
    tensor = torch.zeros(4)
    gone = weakref.ref(tensor)
    tensor.view_of_it = StridedMemoryView.from_any_interface(tensor, stream_ptr=-1)
    assert export_tensor(tensor.view_of_it).source is tensor and reader.given.pop()[0] is tensor
    del tensor
    gc.collect()
    assert gone() is None


def test_memory_of_a_gpu_is_its_own():
    view = SimpleNamespace(
        ptr=1 << 32, is_device_accessible=True, device_id=3, shape=(4, 8), strides=None,
        exporting_obj="a tensor", _storage="its storage",
    )  # fmt: skip
    exported = describe_torch_view(view, np.dtype("int16"))
    assert (exported.dlpack_device, exported.dtype_name, exported.source) == ((2, 3), "int16", "a tensor")
    assert (exported.data_pointer, exported.shape, exported.strides) == (1 << 32, (4, 8), (8, 1))


def test_torch_that_cuda_core_does_not_read(reader, monkeypatch):
    """The package looks up cuda.core's reader once, with the first tensor. Without a reader, the package uses
    DLPack."""
    asked = []
    monkeypatch.setattr(export, "torch_reader", asked.append)
    export.set_torch_reader(None)
    tensors = torch.zeros(4), torch.ones(4)
    views = [StridedMemoryView.from_any_interface(tensor, stream_ptr=-1) for tensor in tensors]
    assert asked == [tensors[0]] and [view.exporting_obj for view in views] == list(tensors)
    assert export.set_torch_reader(reader) is False and reader.given == []
    monkeypatch.setattr(export, "torch_reader", lambda _: reader)
    export.set_torch_reader(None)
    StridedMemoryView.from_any_interface(tensors[1], stream_ptr=-1)
    assert reader.given == [(tensors[1], -1)]


def test_the_reader_is_that_of_cuda_core(monkeypatch):
    asked = []
    monkeypatch.setattr(
        core, "StridedMemoryView", SimpleNamespace(from_any_interface=lambda *a, **k: asked.append((a, k)))
    )
    monkeypatch.setitem(core.sys.modules, "cuda.core._tensor_bridge", SimpleNamespace(view_as_torch_tensor="a reader"))
    assert core.torch_reader("a tensor") == "a reader" and asked == [(("a tensor",), {"stream_ptr": -1})]
    monkeypatch.delitem(core.sys.modules, "cuda.core._tensor_bridge")
    # The package ignores a failure of cuda.core.
    monkeypatch.setattr(core, "StridedMemoryView", None)
    assert core.torch_reader("a tensor") is None
