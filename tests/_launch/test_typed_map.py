"""Tests of descriptors that match, or do not match, the type of a typed map in a kernel's parameters."""

import ctypes
import dataclasses
from itertools import product

import numpy as np
import pytest
from cuda import core
from cuda.bindings.driver import CUtensorMap

import cuda_tma
from cuda_tma import TensorMapDataType as T
from cuda_tma import TensorMapError, TensorMapIm2colOptions, TensorMapIm2colWideOptions, TensorMapOptions
from cuda_tma._launch.typed_map import fixed_bits
from cuda_tma._make import device_memory
from cuda_tma._map_type import MapType
from cuda_tma.codec._fields import fields
from cuda_tma.params import Im2colParams, TiledParams
from tests.support.launching import ForeignStream, kernel_name

TILE = MapType(mode="tiled", tile_dim=(16, 32), data_type=T.FLOAT32, swizzle="128B")
COLUMN = MapType(mode="im2col", tile_dim=(64, 32), data_type=T.FLOAT32, swizzle="128B", rank=4)
CORNERS = ((-1, -1), (1, 1))
SIZES = [128, 4]


@pytest.fixture
def tensor(device_tensor):
    return device_tensor((64, 128))


@pytest.fixture
def image(device_tensor):
    return device_tensor((2, 16, 16, 64))


def options(**changes):
    return TensorMapOptions(**{**TILE.keywords, **changes})


def test_a_descriptor_of_the_type(launch, tensor):
    descriptor = cuda_tma.create_tensor_map(tensor, TILE.options)
    for _ in range(2):
        assert launch(kernel_name(TILE, "i"), SIZES, descriptor, 3).arguments == [bytes(descriptor), b"\3\0\0\0"]


MISMATCHES = [
    ({"box_dim": (16, 16)}, r"its box_dim is \(16, 16\), the kernel's \(16, 32\)"),
    ({"box_dim": (8, 32)}, r"its box_dim is \(8, 32\), the kernel's \(16, 32\)"),
    ({"element_strides": (2, 1)}, r"its element_strides is \(2, 1\), the kernel's \(1, 1\)"),
    ({"data_type": "TFLOAT32"}, "its data_type is TFLOAT32, the kernel's FLOAT32"),
    ({"data_type": "int32"}, "its data_type is INT32, the kernel's FLOAT32"),
    ({"swizzle": "NONE"}, "its swizzle is NONE, the kernel's 128B"),
    ({"box_dim": (16, 16), "swizzle": "64B"},
     r"its swizzle is 64B, the kernel's 128B"),
    ({"box_dim": (8, 16), "swizzle": "64B", "data_type": "uint32"},
     r"its box_dim is \(8, 16\), the kernel's \(16, 32\); its data_type is UINT32, the kernel's FLOAT32; its swizzle "
     "is 64B, the kernel's 128B"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), MISMATCHES)
def test_a_descriptor_of_another_type(launch, driver, tensor, changes, message):
    descriptor = cuda_tma.create_tensor_map(tensor, options(**changes))
    with pytest.raises(TensorMapError, match=message) as refused:
        launch(kernel_name("i", TILE), [4, 128], 3, descriptor)
    text = str(refused.value)
    assert text.startswith(f"argument 1 of kernel k is of type {TILE}, and the map that was passed is of another: ")
    assert text.endswith(
        "Either pass the tensor itself, or make the map with box_dim=(16, 32), data_type='FLOAT32', swizzle='128B'; "
        "or change the kernel's type"
    )
    assert driver.launches == []


def test_interleave_rank_and_mode(launch, device_tensor, image):
    planes = MapType(mode="tiled", tile_dim=(1, 8, 8, 4), data_type=T.FLOAT32)
    interleaved = cuda_tma.create_tensor_map(
        device_tensor((2, 16, 16, 8)), box_dim=(1, 8, 8, 4), element_strides=(1, 1, 1, 1), interleave="16B"
    )
    column = cuda_tma.create_tensor_map(image, TensorMapIm2colOptions(*CORNERS, **COLUMN.keywords))
    flat = cuda_tma.create_tensor_map(device_tensor((64, 128)), TILE.options)
    for descriptor, wanted, message in [
        (interleaved, planes, "its interleave is 16B, the kernel's NONE"),
        (flat, planes, "is of another: its rank is 2, the kernel's 4. Either"),
        (column, planes, "is of another: its mode is im2col, the kernel's tiled. Either"),
        (flat, COLUMN, "is of another: its mode is tiled, the kernel's im2col. Either make it with "
                       r"TensorMapIm2colOptions\(lower_corner, upper_corner, pixels_per_column=64, "
                       r"channels_per_pixel=32, data_type='FLOAT32', swizzle='128B'\); or change"),
        (column, dataclasses.replace(COLUMN, rank=5), "its rank is 4, the kernel's 5"),
        (column, dataclasses.replace(COLUMN, tile_dim=(128, 16)),
         "its pixels_per_column is 64, the kernel's 128; its channels_per_pixel is 32, the kernel's 16"),
    ]:  # fmt: skip
        with pytest.raises(TensorMapError, match=message):
            launch(kernel_name(wanted), [128], descriptor)


def test_im2col_descriptors_of_any_corners_and_strides(launch, image):
    for corners, strides in product([CORNERS, ((0, 0), (-2, -2))], [None, (1, 2, 2, 1)]):
        column = TensorMapIm2colOptions(*corners, element_strides=strides, **COLUMN.keywords)
        descriptor = cuda_tma.create_tensor_map(image, column)
        assert launch(kernel_name(COLUMN), [128], descriptor).arguments == [bytes(descriptor)]


def test_an_im2col_wide_descriptor_has_its_options(launch, driver, image):
    driver.compute_capability = (10, 0)
    wide = TensorMapIm2colWideOptions(-1, 1, **COLUMN.keywords)
    descriptor = cuda_tma.create_tensor_map(image, wide)
    with pytest.raises(TensorMapError, match="its mode is im2col wide, the kernel's im2col"):
        launch(kernel_name(COLUMN), [128], descriptor)


@pytest.mark.parametrize("fill", [0, 1])
@pytest.mark.parametrize("promotion", [0, 2])
def test_fill_and_promotion_count_where_they_are_stated(launch, tensor, fill, promotion):
    wanted = dataclasses.replace(TILE, oob_fill=fill, l2_promotion=promotion)
    for given in product(range(2), range(4)):
        descriptor = cuda_tma.create_tensor_map(tensor, options(oob_fill=given[0], l2_promotion=given[1]))
        if (fill, promotion) in [given, (given[0], 0), (0, given[1]), (0, 0)]:
            assert launch(kernel_name(wanted), [128], descriptor).arguments == [bytes(descriptor)]
        else:
            with pytest.raises(TensorMapError, match=r"its (oob_fill is|l2_promotion is) \S+, the kernel's (NAN|128B)"):
                launch(kernel_name(wanted), [128], descriptor)


def test_the_allocation_class_does_not_count(launch, driver, tensor):
    driver.compute_capability = (10, 0)
    descriptor = cuda_tma.create_tensor_map(tensor, options(allocation_class="LARGE"))
    assert launch(kernel_name(TILE), [128], descriptor).arguments == [bytes(descriptor)]


class Bytes128(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_uint8 * 128),)


def others(raw):
    """Return objects that contain 128 bytes, but are not descriptors of cuda_tma."""
    bound = CUtensorMap()
    ctypes.memmove(int(bound.getPtr()), raw, 128)
    return [bound, Bytes128.from_buffer_copy(raw), np.frombuffer(raw, "V128")[0]]


def test_maps_of_other_libraries(launch, tensor):
    right = bytes(cuda_tma.create_tensor_map(tensor, TILE.options))
    wrong = bytes(cuda_tma.create_tensor_map(tensor, options(box_dim=(16, 16))))
    for given in others(right):
        assert launch(kernel_name(TILE), [128], given).arguments == [right]
    for given in others(wrong):
        with pytest.raises(TensorMapError, match=r"argument 0 .* its box_dim is \(16, 16\), the kernel's \(16, 32\)"):
            launch(kernel_name(TILE), [128], given)
    for given in others(b"\xff" * 128):
        with pytest.raises(
            TensorMapError, match="the map that was passed is of another: its bytes are not a tensor map"
        ):
            launch(kernel_name(TILE), [128], given)


@pytest.mark.parametrize("value", [3, 1.5, True, 1j, np.int32(1), np.float64(1), ctypes.c_int(3)])
def test_numbers_are_not_maps(launch, value):
    with pytest.raises(TypeError, match=r"argument 0 .* takes TiledMap<Tile<FLOAT32, Box<16, 32>, SWIZZLE_128B>> of "
                                        r"128 bytes, and .* was passed.*; pass a tensor or a Tens"):  # fmt: skip
        launch(kernel_name(TILE), [128], value)


def test_a_parameter_that_is_not_read_takes_any_descriptor(launch, tensor):
    """A parameter with an unknown box, such as N * f(M), accepts the descriptors that an untyped map accepts."""
    name = kernel_name(TILE).replace("Li16E", "XclL_Z1fiELi1EEE")
    descriptor = cuda_tma.create_tensor_map(tensor, box_dim=(8, 8))
    assert launch(name, [128], descriptor).arguments == [bytes(descriptor)]


# ---- maps in memory ----


@pytest.fixture
def uploaded(monkeypatch):
    """Return a function that copies the tensor maps of given tensors into a Buffer."""
    addresses = iter(range(0xB0000000, 0xC0000000, 1 << 20))

    class Resource:
        memory_resource = property(lambda self: self)

        def allocate(self, size, *, stream):
            return core.Buffer.from_handle(next(addresses), size)

    monkeypatch.setattr(device_memory, "CoreDevice", lambda device_id: Resource())
    return lambda tensors, options: cuda_tma.create_tensor_maps(tensors, options).upload(ForeignStream())


def pointer_name(map_type):
    return kernel_name(map_type).replace("_Z1k", "_Z1kPK")


def test_uploaded_maps_of_the_type(launch, driver, device_tensor, uploaded):
    tensors = [device_tensor((64 + row, 128), address=1 << 32 + row) for row in range(5)]
    for options in (TILE.options, TensorMapOptions((16, 32), swizzle="128B", oob_fill=1, allocation_class="SMALL")):
        buffer = uploaded(tensors, options)
        assert launch(pointer_name(TILE), [8], buffer).arguments == [int(buffer.handle).to_bytes(8, "little")]
    images = [device_tensor((2, 16, 16, 64))]
    columns = uploaded(images, TensorMapIm2colOptions(*CORNERS, **COLUMN.keywords))
    assert launch(pointer_name(COLUMN), [8], columns).arguments[0] == int(columns.handle).to_bytes(8, "little")


def test_uploaded_maps_of_another_type(launch, driver, device_tensor, uploaded):
    tensors = [device_tensor((64, 128), dtype=dtype) for dtype in ("float32", "float32", "int32", "float32")]
    plain = {"box_dim": (16, 32), "swizzle": "128B"}
    for taken, options, wanted, message in [
        (tensors[:2], TensorMapOptions(**{**plain, "box_dim": (16, 16)}), TILE,
         r"its box_dim is \(16, 16\), the kernel's \(16, 32\). Either make the array with TensorMapOptions\(box_dim=\("
         r"16, 32\), data_type='FLOAT32', swizzle='128B'\); or change the kernel's type"),
        (tensors, TensorMapOptions(**plain), TILE, "its data_type is INT32, the kernel's FLOAT32"),
        (tensors[:2], TensorMapOptions(**plain), COLUMN, r"its mode is tiled, the kernel's im2col. Either make the "
         r"array with TensorMapIm2colOptions\(lower_corner, upper_corner, pixels_per_column=64"),
    ]:  # fmt: skip
        buffer = uploaded(taken, options)
        message = (
            f"^argument 0 of kernel k points to maps of type .*, and a map of the uploaded array is of "
            f"another: {message}"
        )
        with pytest.raises(TensorMapError, match=message):
            launch(pointer_name(wanted), [8], buffer)
    assert driver.launches == []


def test_uploaded_wide_maps(launch, driver, device_tensor, uploaded):
    driver.compute_capability = (10, 0)
    buffer = uploaded([device_tensor((2, 16, 16, 64))], TensorMapIm2colWideOptions(-1, 1, **COLUMN.keywords))
    with pytest.raises(TensorMapError, match="its mode is im2col wide, the kernel's im2col"):
        launch(pointer_name(COLUMN), [8], buffer)


def test_a_buffer_to_which_nothing_was_uploaded(launch, tensor, uploaded):
    buffer = uploaded([tensor], TensorMapOptions((8, 8)))
    address = int(buffer.handle)
    # A parameter of any pointer type accepts the buffer.
    assert launch("_Z1kPv", [8], buffer).arguments == [address.to_bytes(8, "little")]
    del buffer
    for given in (core.Buffer.from_handle(address, 128), address):
        assert launch(pointer_name(TILE), [8], given).arguments == [address.to_bytes(8, "little")]


@pytest.mark.parametrize("map_type", [TILE, COLUMN, dataclasses.replace(TILE, oob_fill=1, l2_promotion=3)])
def test_each_bit_that_a_type_fixes_is_one_of_a_field(map_type):
    """In the 128 bytes of a tensor map, the bits that a typed map fixes and the bits of all other fields are
    disjoint."""
    mask, value = fixed_bits(map_type)
    named = {"data_type", "interleave", "swizzle"} | {
        name for name in ("oob_fill", "l2_promotion") if getattr(map_type, name)
    }
    mode = TiledParams if map_type.mode == "tiled" else Im2colParams
    named |= {"box_dim", "element_strides"} if mode is TiledParams else {"pixels_per_column", "channels_per_pixel"}
    found = {field.name for field in fields(mode, map_type.rank) if field.mask & mask}
    assert found == named and value & ~mask == 0
    assert all(field.mask & mask in (0, field.mask) for field in fields(mode, map_type.rank))
