"""Tests of the tensor map parameters that the package computes from a tensor and options."""

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cuda_tma
from cuda_tma import (
    TensorMapError,
    TensorMapOptions,
    TiledParams,
)
from cuda_tma._make.encode import tiled_params
from cuda_tma._read.dlpack import describe_tensor
from cuda_tma._read.export import export_tensor
from tests._make._arguments import params_of


def test_shape_order_becomes_driver_order_and_strides_become_bytes():
    assert params_of((4, 6, 8), (100, 12, 1), box_dim=(2, 3, 4), element_strides=(3, 2, 1), swizzle="64B",
                     l2_promotion="256B", oob_fill="nan") == TiledParams(
        data_type=7, global_address=0, global_dim=(8, 6, 4), global_strides=(48, 400), box_dim=(4, 3, 2),
        element_strides=(1, 2, 3), interleave=0, swizzle=2, l2_promotion=3, oob_fill=1,
    )  # fmt: skip


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_params_address_the_elements_that_numpy_does(data):
    """The byte offset of each element equals NumPy's offset, for any slices of the outer dimensions."""
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
    # Every data type and interleave accepts multiples of 32, but some data types refuse multiples of 16.
    assert params_of((1, 4), (7, 1), box_dim=(1, 4)).global_strides == (32,)
    assert params_of((1, 3, 1, 12), (3, 12, 7, 1), box_dim=(1, 1, 1, 4)).global_strides == (64, 48, 160)
    assert params_of((1, 33), None, "uint8", box_dim=(1, 16)).global_strides == (64,)
    assert params_of((1, 32), None, "uint8", box_dim=(1, 16)).global_strides == (32,)
    assert params_of((1, 1, 1), (5, 5, 5), "float64", box_dim=(1, 1, 1)).global_strides == (32, 32)


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
        ((0, 8), None, r"dimension 0 of shape \(0, 8\) has extent 0"),
        ((0, 8), (0, 0), r"dimension 0 of shape \(0, 8\) has extent 0"),
        ((0, 1, 8), (0, 0, 1), r"dimension 0 of shape \(0, 1, 8\) has extent 0"),
        ((4, 8), (2**40, 1), "dimension 0 has stride 1099511627776 .* less than 2\\^40 bytes"),
        ((2, 3, 8), (-1, 8, 1), "dimension 0 has stride -1"),
    ],
)
def test_tensors_that_cannot_be_described(shape, strides, message):
    with pytest.raises(TensorMapError, match=message):
        params_of(shape, strides, box_dim=(1,) * len(shape))


def test_options_that_do_not_fit_the_tensor():
    with pytest.raises(TensorMapError, match=r"box_dim=\(4,\) has length 1 for a tensor of rank 2"):
        params_of((8, 8), box_dim=(4,))
    with pytest.raises(TensorMapError, match=r"element_strides=\(1,\) has length 1, but box_dim"):
        params_of((8, 8), box_dim=(4, 4), element_strides=(1,))
    with pytest.raises(TensorMapError, match=r"box_dim\[1\]=-4 does not fit"):
        params_of((8, 8), box_dim=(4, -4))
    with pytest.raises(TensorMapError, match=r"steps of 2 elements along the innermost dimension, which TMA ignores"):
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
    with pytest.raises(TensorMapError, match="64 bytes, not a whole number of 6-bit elements .* multiple of 3"):
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


def test_the_largest_stride_that_is_described():
    """The package limits a stride in elements, and only the driver checks the stride in bytes."""
    assert params_of((4, 8), (2**40 - 1, 1), box_dim=(1, 4)).global_strides == (4 * (2**40 - 1),)
    # A map does not use the stride of a dimension with the extent 1.
    assert params_of((1, 8), (-5, 1), box_dim=(1, 4)).global_strides == (32,)


def test_five_dimensions():
    params = params_of((2, 3, 4, 5, 6), None, "int16", box_dim=(1, 2, 3, 4, 5), element_strides=(5, 4, 3, 2, 1))
    assert params == TiledParams(
        data_type=1, global_address=0, global_dim=(6, 5, 4, 3, 2), global_strides=(12, 60, 240, 720),
        box_dim=(5, 4, 3, 2, 1), element_strides=(1, 2, 3, 4, 5),
    )  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [("interleave", "16B"), ("l2_promotion", "64B"), ("oob_fill", "NAN")])
def test_each_option_has_its_own_place(name, value):
    wanted = {"interleave": 0, "swizzle": 0, "l2_promotion": 0, "oob_fill": 0} | {name: 1}
    params = params_of((2, 8, 8, 16), box_dim=(1, 1, 4, 4), **{name: value})
    assert {each: getattr(params, each) for each in wanted} == wanted


def test_the_innermost_element_stride_is_for_interleaved_tensors():
    options = {"box_dim": (1, 1, 4, 4), "element_strides": (1, 1, 1, 2)}
    assert params_of((2, 8, 8, 16), interleave="16B", **options).element_strides == (2, 1, 1, 1)
    with pytest.raises(TensorMapError, match=r"element_strides=\(1, 1, 1, 2\) asks for steps of 2"):
        params_of((2, 8, 8, 16), **options)


def test_the_allocation_class_of_params():
    made = [params_of((8, 64), box_dim=(4, 16), allocation_class=each).allocation_class for each in (None, "SMALL", 2)]
    assert made == [1, 1, 2]


@pytest.mark.parametrize("dtype", [(1, 8, 4), (0, 16, 2), (2, 16, 4), (1, 8, 8)])
def test_vectors_are_not_elements(dtype):
    """The DLPack type uint8x4 is not uint32, so the caller must name the data type."""
    _, bits, lanes = dtype
    tensor = _of_dtype((8, 64), *dtype)
    with pytest.raises(TensorMapError, match="pass data_type="):
        tiled_params(tensor, TensorMapOptions((4, 4)))
    params = tiled_params(tensor, TensorMapOptions((4, 4), data_type=f"UINT{bits * lanes}"))
    assert (params.global_dim, params.global_strides) == ((64, 8), (64 * bits * lanes // 8,))


@pytest.mark.parametrize("dtype", [(31, 8, 1), (32, 8, 1), (255, 32, 1), (0, 128, 1), (2, 128, 1), (31, 64, 1)])
def test_dtypes_beyond_the_tables(dtype):
    with pytest.raises(TensorMapError, match="pass data_type=|no data type"):
        tiled_params(_of_dtype((8, 64), *dtype), TensorMapOptions((4, 4)))


def _of_dtype(shape, code, bits, lanes):
    """Return a tensor with a given DLPack dtype."""
    capsule = describe_tensor(shape, None, "uint8").capsule()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    # The member dl_tensor is at offset 32 of DLManagedTensorVersioned, and the member dtype is at offset 20 of
    # dl_tensor.
    at = get(capsule, b"dltensor_versioned") + 32 + 20
    ctypes.memmove(at, bytes((code, bits & 255, lanes & 255, lanes >> 8)), 4)

    class Exporter:
        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, **_):
            return capsule

    return export_tensor(Exporter())


@pytest.mark.parametrize("rank", range(7))
def test_options_of_another_rank(rank):
    """If no options are valid for the tensor, the error contains the tensor's rank."""
    for values in {1, 2, 4, 5, 6} - {rank}:
        of_options = rf"box_dim=.* has length {values} for a tensor of rank {rank}"
        with pytest.raises(TensorMapError, match=of_options if 1 <= rank <= 5 else f"rank {rank}") as caught:
            params_of((16,) * rank, box_dim=(1,) * values)
        assert ("box_dim" in str(caught.value)) == (1 <= rank <= 5)
