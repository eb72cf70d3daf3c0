"""Tests of params_of: the parameters of a descriptor, without a driver."""

import dataclasses
import pickle

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cuda_tma
from cuda_tma import TensorMapError, TensorSpec, emulate, params_of
from cuda_tma._read.dlpack import describe_tensor
from cuda_tma.params import Im2colParams, Im2colWideParams, TiledParams
from cuda_tma.testing import view_bytes

TILED = cuda_tma.TensorMapOptions((8, 16), swizzle="64B")
IM2COL = cuda_tma.TensorMapIm2colOptions((-1, -2), (0, 1), 32, 64, (1, 2, 3, 1), swizzle="128B")
WIDE = cuda_tma.TensorMapIm2colWideOptions(-1, 2, 32, 64, mode="W128")


@pytest.mark.parametrize(("shape", "options"), [((64, 128), TILED), ((2, 8, 9, 64), IM2COL), ((2, 8, 9, 64), WIDE)])
def test_the_parameters_are_the_descriptors(driver, device_tensor, shape, options):
    driver.compute_capability = (10, 0)
    tensor = device_tensor(shape, address=1 << 33)
    params = cuda_tma.create_tensor_map(tensor, options).params
    assert params_of(tensor, options) == params_of(TensorSpec(shape, "float32", address=1 << 33), options) == params
    view = cuda_tma.StridedMemoryView.from_any_interface(tensor, stream_ptr=-1)
    assert params_of(view, options) == params


def test_every_mode_by_hand():
    common = {"data_type": 7, "global_address": 4096, "global_dim": (64, 9, 8, 2), "swizzle": 3}
    spec = TensorSpec((2, 8, 9, 64), "float32", (8192, 1024, 128, 1), 4096)
    strides = (512, 4096, 32768)
    assert params_of(spec, IM2COL) == Im2colParams(
        **common, global_strides=strides, pixel_box_lower_corner=(-2, -1), pixel_box_upper_corner=(1, 0),
        channels_per_pixel=32, pixels_per_column=64, element_strides=(1, 3, 2, 1),
    )  # fmt: skip
    assert params_of(spec, WIDE) == Im2colWideParams(
        **common, global_strides=strides, pixel_box_lower_corner_width=-1, pixel_box_upper_corner_width=2,
        channels_per_pixel=32, pixels_per_column=64, element_strides=(1,) * 4, mode=1,
    )  # fmt: skip
    assert params_of(spec, box_dim=[1, 2, 3, 32], oob_fill="NAN", allocation_class="LARGE", swizzle=3) == TiledParams(
        **common, global_strides=strides, box_dim=(32, 3, 2, 1), element_strides=(1,) * 4, oob_fill=1,
        allocation_class=2,
    )  # fmt: skip


def test_options_have_the_form_of_create_tensor_map():
    spec = TensorSpec((64, 128), "float32")
    assert params_of(spec, TILED) == params_of(spec, {"box_dim": (8, 16), "swizzle": 2})
    assert params_of(spec, TILED) == params_of(spec, box_dim=(8, 16), swizzle="64B")
    assert params_of(spec, TILED) == params_of(spec, None, box_dim=(8, 16), swizzle="64B")
    with pytest.raises(TypeError, match="neither box_dim= nor options= was passed"):
        params_of(spec)
    with pytest.raises(TypeError, match="options= and swizzle were both passed"):
        params_of(spec, TILED, swizzle="32B")


@pytest.mark.parametrize(
    "dtype",
    [np.uint8, np.int16, np.float64, np.complex64, np.bool_, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn],
)
def test_a_numpy_array_is_described_in_place(dtype):
    array = np.zeros((6, 10, 64), dtype)[::2, 1:]
    array.flags.writeable = False
    params, item_bytes = params_of(array, box_dim=(1, 2, 16)), array.itemsize
    assert params.global_address == array.ctypes.data and params.global_dim == (64, 9, 3)
    assert params.global_strides == (64 * item_bytes, 2 * 640 * item_bytes)
    assert params == params_of(TensorSpec(array.shape, dtype, (1280, 64, 1), array.ctypes.data), box_dim=(1, 2, 16))


def test_numpy_arrays_without_a_map_are_refused():
    with pytest.raises(TensorMapError, match="dimension 1, the innermost, has stride 2 elements"):
        params_of(np.zeros((4, 8), np.float32)[:, ::2], box_dim=(4, 4))
    with pytest.raises(TensorMapError, match="dimension 0 has stride -8 elements"):
        params_of(np.zeros((4, 8), np.float32)[::-1], box_dim=(4, 4))
    with pytest.raises(TensorMapError, match="has extent 0"):
        params_of(np.zeros((0, 8), np.float32), box_dim=(4, 4))
    with pytest.raises(TensorMapError, match="is not in native byte order"):
        params_of(np.zeros((4, 8), ">f4"), box_dim=(4, 4))
    with pytest.raises(TensorMapError, match=r"strides \(12,\) bytes are not multiples of the element size 8 bytes"):
        params_of(np.zeros(4, np.dtype([("a", "<f8"), ("b", "<f4")]))["a"], box_dim=(4,))
    with pytest.raises(TensorMapError, match="unsupported dtype 'void96'; choose one of int8"):
        params_of(np.zeros(4, np.dtype([("a", "<f8"), ("b", "<f4")])), box_dim=(4,))
    with pytest.raises(TensorMapError, match="a builtins.list is not a tensor"):
        params_of([1, 2], box_dim=(2,))


def test_a_cpu_tensor_of_torch():
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(64, 200, dtype=torch.bfloat16)[:, 8:136]
    spec = TensorSpec(tensor.shape, tensor.dtype, tensor.stride(), tensor.data_ptr())
    assert spec == TensorSpec((64, 128), "bfloat16", (200, 1), tensor.data_ptr())
    assert params_of(tensor, TILED) == params_of(spec, TILED)
    assert params_of(spec, TILED).global_strides == (400,)
    with pytest.raises(TensorMapError, match=r"Pass tensor.resolve_conj\(\)"):
        params_of(torch.zeros(64, 128, dtype=torch.complex64).conj(), TILED)


def test_a_packed_dtype_counts_bytes_in_the_spec_and_elements_in_the_map():
    spec = TensorSpec((64, 128), "float4_e2m1fn_x2")
    assert params_of(spec, box_dim=(8, 128), data_type="16U4_ALIGN8B").global_dim == (256, 64)
    with pytest.raises(TensorMapError, match="can be moved in three ways; pass data_type= to choose one"):
        params_of(spec, box_dim=(8, 128))


def test_maps_that_check_refuses_are_accepted_here():
    params = params_of(TensorSpec((128, 1733), "float32", address=4), box_dim=(300, 32))
    assert [violation.rule for violation in cuda_tma.check(params)] == [
        "global_address_alignment", "global_strides_alignment", "box_dim_range",
    ]  # fmt: skip


def test_a_load_of_a_numpy_array():
    array = np.arange(32 * 40, dtype=np.float32).reshape(32, 40)
    params = params_of(array, box_dim=(4, 8))
    tile = emulate.load(params, view_bytes(array), (16, 3), base_address=params.global_address)
    assert (tile.smem.view(np.float32).reshape(4, 8) == array[3:7, 16:24]).all()


# ---- the spec ----


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("float32", "float32"), ("FLOAT32", "float32"), ("torch.float8_e5m2", "float8_e5m2"), ("f4", "float32"),
        (np.int16, "int16"), (np.dtype("u8"), "uint64"), (ml_dtypes.bfloat16, "bfloat16"), (float, "float64"),
        (np.dtype(ml_dtypes.float8_e8m0fnu), "float8_e8m0fnu"), ("float4_e2m1fn_x2", "float4_e2m1fn_x2"),
    ],
)  # fmt: skip
def test_a_spec_takes_every_spelling_of_a_dtype(given, name):
    assert TensorSpec((8,), given) == TensorSpec((8,), name) and TensorSpec((8,), given).dtype == name


def test_a_spec_is_a_value():
    spec = TensorSpec([np.int64(4), 8], np.float16, np.array([16, 1]), np.uint64(1 << 63))
    assert spec == TensorSpec((4, 8), "float16", (16, 1), 1 << 63)
    assert {type(value) for value in (*spec.shape, *spec.strides, spec.address)} == {int}
    assert eval(repr(spec)) == spec == pickle.loads(pickle.dumps(spec)) == dataclasses.replace(spec)
    assert hash(spec) == hash(dataclasses.replace(spec)) and TensorSpec((4, 8), "float16").strides is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.address = 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((8, "float32"), "shape=8 is not a sequence of integers; pass one integer for each dimension"),
        (((8, 8.5), "float32"), r"shape=\(8, 8.5\) is not a sequence of integers"),
        (((8, float("nan")), "float32"), r"shape=\(8, nan\) is not a sequence"),
        (((8, 8), "float32", (8,)), r"strides=\(8,\) has length 1, but shape=\(8, 8\) has length 2"),
        (((8, 8), "float32", "ab"), "strides='ab' is not a sequence"),
        (((8, 1 << 63), "float32"), r"shape=\(8, 9223372036854775808\) gives 9223372036854775808, which does not fit"),
        (
            ((2, 1 << 40, 1 << 40), "float32"),
            r"C-contiguous, gives 1208925819614629174706176, which does not fit in 64",
        ),
        (((8,), "float32", (-(1 << 63) - 1,)), r"strides=\(-9223372036854775809,\) gives -9223372036854775809, which"),
        (((8,), "float32", None, -1), r"address=-1 is not a 64-bit address; pass 0 to 2\^64 - 1"),
        (((8,), "float32", None, 1 << 64), "address=18446744073709551616 is not a 64-bit address"),
        (((8,), "float32", None, 1.0), "address is 1.0; pass an integer"),
        (((10**5000, 1), "float32"), r"shape=\(<int of 16610 bits>, 1\) gives <int of 16610 bits>, which does not fit"),
        (((8, 8), "float32", (-(10**5000), 1)), r"strides=\(<int of 16610 bits>, 1\) gives <int of 16610 bits>, which"),
        (((2, *(1 << 62,) * 99), "float32"), r"C-contiguous, gives <int of 6139 bits>, which does not fit in 64"),
        (((8,), "float32", None, 10**5000), "address=<int of 16610 bits> is not a 64-bit address"),
        (((8,), "float7"), "dtype='float7' is not a dtype; choose one of int8, int16"),
        (((8,), None), "dtype=None is not a dtype; choose one of"),
        (((8,), np.float32(3)), r"dtype=np.float32\(3.0\) is not a dtype"),
        (((8,), "f4,("), r"dtype='f4,\(' is not a dtype"),
        (((8,), "float4_e2m1fn"), "unsupported dtype 'float4_e2m1fn'; choose one of int8, int16"),
        (((8,), "torch.qint8"), "unsupported dtype 'qint8'"),
        (((8,), ">f4"), "dtype='>f4' is not in native byte order, which TMA needs; pass a dtype in native byte order"),
    ],
)
def test_a_spec_names_its_fault(arguments, message):
    with pytest.raises(TensorMapError, match=message):
        TensorSpec(*arguments)


def test_the_widest_spec():
    extremes = TensorSpec((1, (1 << 63) - 1), "uint8", (-(1 << 63), 1), (1 << 64) - 1)
    params = params_of(extremes, box_dim=(1, 16))
    assert (params.global_address, params.global_dim) == ((1 << 64) - 1, ((1 << 63) - 1, 1))


@given(st.lists(st.integers(1, 50), min_size=1, max_size=5), st.sampled_from(["int8", "float16", "complex64"]))
def test_a_spec_without_strides_is_contiguous(shape, dtype):
    array = np.zeros((1,) * len(shape), dtype)
    strides = np.broadcast_to(array, shape).copy().strides
    explicit = TensorSpec(shape, dtype, [stride // array.itemsize for stride in strides])
    box = {"box_dim": (1,) * len(shape)}
    assert params_of(TensorSpec(shape, dtype), **box) == params_of(explicit, **box)
    assert describe_tensor(shape, None, dtype).strides == explicit.strides
