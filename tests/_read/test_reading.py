"""Tests that the package reads tensors of every library and protocol without a copy, or refuses them."""

import ctypes
import pickle
import sys
import types

import numpy as np
import pytest

import cuda_tma
from cuda_tma import (
    TensorMapError,
    TensorMapOptions,
)
from cuda_tma._make.encode import tiled_params
from cuda_tma._read.dlpack import describe_tensor
from cuda_tma._read.export import export_tensor


def test_pinned_host_memory_is_legal(driver):
    array = np.zeros((65, 128), np.float32)
    start = -(-array.ctypes.data // 64) * 64 - array.ctypes.data
    aligned = array.view(np.uint8).reshape(-1)[start : start + 64 * 512].view(np.float32).reshape(64, 128)
    driver.pinned = ((array.ctypes.data, array.ctypes.data + array.nbytes),)
    assert cuda_tma.create_tensor_map(aligned, box_dim=(16, 32)).params.global_address == aligned.ctypes.data


def test_a_tensor_without_memory_is_refused(driver, device_tensor):
    with pytest.raises(TensorMapError, match=r"no memory of its own \(address 0\)"):
        cuda_tma.create_tensor_map(device_tensor((64, 128), address=0), box_dim=(16, 32))


def test_a_copy_is_refused(driver, device_tensor):
    class Copier(device_tensor):
        def __dlpack__(self, **keywords):
            capsule = super().__dlpack__(**keywords)
            get = ctypes.pythonapi.PyCapsule_GetPointer
            get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
            # The bit with the value 2 is the flag IS_COPIED of DLPack.
            ctypes.c_uint64.from_address(get(capsule, b"dltensor_versioned") + 24).value |= 2
            return capsule

    with pytest.raises(TensorMapError, match="exports a copy of itself"):
        cuda_tma.create_tensor_map(Copier((64, 128)), box_dim=(16, 32))


def test_a_cupy_array_is_read_off_its_attributes(driver, monkeypatch):
    """The test's fake array has CuPy's attributes. The package calls __dlpack__ only for facts that the attributes
    lack."""
    cupy = types.ModuleType("cupy")

    class ndarray:
        def __init__(self, array):
            self.shape, self.strides, self.dtype = array.shape, array.strides, array.dtype
            self.data = types.SimpleNamespace(ptr=1 << 32, device_id=0)

        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, **_):
            raise AssertionError("__dlpack__ was asked")

    cupy.ndarray = ndarray
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    host = np.zeros((64, 2, 128), np.float16)
    for array in (host[:, 0], host, host[::2, 1, 8:]):
        descriptor = cuda_tma.create_tensor_map(ndarray(array), box_dim=(8,) * array.ndim)
        assert descriptor.params.global_dim == array.shape[::-1]
        assert descriptor.params.global_strides == array.strides[-2::-1]
        assert descriptor.params.data_type == cuda_tma.TensorMapDataType.FLOAT16
        assert not descriptor.is_stale() and isinstance(descriptor.tensor, ndarray)
        descriptor.tensor.data.ptr += 16
        assert descriptor.is_stale()
    for array in (np.zeros((4,) * 6), np.zeros((4, 4), ">f4"), np.zeros((8, 8), "f4,u2")["f0"]):
        with pytest.raises(AssertionError, match="__dlpack__ was asked"):
            cuda_tma.create_tensor_map(ndarray(array), box_dim=(4, 4))


def test_a_half_imported_library_is_ignored(driver, device_tensor, monkeypatch):
    for stand_in in (types.ModuleType("cupy"), types.SimpleNamespace(ndarray=3)):
        monkeypatch.setitem(sys.modules, "cupy", stand_in)
        # The package has not cached a reader for a new type of tensor.
        tensor = type("Tensor", (device_tensor,), {})((64, 128))
        assert cuda_tma.create_tensor_map(tensor, box_dim=(16, 32)).tensor is tensor


# In torch, the imaginary part of a conjugated tensor is a negative view.
NEGATIVE = {
    "itself": lambda torch, x: x,
    "transposed": lambda torch, x: x.t(),
    "detached": lambda torch, x: x.detach(),
    "data": lambda torch, x: x.data,
    "a parameter": lambda torch, x: torch.nn.Parameter(x),
    "pickled": lambda torch, x: pickle.loads(pickle.dumps(x)),
    "one column": lambda torch, x: x[:, :1],
    "flat": lambda torch, x: x.reshape(-1),
    "of another rank": lambda torch, x: x.reshape(8, 8, 128),
    "with a last dimension": lambda torch, x: x.unsqueeze(-1),
    "expanded": lambda torch, x: x.unsqueeze(-1).expand(64, 128, 3),
    "unfolded": lambda torch, x: x.unfold(1, 3, 1),
    "diagonal": lambda torch, x: x.diagonal(),
    "strided at will": lambda torch, x: x.as_strided((64, 128), (128, 1)),
    "private": lambda torch, x: torch._neg_view(torch.zeros(64, 128)),
}


@pytest.mark.parametrize("view", NEGATIVE)
def test_negative_views_are_refused(driver, view):
    torch = pytest.importorskip("torch")
    driver.pinned = ((0, 1 << 63),)
    tensor = NEGATIVE[view](torch, torch.zeros(64, 128, dtype=torch.complex64).conj().imag)
    assert tensor.is_neg()
    with pytest.raises(TensorMapError, match=r"negative bit.*resolve_neg\(\)"):
        cuda_tma.create_tensor_map(tensor, box_dim=(8,) * tensor.ndim)


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_floats_that_are_not_negative(driver, dtype):
    torch = pytest.importorskip("torch")
    driver.pinned = ((0, 1 << 63),)
    tensor = torch.zeros(64, 128, dtype=getattr(torch, dtype))
    for view in (tensor, tensor[:32], tensor.detach(), torch.nn.Parameter(tensor)):
        assert cuda_tma.create_tensor_map(view, box_dim=(8, 8)).tensor is view


def test_a_complex_view_may_be_negative(driver):
    torch = pytest.importorskip("torch")
    driver.pinned = ((0, 1 << 63),)
    parts = torch.zeros(64, 128, dtype=torch.complex64).conj().imag
    negative = torch.view_as_complex(parts.as_strided((64, 64, 2), (256, 2, 1), 0))
    with pytest.raises(TensorMapError, match="negative bit"):
        cuda_tma.create_tensor_map(negative, box_dim=(8, 8))


def test_a_foreign_class_may_have_any_attribute(driver, device_tensor):
    class Foreign(device_tensor):
        _exported = 3
        exporting_obj = 4

    tensor = Foreign((64, 128))
    assert cuda_tma.create_tensor_map(tensor, box_dim=(16, 32)).tensor is tensor


def test_dtypes_without_a_name(driver):
    class Complex64:
        __cuda_array_interface__ = {"shape": (64, 128), "typestr": "<c8", "data": (1 << 32, False), "version": 3}  # noqa: RUF012

    driver.pinned = ((1 << 32, 1 << 33),)
    descriptor = cuda_tma.create_tensor_map(Complex64(), box_dim=(16, 32))
    assert "complex64 as UINT64 (64, 128)" in repr(descriptor)
    untyped = describe_tensor((64, 128), None, None, itemsize=4)
    with pytest.raises(TensorMapError, match=r"untyped \(4-byte elements\), which has no .* pass data_type="):
        tiled_params(untyped, TensorMapOptions((16, 32)))
    params = tiled_params(untyped, TensorMapOptions((16, 32), data_type="float32"))
    assert (params.data_type, params.global_strides) == (7, (512,))


@pytest.mark.parametrize(
    ("shape", "strides", "message"),
    [
        ((2**63, 4), None, r"shape \(9223372036854775808, 4\), C-contiguous, has an extent or a stride beyond 64 bits"),
        ((4, 2**32, 2**31), None, "C-contiguous, has an extent or a stride beyond 64 bits"),
        ((4, 4), (2**66, 4), r"strides \(18446744073709551616, 1\), has an extent or a stride beyond 64 bits"),
        ((4, 4), (-(2**66), 4), r"strides \(-18446744073709551616, 1\), has an extent or a stride beyond"),
    ],
)
def test_tensors_that_dlpack_cannot_describe_are_refused(driver, shape, strides, message):
    array = types.SimpleNamespace(
        __cuda_array_interface__={
            "shape": shape, "strides": strides, "typestr": "<f4", "data": (1 << 32, False), "version": 3,
        }
    )  # fmt: skip
    with pytest.raises(TensorMapError, match=message):
        export_tensor(array)


def test_the_largest_extents_and_strides_are_read(driver):
    interface = {"shape": (2**63 - 1, 2), "strides": (-(2**63), 1), "typestr": "|i1", "data": (16, False), "version": 3}
    exported = export_tensor(types.SimpleNamespace(__cuda_array_interface__=interface))
    assert (exported.shape, exported.strides) == ((2**63 - 1, 2), (-(2**63), 1))


def test_array_interface_mistakes(driver):
    class Array:
        def __init__(self, **changes):
            self.__cuda_array_interface__ = {
                "shape": (64, 128), "typestr": "<f4", "data": (1 << 32, False), "version": 3, **changes
            }  # fmt: skip

    for changes, message in [
        ({"typestr": ">f4"}, "not a native number type"),
        ({"typestr": "|V4"}, "not a native number type"),
        ({"strides": (510, 4)}, "not multiples of the element size 4"),
        ({"strides": (512,)}, "do not describe one tensor"),
        ({"mask": object()}, "has a mask"),
    ]:
        with pytest.raises(TensorMapError, match=message):
            cuda_tma.create_tensor_map(Array(**changes), box_dim=(16, 32))


def test_an_exported_capsule_always_has_strides():
    """Exporters of DLPack 1.2 and later never omit the strides."""
    # NumPy 2.1 is the first version that reads capsules of DLPack 1.
    pytest.importorskip("numpy", minversion="2.1")
    array = np.from_dlpack(_Capsule(describe_tensor((3, 4), None, "float32", _HOST.ctypes.data)))
    assert array.strides == (16, 4) and array[2, 3] == 11


_HOST = np.arange(12, dtype=np.float32)


class _Capsule:
    def __init__(self, exported):
        self.exported = exported

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_):
        exported = describe_tensor(self.exported.shape, None, "float32", self.exported.data_pointer)
        capsule = exported.capsule()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        # The number 1 is the device type of the CPU in DLPack.
        ctypes.c_int32.from_address(get(capsule, b"dltensor_versioned") + 40).value = 1
        return capsule
