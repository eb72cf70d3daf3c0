"""Tests of descriptors of im2col and im2col wide maps on a fake driver."""

import dataclasses
import re

import pytest
from hypothesis import assume, given

import cuda_tma
from cuda_tma import (
    Im2colParams,
    Im2colWideParams,
    TensorMapError,
)
from cuda_tma._data_type import element_bits
from cuda_tma._make.encode import tiled_params
from cuda_tma._options import TensorMapIm2colOptions, TensorMapIm2colWideOptions, options_of
from cuda_tma._read.dlpack import describe_tensor
from cuda_tma.testing import im2col_params

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
    # The driver ignores the innermost element stride.
    params = dataclasses.replace(params, element_strides=(1, *params.element_strides[1:]))
    tensor = describe_tensor(
        params.global_dim[::-1], _strides_of(params), f"uint{element_bits(params.data_type)}", params.global_address
    )
    # A map keeps the stride of each dimension whose extent is greater than 1.
    assume(all(extent > 1 for extent in params.global_dim))
    assert tiled_params(tensor, options_of(params)) == params


def _strides_of(params):
    return (*(stride * 8 // element_bits(params.data_type) for stride in params.global_strides[::-1]), 1)


@pytest.mark.parametrize(
    ("shape", "changes", "message"),
    [
        ((8, 8, 64), {}, r"pixel_box_lower_corner=\(-1, -1\) has length 2 for a tensor of rank 3 .* \(H, W\) for NHWC"),
        ((2, 8, 8, 64), {"pixel_box_upper_corner": (1,)}, r"has length 2, but .*_corner=\(1,\) has length 1; give"),
        ((2, 8, 8, 64), {"element_strides": (1, 1, 1)}, r"element_strides=\(1, 1, 1\) has length 3, but pixel"),
        ((2, 8, 8, 64), {"element_strides": (1, 1, 1, 2)}, "steps of 2 elements along the innermost dimension"),
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


def test_an_im2col_descriptor_has_the_drivers_bytes(driver, device_tensor):
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


def test_refusals_of_the_driver_are_explained_in_terms_of_the_convolution(driver, device_tensor):
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
    # The mode W128 has 128 pixels for any pixels_per_column.
    assert descriptor.tx_bytes == 128 * 32 * 4
    assert repr(descriptor).startswith("TensorMapDescriptor(im2colwide, rank 4, float32 (2, 8, 8, 64), column 128 ")
    assert cuda_tma.create_tensor_maps([tensor], WIDE)[0].params == descriptor.params
    other = device_tensor((2, 8, 8, 64), address=1 << 33)
    descriptor.replace_address(other)
    assert descriptor == cuda_tma.create_tensor_map(other, WIDE) and isinstance(descriptor.params, Im2colWideParams)
    assert cuda_tma.create_tensor_map(device_tensor((2, 8, 64)), WIDE).params.rank == 3
    strided = dataclasses.replace(WIDE, element_strides=(1, 1, 2, 1))
    assert cuda_tma.create_tensor_map(tensor, strided).params.element_strides == (1, 2, 1, 1)
    with pytest.raises(TensorMapError, match=r"element_strides=\(1, 1, 2, 1\) has length 4 for a tensor of rank 3"):
        cuda_tma.create_tensor_map(device_tensor((2, 8, 64)), strided)


def test_im2col_wide_is_refused_without_an_instruction_for_it(driver, device_tensor):
    """Driver 580 creates im2col wide maps on compute capability 9.0, where no instruction can use the maps."""
    with pytest.raises(TensorMapError, match="compute capability 9.0; TMA needs 10.0 or later for im2col wide"):
        cuda_tma.create_tensor_map(device_tensor((2, 8, 8, 64)), WIDE)
    assert driver.encoded == 0
    driver.compute_capability = (10, 0)
    driver.install(without=["cuTensorMapEncodeIm2colWide"])
    with pytest.raises(TensorMapError, match=r"no cuTensorMapEncodeIm2colWide, which came with CUDA 12.8"):
        cuda_tma.create_tensor_map(device_tensor((2, 8, 8, 64)), WIDE)


EVERY_OPTION = {"interleave": "32B", "swizzle": "32B", "l2_promotion": "256B", "oob_fill": "NAN"}


def test_every_im2col_option_reaches_the_driver(driver, device_tensor):
    """In the test, each im2col option has a different value, so that the test finds exchanged options."""
    options = TensorMapIm2colOptions(
        (-1, -2, -3), (4, 5, 6), 16, 64, (5, 4, 3, 2, 1), "FLOAT16", allocation_class="LARGE", **EVERY_OPTION
    )
    descriptor = cuda_tma.create_tensor_map(device_tensor((9, 10, 11, 12, 32), dtype="float16"), options)
    assert driver.params == Im2colParams(
        data_type=6, global_address=1 << 32, global_dim=(32, 12, 11, 10, 9), global_strides=(64, 768, 8448, 84480),
        pixel_box_lower_corner=(-3, -2, -1), pixel_box_upper_corner=(6, 5, 4), channels_per_pixel=16,
        pixels_per_column=64, element_strides=(1, 2, 3, 4, 5), interleave=2, swizzle=1, l2_promotion=3, oob_fill=1,
    )  # fmt: skip
    assert descriptor.params == dataclasses.replace(driver.params, allocation_class=2)


def test_every_wide_option_reaches_the_driver(driver, device_tensor):
    driver.compute_capability = (10, 0)
    every_option = EVERY_OPTION | {"swizzle": "64B", "allocation_class": "LARGE", "mode": "W128"}
    options = TensorMapIm2colWideOptions(-3, 6, 16, 64, (5, 4, 3, 2, 1), "FLOAT16", **every_option)
    descriptor = cuda_tma.create_tensor_map(device_tensor((9, 10, 11, 12, 32), dtype="float16"), options)
    assert driver.params == Im2colWideParams(
        data_type=6, global_address=1 << 32, global_dim=(32, 12, 11, 10, 9), global_strides=(64, 768, 8448, 84480),
        pixel_box_lower_corner_width=-3, pixel_box_upper_corner_width=6, channels_per_pixel=16, pixels_per_column=64,
        element_strides=(1, 2, 3, 4, 5), interleave=2, swizzle=2, l2_promotion=3, oob_fill=1, mode=1,
    )  # fmt: skip
    assert descriptor.params == dataclasses.replace(driver.params, allocation_class=2)


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        ("pixel_box_lower_corner", (1, -(2**31) - 1), "pixel_box_lower_corner[1]=-2147483649"),
        ("pixel_box_upper_corner", (2**31, 1), "pixel_box_upper_corner[0]=2147483648"),
        ("channels_per_pixel", 2**32, "channels_per_pixel=4294967296"),
        ("pixels_per_column", -1, "pixels_per_column=-1"),
    ],
)
def test_numbers_that_would_be_cut_on_their_way(driver, device_tensor, name, value, place):
    with pytest.raises(TensorMapError, match=f"^{re.escape(place)} does not fit the driver's"):
        cuda_tma.create_tensor_map(device_tensor((2, 8, 8, 64)), dataclasses.replace(IM2COL, **{name: value}))
    assert driver.encoded == 0


def test_the_largest_numbers_reach_the_driver(driver, device_tensor):
    corners = {"pixel_box_lower_corner": (-(2**31), 2**31 - 1), "pixel_box_upper_corner": (2**31 - 1, -(2**31))}
    extremes = dataclasses.replace(IM2COL, **corners, channels_per_pixel=2**32 - 1, pixels_per_column=0)
    with pytest.raises(TensorMapError):
        cuda_tma.create_tensor_map(device_tensor((2, 8, 8, 64)), extremes)
    assert driver.params.pixel_box_lower_corner == (2**31 - 1, -(2**31))
    assert driver.params.pixel_box_upper_corner == (-(2**31), 2**31 - 1)
    assert (driver.params.channels_per_pixel, driver.params.pixels_per_column) == (2**32 - 1, 0)


@pytest.mark.parametrize("name", ["pixel_box_lower_corner_width", "pixel_box_upper_corner_width"])
@pytest.mark.parametrize("value", [2**31, -(2**31) - 1])
def test_wide_corners_that_would_be_cut(driver, device_tensor, name, value):
    driver.compute_capability = (10, 0)
    with pytest.raises(TensorMapError, match=f"^{name}={value} does not fit the driver's signed 32-bit integer"):
        cuda_tma.create_tensor_map(device_tensor((2, 8, 8, 64)), dataclasses.replace(WIDE, **{name: value}))


def test_the_device_of_a_wide_map_is_queried(driver, device_tensor):
    driver.context, driver.device, driver.compute_capability = 0xD5, 5, (10, 0)
    cuda_tma.create_tensor_map(device_tensor((2, 8, 8, 64), device_id=5), WIDE)
    assert [arguments[1:] for arguments in driver.called("cuDeviceGetAttribute")] == [(75, 5)]
    with pytest.raises(TensorMapError, match="rank 6"):
        cuda_tma.create_tensor_map(device_tensor((2, 2, 2, 8, 8, 64), device_id=5), WIDE)
    with pytest.raises(TensorMapError, match="asks for steps of 2"):
        strided = dataclasses.replace(WIDE, element_strides=(1, 1, 1, 2))
        cuda_tma.create_tensor_map(device_tensor((2, 8, 8, 64), device_id=5), strided)


def test_options_of_more_dimensions_than_a_tensor_can_have(driver, device_tensor):
    """The package refuses options of more dimensions than a tensor can have, because the values do not fit into the C
    arrays."""
    for options in (
        TensorMapIm2colOptions((0,) * 6, (0,) * 6, 32, 8),
        TensorMapIm2colOptions((0,) * 3, (0,) * 3, 32, 8, element_strides=(1,) * 5),
    ):
        with pytest.raises(TensorMapError, match=r"has length \d for a tensor of rank 4"):
            cuda_tma.create_tensor_map(device_tensor((2, 8, 8, 64)), options)
    with pytest.raises(TensorMapError, match=r"box_dim=\(1, 1, 1, 1, 1, 1, 1\) has length 7 for a tensor of rank 4"):
        cuda_tma.create_tensor_map(device_tensor((2, 8, 8, 64)), box_dim=(1,) * 7)
    assert driver.encoded == 0


def test_the_drivers_reason_for_a_refused_wide_map(driver, device_tensor):
    tensor = device_tensor((2, 8, 8, 64))
    driver.errors["cuDeviceGetAttribute"] = 700
    with pytest.raises(Exception, match="cuDeviceGetAttribute failed with CUDA_ERROR_ILLEGAL_ADDRESS"):
        cuda_tma.create_tensor_map(tensor, WIDE)
    assert driver.encoded == 0
    del driver.errors["cuDeviceGetAttribute"]
    driver.compute_capability, driver.errors["cuTensorMapEncodeIm2colWide"] = (10, 0), 700
    with pytest.raises(TensorMapError, match="encoder failed with CUDA_ERROR_ILLEGAL_ADDRESS, for any arguments"):
        cuda_tma.create_tensor_map(tensor, WIDE)
    driver.errors["cuTensorMapEncodeIm2colWide"] = 201
    with pytest.raises(TensorMapError, match="no CUDA context is current"):
        cuda_tma.create_tensor_map(tensor, WIDE)
