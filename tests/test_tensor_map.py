"""The descriptor, on a driver that is not there: see fake_driver."""

import copy
import ctypes
import dataclasses
import gc
import pickle
import sys
import tracemalloc
import types
import weakref

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import cuda_tma
from cuda_tma import (
    Im2colParams,
    Im2colWideParams,
    TensorMapDescriptor,
    TensorMapError,
    TensorMapOptions,
    TiledParams,
)
from cuda_tma._arguments import tiled_params
from cuda_tma._dlpack import describe_tensor
from cuda_tma.data_type import element_bits
from cuda_tma.options import TensorMapIm2colOptions, TensorMapIm2colWideOptions, options_of
from cuda_tma.swizzle import smem_offset
from cuda_tma.testing import im2col_params


def params_of(shape, strides=None, dtype="float32", **options):
    return tiled_params(describe_tensor(shape, strides, dtype), TensorMapOptions(**options))


def test_shape_order_becomes_driver_order_and_strides_become_bytes():
    assert params_of((4, 6, 8), (100, 12, 1), box_dim=(2, 3, 4), element_strides=(3, 2, 1), swizzle="64B",
                     l2_promotion="256B", oob_fill="nan") == TiledParams(
        data_type=7, global_address=0, global_dim=(8, 6, 4), global_strides=(48, 400), box_dim=(4, 3, 2),
        element_strides=(1, 2, 3), interleave=0, swizzle=2, l2_promotion=3, oob_fill=1,
    )  # fmt: skip


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_params_address_the_elements_that_numpy_does(data):
    """Any element's byte offset by the params equals NumPy's, whatever the slicing outside the innermost dimension."""
    rank = data.draw(st.integers(1, 5))
    shape = data.draw(st.lists(st.integers(1, 5), min_size=rank, max_size=rank))
    array = np.zeros((*shape[:-1], 16 * shape[-1]), data.draw(st.sampled_from(["u1", "i2", "f4", "f8"])))
    order = data.draw(st.permutations(range(rank - 1)))
    steps = tuple(slice(None, None, data.draw(st.integers(1, 3))) for _ in range(rank - 1))
    view = array[steps].transpose(*order, rank - 1)
    strides = tuple(stride // view.itemsize for stride in view.strides)
    params = params_of(view.shape, strides, view.dtype.name, box_dim=(1,) * rank)
    assert params.global_dim == view.shape[::-1]
    index = [data.draw(st.integers(0, extent - 1)) for extent in view.shape]
    by_numpy = sum(i * stride for i, stride in zip(index, view.strides, strict=True))
    by_params = index[-1] * view.itemsize + sum(
        i * stride for i, stride in zip(index[-2::-1], params.global_strides, strict=True)
    )
    assert by_params == by_numpy


def test_strides_of_extent_one_are_made_legal():
    assert params_of((1, 5, 1, 8), (3, 8, 7, 1), box_dim=(1, 1, 1, 4)).global_strides == (32, 32, 160)
    assert params_of((1, 5), (1, 1), box_dim=(1, 4)).global_strides == (32,)
    assert params_of((4, 1), (8, 5), box_dim=(1, 4)).global_strides == (32,)


def test_broadcast_dimensions_are_kept():
    assert params_of((3, 4, 8), (0, 8, 1), box_dim=(1, 1, 4)).global_strides == (32, 0)


@pytest.mark.parametrize(
    ("shape", "strides", "message"),
    [
        ((), None, "rank 0"),
        ((1,) * 6, None, "rank 6"),
        ((4, 0), None, r"dimension 1 of shape \(4, 0\) has extent 0"),
        ((64, 32), (64, 2), r"dimension 1, the innermost, has stride 2 .*tensor.contiguous\(\)"),
        ((64, 64), (1, 64), r"Dimension 0 is contiguous: pass tensor.permute\(1, 0\)"),
        ((2, 8, 4), (32, 1, 8), r"Dimension 1 is contiguous: pass tensor.permute\(0, 2, 1\)"),
        ((4, 8), (0, 0), "dimension 1, the innermost, has stride 0"),
        ((4, 8), (-8, 1), "dimension 0 has stride -8"),
        ((4, 8), (8, -1), "dimension 1, the innermost, has stride -1"),
        ((4, 8), (2**61, 1), "dimension 0 has stride 2305843009213693952 .* less than 2\\^40 bytes"),
        ((4, -8), None, "dimension 1 of shape .* has extent -8"),
    ],
)
def test_tensors_that_cannot_be_described(shape, strides, message):
    with pytest.raises(TensorMapError, match=message):
        params_of(shape, strides, box_dim=(1,) * len(shape))


def test_options_that_do_not_fit_the_tensor():
    with pytest.raises(TensorMapError, match=r"box_dim=\(4,\) has 1 values for a tensor of rank 2"):
        params_of((8, 8), box_dim=(4,))
    with pytest.raises(TensorMapError, match=r"element_strides=\(1,\) has 1 values and box_dim"):
        params_of((8, 8), box_dim=(4, 4), element_strides=(1,))
    with pytest.raises(TensorMapError, match=r"box_dim\[1\]=-4 does not fit"):
        params_of((8, 8), box_dim=(4, -4))
    with pytest.raises(TensorMapError, match=r"every 2th element of the innermost dimension, which TMA ignores"):
        params_of((8, 8), box_dim=(4, 4), element_strides=(1, 2))


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [
        ("uint8", 0), ("int8", 0), ("bool", 0), ("uint16", 1), ("int16", 1), ("uint32", 2), ("int32", 3), ("uint64", 4),
        ("int64", 5), ("float16", 6), ("float32", 7), ("float64", 8), ("bfloat16", 9), ("complex64", 4),
        ("float8_e4m3fn", 0), ("float8_e5m2", 0), ("float8_e4m3fnuz", 0), ("float8_e5m2fnuz", 0), ("float8_e8m0fnu", 0),
        ("float8_e3m4", 0), ("float8_e4m3", 0), ("float8_e4m3b11fnuz", 0),
    ],
)  # fmt: skip
def test_data_types_inferred(dtype, wanted):
    assert params_of((8, 64), dtype=dtype, box_dim=(4, 16)).data_type == wanted


def test_fp4_needs_a_choice():
    with pytest.raises(TensorMapError, match='"UINT8".*"16U4_ALIGN8B".*"16U4_ALIGN16B"'):
        params_of((8, 64), dtype="float4_e2m1fn_x2", box_dim=(4, 16))
    as_bytes = params_of((8, 64), dtype="float4_e2m1fn_x2", box_dim=(4, 16), data_type="UINT8")
    packed = params_of((8, 64), dtype="float4_e2m1fn_x2", box_dim=(4, 128), data_type="16U4_ALIGN16B")
    assert (as_bytes.data_type, as_bytes.global_dim, as_bytes.global_strides) == (0, (64, 8), (64,))
    assert (packed.data_type, packed.global_dim, packed.global_strides) == (14, (128, 8), (64,))


def test_packed_types_on_bytes():
    six_bits = params_of((8, 96), dtype="uint8", box_dim=(4, 128), data_type="16U6_ALIGN16B")
    assert (six_bits.global_dim, six_bits.global_strides) == ((128, 8), (96,))
    with pytest.raises(TensorMapError, match="64 bytes, which hold no whole number of 6-bit elements .* multiple of 3"):
        params_of((8, 64), dtype="uint8", box_dim=(4, 128), data_type="16U6_ALIGN16B")
    with pytest.raises(TensorMapError, match="packed types take storage of 1-byte elements"):
        params_of((8, 64), dtype="float32", box_dim=(4, 128), data_type="16U4_ALIGN8B")


@pytest.mark.parametrize(("dtype", "data_type"), [("float32", "UINT8"), ("uint8", "FLOAT32"), ("float16", "FLOAT32")])
def test_a_data_type_of_another_size_is_refused(dtype, data_type):
    with pytest.raises(TensorMapError, match=f"data_type={data_type} has .*-bit elements and the tensor's are {dtype}"):
        params_of((8, 64), dtype=dtype, box_dim=(4, 16), data_type=data_type)


@pytest.mark.parametrize("data_type", ["TFLOAT32", "FLOAT32_FTZ", "TFLOAT32_FTZ", "INT32", "UINT32"])
def test_a_data_type_of_the_same_size_is_taken(data_type):
    assert params_of((8, 64), box_dim=(4, 16), data_type=data_type).data_type == cuda_tma.TensorMapDataType[data_type]


# ---- with the fake driver ----


def test_a_descriptor_is_what_the_driver_wrote(driver, device_tensor):
    tensor = device_tensor((64, 128))
    descriptor = cuda_tma.create_tensor_map(tensor, box_dim=(16, 32), swizzle="128B")
    wanted = params_of((64, 128), box_dim=(16, 32), swizzle="128B")
    assert descriptor.params == TiledParams(**{**_fields(wanted), "global_address": 1 << 32})
    assert bytes(descriptor) == cuda_tma.encode(descriptor.params) == bytes(memoryview(descriptor))
    assert descriptor.address % 128 == 0 and memoryview(descriptor).readonly
    assert descriptor.tensor is tensor and descriptor.context == driver.context
    assert (descriptor.tx_bytes, descriptor.smem_bytes, descriptor.smem_alignment) == (2048, 2048, 1024)
    assert tensor.asked == [(-1, (1, 3))]
    assert repr(descriptor) == (
        "TensorMapDescriptor(tiled, rank 2, float32 (64, 128), box (16, 32), swizzle 128B, device 0)"
    )


def _fields(params):
    return {name: getattr(params, name) for name in TiledParams.__match_args__ or params.__dataclass_fields__}


def test_repr_says_how_a_type_is_moved(driver, device_tensor):
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128), dtype="int8"), box_dim=(16, 32))
    assert "int8 as UINT8 (64, 128)" in repr(descriptor)


def test_equality_is_by_content(driver, device_tensor):
    def make(**keywords):
        return cuda_tma.create_tensor_map(device_tensor((64, 128), **keywords), box_dim=(16, 32))

    assert make() == make() and make() != make(address=1 << 33) and make() != bytes(make())
    with pytest.raises(TypeError, match="unhashable"):
        hash(make())
    with pytest.raises(TypeError, match="make a TensorMapDescriptor with"):
        TensorMapDescriptor()


def test_every_address_is_aligned(driver, device_tensor):
    tensor = device_tensor((64, 128))
    descriptors = [cuda_tma.create_tensor_map(tensor, box_dim=(16, 32)) for _ in range(50)]
    assert {descriptor.address % 128 for descriptor in descriptors} == {0}
    assert len({descriptor.address for descriptor in descriptors}) == 50


def test_replace_address(driver, device_tensor):
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    other = device_tensor((64, 128), address=1 << 33)
    descriptor.replace_address(other)
    assert descriptor == cuda_tma.create_tensor_map(other, box_dim=(16, 32))
    assert descriptor.tensor is other and descriptor.params.global_address == 1 << 33
    descriptor.replace_address((1 << 34) + 16)
    assert descriptor.tensor is None and descriptor.params.global_address == (1 << 34) + 16
    assert bytes(descriptor) == cuda_tma.encode(descriptor.params)
    assert descriptor.is_stale() is False


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"dtype": "int32"}, "dtype is int32, and the descriptor was made for float32"),
        ({"shape": (64, 64)}, r"shape is \(64, 64\), and the descriptor was made for \(64, 128\)"),
        ({"shape": (64, 128, 1)}, r"shape is \(64, 128, 1\)"),
        ({"strides": (256, 1)}, r"strides .* is \(1024,\), and the descriptor was made for \(512,\)"),
        ({"device_id": 1}, "on device 1 and the current device is 0"),
        ({"address": (1 << 32) + 4}, "address 0x100000004 is not a multiple of 16 bytes"),
    ],
)
def test_a_refused_replacement_changes_nothing(driver, device_tensor, other, message):
    tensor = device_tensor((64, 128))
    descriptor = cuda_tma.create_tensor_map(tensor, box_dim=(16, 32))
    before = bytes(descriptor)
    with pytest.raises(TensorMapError, match=message):
        descriptor.replace_address(device_tensor(**{"shape": (64, 128), **other}))
    assert bytes(descriptor) == before and descriptor.tensor is tensor
    assert descriptor.params.global_address == 1 << 32


def test_a_map_taken_from_an_array_compares_data_types(driver, device_tensor):
    """Its bytes do not say the dtype; and here shape and strides in bytes are the same."""
    options = TensorMapOptions((16, 32))
    taken = cuda_tma.create_tensor_maps([device_tensor((64, 128), (256, 1))], options)[0]
    with pytest.raises(TensorMapError, match="dtype is float64, and the descriptor was made for FLOAT32"):
        taken.replace_address(device_tensor((64, 128), dtype="float64"))
    taken.replace_address(device_tensor((64, 128), (256, 1), address=1 << 33))
    assert taken.params.global_address == 1 << 33


@pytest.mark.parametrize("address", [-16, 0, False, 2**64, 8])
def test_a_refused_integer_address_changes_nothing(driver, device_tensor, address):
    tensor = device_tensor((64, 128))
    descriptor = cuda_tma.create_tensor_map(tensor, box_dim=(16, 32))
    before = bytes(descriptor)
    with pytest.raises(TensorMapError, match="not a multiple of 16 bytes|no 64-bit device address"):
        descriptor.replace_address(address)
    assert bytes(descriptor) == before and descriptor.tensor is tensor


def test_is_stale_asks_the_tensor(driver, device_tensor):
    tensor = device_tensor((64, 128))
    descriptor = cuda_tma.create_tensor_map(tensor, box_dim=(16, 32))
    assert descriptor.is_stale() is False
    tensor.layout = (*tensor.layout[:3], 1 << 33)
    assert descriptor.is_stale() is True


def test_where_a_map_may_be_made(driver, device_tensor):
    with pytest.raises(TensorMapError, match=r"on device 1 and the current device is 0; .*Device\(1\).set_current\(\)"):
        cuda_tma.create_tensor_map(device_tensor((64, 128), device_id=1), box_dim=(16, 32))
    with pytest.raises(TensorMapError, match="host memory"):
        cuda_tma.create_tensor_map(np.zeros((64, 128), np.float32), box_dim=(16, 32))
    driver.context = 0
    with pytest.raises(TensorMapError, match="no CUDA context is current"):
        cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))


def test_pinned_host_memory_is_legal(driver):
    array = np.zeros((65, 128), np.float32)
    start = -(-array.ctypes.data // 64) * 64 - array.ctypes.data
    aligned = array.view(np.uint8).reshape(-1)[start : start + 64 * 512].view(np.float32).reshape(64, 128)
    driver.pinned = ((array.ctypes.data, array.ctypes.data + array.nbytes),)
    assert cuda_tma.create_tensor_map(aligned, box_dim=(16, 32)).params.global_address == aligned.ctypes.data


def test_what_the_driver_refuses_is_explained(driver, device_tensor):
    with pytest.raises(TensorMapError) as error:
        cuda_tma.create_tensor_map(device_tensor((128, 1733)), box_dim=(32, 300))
    assert "1733" in str(error.value) and "1736" in str(error.value) and "300" in str(error.value)
    assert {violation.parameter for violation in error.value.violations} == {"global_strides", "box_dim"}


def test_a_descriptor_owns_its_tensor_and_lets_go(driver, device_tensor):
    tensor = device_tensor((64, 128))
    reference = weakref.ref(tensor)
    descriptor = cuda_tma.create_tensor_map(tensor, box_dim=(16, 32))
    gc.disable()
    try:
        del tensor
        assert reference() is descriptor.tensor
        del descriptor
        assert reference() is None  # without the collector: there is no cycle
    finally:
        gc.enable()


def test_a_tensor_without_memory_is_refused(driver, device_tensor):
    with pytest.raises(TensorMapError, match=r"no memory of its own \(address 0\)"):
        cuda_tma.create_tensor_map(device_tensor((64, 128), address=0), box_dim=(16, 32))


def test_a_copy_is_refused(driver, device_tensor):
    class Copier(device_tensor):
        def __dlpack__(self, **keywords):
            capsule = super().__dlpack__(**keywords)
            get = ctypes.pythonapi.PyCapsule_GetPointer
            get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
            ctypes.c_uint64.from_address(get(capsule, b"dltensor_versioned") + 24).value |= 2  # IS_COPIED
            return capsule

    with pytest.raises(TensorMapError, match="exports a copy of itself"):
        cuda_tma.create_tensor_map(Copier((64, 128)), box_dim=(16, 32))


def test_a_descriptor_is_small(driver, device_tensor):
    """At most 512 bytes beyond what the view holds, as Python counts them and as they are allocated."""
    view = cuda_tma.StridedMemoryView.from_any_interface(device_tensor((64, 128)), stream_ptr=-1)
    options = TensorMapOptions((16, 32))
    assert sys.getsizeof(cuda_tma.create_tensor_map(view, options)) <= 512
    keep = [None] * 1000
    tracemalloc.start()
    try:
        for index in range(1000):
            keep[index] = cuda_tma.create_tensor_map(view, options)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 128 * 1000 < held <= 512 * 1000


def test_a_device_makes_maps_while_it_is_current(driver, device_tensor):
    device = object.__new__(cuda_tma.Device)  # its constructor asks the real driver
    object.__setattr__(device, "_core", types.SimpleNamespace(device_id=1))
    tensor = device_tensor((64, 128), device_id=1)
    with pytest.raises(TensorMapError, match=r"Device\(1\).create_tensor_map was called while device 0 is current"):
        device.create_tensor_map(tensor, box_dim=(16, 32))
    driver.context, driver.device = 0xD1, 1
    assert device.create_tensor_map(tensor, box_dim=(16, 32)).tensor is tensor


def test_many_cycles_leave_nothing(driver, device_tensor):
    view = cuda_tma.StridedMemoryView.from_any_interface(device_tensor((64, 128)), stream_ptr=-1)
    options = TensorMapOptions((16, 32))
    references = sys.getrefcount(view), sys.getrefcount(options)
    for _ in range(100):
        descriptor = cuda_tma.create_tensor_map(view, options)
        descriptor.replace_address(view)
        del descriptor
    assert (sys.getrefcount(view), sys.getrefcount(options)) == references


def test_a_cupy_array_is_read_off_its_attributes(driver, monkeypatch):
    """A stand-in with CuPy's attributes: __dlpack__ is asked only for what they do not tell."""
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


def test_a_library_that_is_half_imported_is_none(driver, device_tensor, monkeypatch):
    for stand_in in (types.ModuleType("cupy"), types.SimpleNamespace(ndarray=3)):
        monkeypatch.setitem(sys.modules, "cupy", stand_in)
        tensor = type("Tensor", (device_tensor,), {})((64, 128))  # of a type not seen before
        assert cuda_tma.create_tensor_map(tensor, box_dim=(16, 32)).tensor is tensor


def test_misuse_is_refused(driver, device_tensor):
    tensor = device_tensor((64, 128))
    for value in (tensor, 1 << 32):
        with pytest.raises(TypeError, match="make a TensorMapDescriptor with"):
            TensorMapDescriptor.__new__(TensorMapDescriptor).replace_address(value)
    view = cuda_tma.StridedMemoryView.from_dlpack(tensor, stream_ptr=-1)
    view._exported = 5
    with pytest.raises(TypeError, match="ExportedTensor"):
        cuda_tma.create_tensor_map(view, box_dim=(16, 32))


def test_an_adopted_map_takes_its_own_tensor(driver, device_tensor):
    """Whatever stride it has where no step is made."""
    tensor = device_tensor((4, 1, 64))
    params = cuda_tma.create_tensor_map(tensor, box_dim=(1, 1, 8)).params
    odd = dataclasses.replace(params, global_strides=(1024, params.global_strides[1]))
    adopted = TensorMapDescriptor.from_bytes(cuda_tma.encode(odd), tensor)
    adopted.replace_address(device_tensor((4, 1, 64), address=1 << 33))
    assert adopted.params.global_address == 1 << 33


NEGATIVE = {  # what still is a negative view, made of the imaginary part of a conjugate
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
    with pytest.raises(TensorMapError, match=r"untyped \(4-byte elements\), from which no .* pass data_type="):
        tiled_params(untyped, TensorMapOptions((16, 32)))
    params = tiled_params(untyped, TensorMapOptions((16, 32), data_type="float32"))
    assert (params.data_type, params.global_strides) == (7, (512,))


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
    """DLPack 1.2 and later leave them out for no tensor."""
    pytest.importorskip("numpy", minversion="2.1")  # the first to read capsules of DLPack 1
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
        ctypes.c_int32.from_address(get(capsule, b"dltensor_versioned") + 40).value = 1  # device_type: the CPU
        return capsule


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


# ---- im2col ----

IM2COL = TensorMapIm2colOptions.convolution(3, padding=1, stride=(1, 2), channels_per_pixel=32, pixels_per_column=64)


def test_im2col_params_are_in_driver_order():
    options = TensorMapIm2colOptions(
        (-1, -2, -3),
        (4, 5, 6),
        32,
        64,
        (7, 1, 2, 3, 1),
        "TFLOAT32",
        swizzle="128B",
        l2_promotion="256B",
        oob_fill="NAN",
    )
    assert tiled_params(describe_tensor((2, 10, 11, 12, 64), None, "float32"), options) == Im2colParams(
        data_type=11, global_address=0, global_dim=(64, 12, 11, 10, 2), global_strides=(256, 3072, 33792, 337920),
        pixel_box_lower_corner=(-3, -2, -1), pixel_box_upper_corner=(6, 5, 4), channels_per_pixel=32,
        pixels_per_column=64, element_strides=(1, 3, 2, 1, 7), swizzle=3, l2_promotion=3, oob_fill=1,
    )  # fmt: skip


@given(im2col_params())
def test_im2col_options_of_params_make_these_params(params):
    params = dataclasses.replace(params, element_strides=(1, *params.element_strides[1:]))  # the first is ignored
    tensor = describe_tensor(
        params.global_dim[::-1], _strides_of(params), f"uint{element_bits(params.data_type)}", params.global_address
    )
    assume(all(extent > 1 for extent in params.global_dim))  # whose strides are kept
    assert tiled_params(tensor, options_of(params)) == params


def _strides_of(params):
    return (*(stride * 8 // element_bits(params.data_type) for stride in params.global_strides[::-1]), 1)


@pytest.mark.parametrize(
    ("shape", "changes", "message"),
    [
        ((8, 8, 64), {}, r"pixel_box_lower_corner=\(-1, -1\) has 2 values for a tensor of rank 3 .* \(H, W\) for NHWC"),
        ((2, 8, 8, 64), {"pixel_box_upper_corner": (1,)}, r"has 2 values and .*_upper_corner=\(1,\) has 1; give"),
        ((2, 8, 8, 64), {"element_strides": (1, 1, 1)}, r"element_strides=\(1, 1, 1\) has 3 values and pixel"),
        ((2, 8, 8, 64), {"element_strides": (1, 1, 1, 2)}, "every 2th element of the innermost dimension"),
        ((2, 8, 8, 64), {"pixel_box_upper_corner": (1, 2**31)}, r"_corner\[1\]=2147483648 does not fit .* signed 32"),
        ((2, 8, 8, 64), {"channels_per_pixel": -8}, "channels_per_pixel=-8 does not fit .*; use 1 to 256"),
        ((2, 8, 8, 64), {"pixels_per_column": 2**32}, "pixels_per_column=4294967296 does not fit .* use 1 to 1024"),
        ((2, 8, 8, 8, 8, 64), {}, "rank 6"),
        ((2, 8, 8, 64), {"data_type": "UINT8"}, "data_type=UINT8 has 8-bit elements"),
    ],
)  # fmt: skip
def test_im2col_options_that_do_not_fit_the_tensor(shape, changes, message):
    with pytest.raises(TensorMapError, match=message):
        tiled_params(describe_tensor(shape, None, "float32"), dataclasses.replace(IM2COL, **changes))


def test_a_rank_that_im2col_lacks_is_explained(driver, device_tensor):
    with pytest.raises(TensorMapError, match="rank is 2; TMA needs 3 to 5 for im2col"):
        cuda_tma.create_tensor_map(device_tensor((8, 64)), TensorMapIm2colOptions((), (), 32, 64))


def test_an_im2col_descriptor_is_what_the_driver_wrote(driver, device_tensor):
    tensor = device_tensor((2, 8, 8, 64))
    descriptor = cuda_tma.create_tensor_map(tensor, IM2COL)
    assert descriptor.params == Im2colParams(
        data_type=7, global_address=1 << 32, global_dim=(64, 8, 8, 2), global_strides=(256, 2048, 16384),
        pixel_box_lower_corner=(-1, -1), pixel_box_upper_corner=(-1, -1), channels_per_pixel=32, pixels_per_column=64,
        element_strides=(1, 2, 1, 1), swizzle=3,
    )  # fmt: skip
    assert bytes(descriptor) == cuda_tma.encode(descriptor.params)
    assert (descriptor.tx_bytes, descriptor.smem_bytes, descriptor.smem_alignment) == (8192, 8192, 1024)
    assert repr(descriptor) == (
        "TensorMapDescriptor(im2col, rank 4, float32 (2, 8, 8, 64), column 64 pixels of 32 channels, swizzle 128B, "
        "device 0)"
    )
    assert cuda_tma.create_tensor_map(tensor, dataclasses.asdict(IM2COL)) == descriptor
    view = cuda_tma.StridedMemoryView.from_any_interface(tensor, stream_ptr=-1)
    assert view.as_tensor_map(options=IM2COL) == descriptor
    array = cuda_tma.create_tensor_maps([tensor, tensor], IM2COL)
    assert bytes(array) == 2 * bytes(descriptor) and array[1].params == descriptor.params


def test_replace_address_compares_im2col_tensors(driver, device_tensor):
    descriptor = cuda_tma.create_tensor_map(device_tensor((2, 8, 8, 64)), IM2COL)
    other = device_tensor((2, 8, 8, 64), address=1 << 33)
    descriptor.replace_address(other)
    assert descriptor == cuda_tma.create_tensor_map(other, IM2COL) and descriptor.tensor is other
    before = bytes(descriptor)
    for wrong, message in [
        ({"shape": (2, 8, 9, 64)}, r"shape is \(2, 8, 9, 64\)"),
        ({"shape": (8, 8, 64)}, r"shape is \(8, 8, 64\)"),
        ({"dtype": "int32"}, "dtype is int32"),
        ({"strides": (8192, 512, 64, 1)}, "strides"),
    ]:
        with pytest.raises(TensorMapError, match=message):
            descriptor.replace_address(device_tensor(**{"shape": (2, 8, 8, 64), **wrong}))
    assert bytes(descriptor) == before


def test_what_the_driver_refuses_is_explained_in_words_of_the_convolution(driver, device_tensor):
    options = TensorMapIm2colOptions.convolution((7, 3), padding=1, channels_per_pixel=64)
    with pytest.raises(TensorMapError) as error:
        cuda_tma.create_tensor_map(device_tensor((2, 4, 4, 64)), options)
    text = str(error.value)
    assert {violation.rule for violation in error.value.violations} == {"pixel_box_empty", "channels_per_pixel_span"}
    assert "pixel_box_upper_corner[0] is -5 (padding - (kernel_size - 1) * dilation along dimension 1, H)" in text
    assert "The dilated kernel does not fit into the padded extent: pad more" in text
    assert "Use channels_per_pixel=32 (128 bytes), and load the other channels from another coordinate" in text


WIDE = TensorMapIm2colWideOptions(-1, -1, 32, 64, mode="W128")


def test_im2col_wide(driver, device_tensor):
    driver.compute_capability = (10, 0)
    tensor = device_tensor((2, 8, 8, 64))
    descriptor = cuda_tma.create_tensor_map(tensor, WIDE)
    assert descriptor.params == Im2colWideParams(
        data_type=7, global_address=1 << 32, global_dim=(64, 8, 8, 2), global_strides=(256, 2048, 16384),
        pixel_box_lower_corner_width=-1, pixel_box_upper_corner_width=-1, channels_per_pixel=32, pixels_per_column=64,
        element_strides=(1, 1, 1, 1), swizzle=3, mode=1,
    )  # fmt: skip
    assert descriptor.tx_bytes == 128 * 32 * 4  # W128: 128 pixels, whatever pixels_per_column says
    assert repr(descriptor).startswith("TensorMapDescriptor(im2colwide, rank 4, float32 (2, 8, 8, 64), column 128 ")
    assert cuda_tma.create_tensor_maps([tensor], WIDE)[0].params == descriptor.params
    other = device_tensor((2, 8, 8, 64), address=1 << 33)
    descriptor.replace_address(other)
    assert descriptor == cuda_tma.create_tensor_map(other, WIDE) and isinstance(descriptor.params, Im2colWideParams)
    assert cuda_tma.create_tensor_map(device_tensor((2, 8, 64)), WIDE).params.rank == 3
    strided = dataclasses.replace(WIDE, element_strides=(1, 1, 2, 1))
    assert cuda_tma.create_tensor_map(tensor, strided).params.element_strides == (1, 2, 1, 1)
    with pytest.raises(TensorMapError, match=r"element_strides=\(1, 1, 2, 1\) has 4 values for a tensor of rank 3"):
        cuda_tma.create_tensor_map(device_tensor((2, 8, 64)), strided)


def test_im2col_wide_is_refused_where_no_instruction_could_use_it(driver, device_tensor):
    """Driver 580 makes such maps on 9.0: see tests/data, whose rows of that mode are accepted there."""
    with pytest.raises(TensorMapError, match="compute capability 9.0; TMA needs 10.0 or later for im2col wide"):
        cuda_tma.create_tensor_map(device_tensor((2, 8, 8, 64)), WIDE)
    assert driver.encoded == 0
    driver.compute_capability = (10, 0)
    driver.install(without=["cuTensorMapEncodeIm2colWide"])
    with pytest.raises(TensorMapError, match=r"no cuTensorMapEncodeIm2colWide, which came with CUDA 12.8"):
        cuda_tma.create_tensor_map(device_tensor((2, 8, 8, 64)), WIDE)


def test_options_travel(driver, device_tensor):
    options = TensorMapOptions((16, 32), swizzle="128B")
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), options)  # compiles the options
    for other in (
        pickle.loads(pickle.dumps(options)),
        copy.deepcopy(options),
        TensorMapOptions(**dataclasses.asdict(options)),
    ):
        assert other == options
        assert cuda_tma.create_tensor_map(device_tensor((64, 128)), other) == descriptor
    assert TensorMapOptions.from_params(descriptor.params) == dataclasses.replace(
        options, element_strides=(1, 1), data_type="FLOAT32"
    )


def test_errors_of_the_driver_are_not_explained_away(driver, device_tensor):
    driver.errors["cuPointerGetAttribute"] = 700
    with pytest.raises(Exception, match="cuPointerGetAttribute failed with CUDA_ERROR_ILLEGAL_ADDRESS") as error:
        cuda_tma.create_tensor_map(np.zeros((64, 128), np.float32), box_dim=(16, 32))
    assert type(error.value).__name__ == "CUDAError"


def test_allocation_class(driver, device_tensor):
    tensor = device_tensor((64, 128))

    def make(**keywords):
        return cuda_tma.create_tensor_map(tensor, box_dim=(16, 32), **keywords).params.allocation_class

    assert (make(), make(allocation_class="SMALL"), make(allocation_class="LARGE")) == (1, 1, 2)
    driver.install(without=["cuTensorMapSetAllocationClass"])
    assert make() == 1
    with pytest.raises(
        TensorMapError, match='allocation_class="LARGE" needs a driver with cuTensorMapSetAllocationClass'
    ):
        make(allocation_class="LARGE")


def test_what_a_notebook_shows(driver, device_tensor):
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32), swizzle="128B")
    page = descriptor._repr_html_()
    assert "global_strides" in page and "512" in page and "<table" in page
    assert repr(descriptor).replace("(", "&#40;") in page or repr(descriptor) in page


def test_smem_layout_is_the_swizzle(driver, device_tensor):
    pytest.importorskip("tensor_layouts")
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32), swizzle="128B")
    layout = descriptor.smem_layout()
    for row in range(16):
        for column in range(32):
            assert layout(column, row) * 4 == smem_offset(descriptor.params, (column, row))


def test_a_descriptor_is_neither_copied_nor_pickled(driver, device_tensor):
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=r"belongs to a process and a context. Make another: .*from_bytes"):
            attempt(descriptor)
