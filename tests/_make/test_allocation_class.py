"""Tests of the allocation class in a tensor map, and of drivers that set this class wrongly."""

import pytest

import cuda_tma
from cuda_tma import TensorMapError, TensorMapIm2colOptions, TensorMapOptions

LIMIT = 128 * 1024
OLD = ["cuTensorMapSetAllocationClass"]


@pytest.fixture
def blackwell(driver):
    """Return a fake driver without the entry point for compute capability 10.0. The fake driver reports every tensor as
    LARGE."""
    driver.compute_capability, driver.encodes_class = (10, 0), 2
    driver.install(without=OLD)
    return driver


def made(device_tensor, shape, strides=None, dtype="float32", options=None):
    options = options or TensorMapOptions((1,) * (len(shape) - 1) + (16,))
    return cuda_tma.create_tensor_map(device_tensor(shape, strides, dtype), options)


@pytest.mark.parametrize(
    ("shape", "strides", "dtype", "reach_bytes"),
    [
        ((256, 127), (128, 1), "float32", LIMIT - 4),
        ((256, 128), (128, 1), "float32", LIMIT),
        ((255, 128), (128, 1), "float32", LIMIT - 512),
        ((2, 16), (LIMIT // 4 - 20, 1), "float32", LIMIT - 16),
        ((2, 16), (LIMIT // 4 - 16, 1), "float32", LIMIT),
        ((2, 16), (LIMIT // 4, 1), "float32", LIMIT + 64),
        ((2, 16), (LIMIT // 4 * 1024, 1), "float32", LIMIT * 1024 + 64),
        # A map does not use the stride of a dimension with the extent 1.
        ((1, 16), (LIMIT, 1), "float32", 64),
        # The driver receives the stride 196608.
        ((1, 2, 16), (5, 24576, 1), "float32", 98304 + 64),
        # The product of the extents has more than 64 bits.
        ((2**25 + 1, 16), (2**37, 1), "float32", 2**64 + 64),
        # The strides in elements stay within the legal range.
        ((100000, 32), (0, 1), "float32", 128),
        ((LIMIT,), None, "uint8", LIMIT),
        ((LIMIT - 1,), None, "uint8", LIMIT - 1),
        ((LIMIT // 8 - 1,), None, "float64", LIMIT - 8),
        ((4, 8, 16, 32), (8192, 1024, 64, 1), "float32", 3 * 32768 + 7 * 4096 + 15 * 256 + 128),
        ((4, 9, 16, 32), (8192, 1024, 64, 1), "float32", 3 * 32768 + 8 * 4096 + 15 * 256 + 128),
        ((2, 2, 2, 2, 16), (32740, 4, 4, 4, 1), "float32", LIMIT - 112 + 48 + 64),
        ((2, 2, 2, 2, 16), (32736, 4, 4, 4, 1), "float32", LIMIT - 128 + 48 + 64),
    ],
)
def test_small_tensors_are_small(blackwell, device_tensor, shape, strides, dtype, reach_bytes):
    descriptor = made(device_tensor, shape, strides, dtype)
    assert descriptor.params.allocation_class == (1 if reach_bytes < LIMIT else 2)
    assert bytes(descriptor) == cuda_tma.encode(descriptor.params)
    assert descriptor.params.unexplained == ()


def test_the_bit_is_bit_85_and_no_other(blackwell, device_tensor):
    fixed = int.from_bytes(bytes(made(device_tensor, (64, 128))), "little")
    blackwell.compute_capability = (9, 0)
    as_written = int.from_bytes(bytes(made(device_tensor, (64, 128))), "little")
    assert as_written ^ fixed == 1 << 85 and fixed >> 85 & 1 == 0


@pytest.mark.parametrize("compute_capability", [(9, 0), (9, 9), (10, 0), (10, 3), (12, 0)])
def test_compute_capabilities(blackwell, device_tensor, compute_capability):
    """Before compute capability 10.0, the allocation class has no meaning, and its bit keeps the value that the driver
    wrote."""
    blackwell.compute_capability = compute_capability
    wanted = 1 if compute_capability >= (10, 0) else 2
    assert made(device_tensor, (64, 128)).params.allocation_class == wanted


def test_a_small_class_of_the_driver_stays(blackwell, device_tensor):
    blackwell.encodes_class = 1
    for shape in ((64, 128), (1024, 1024)):
        assert made(device_tensor, shape).params.allocation_class == 1
    # The package reads no device attribute for a small tensor.
    assert blackwell.called("cuDeviceGetAttribute") == []


def test_arrays_and_im2col_maps_are_fixed_too(blackwell, device_tensor):
    options = TensorMapOptions((1, 16))
    shapes = [(64, 128), (64, 128), (1024, 128), (64, 128)]
    tensors = [device_tensor(shape, address=1 << 32 + n) for n, shape in enumerate(shapes)]
    maps = cuda_tma.create_tensor_maps(tensors, options)
    assert [each.params.allocation_class for each in maps] == [1, 1, 2, 1]
    many = cuda_tma.create_tensor_maps(tensors[0], options, addresses=[16, 32])
    assert [each.params.allocation_class for each in many] == [1, 1]
    im2col = TensorMapIm2colOptions((0,), (0,), 16, 8)
    assert made(device_tensor, (2, 8, 64), options=im2col).params.allocation_class == 1
    assert made(device_tensor, (64, 64, 64), options=im2col).params.allocation_class == 2


def test_packed_elements_are_counted_in_bytes(blackwell, device_tensor):
    options = TensorMapOptions((1, 128), data_type="16U4_ALIGN16B")
    for rows, wanted in ((2047, 1), (2048, 2)):
        assert made(device_tensor, (rows, 64), None, "uint8", options).params.allocation_class == wanted


def test_with_the_entry_point_the_driver_gets_the_class(blackwell, device_tensor):
    blackwell.install()
    for shape in ((64, 128), (1024, 1024)):
        assert made(device_tensor, shape).params.allocation_class == 1
        large = TensorMapOptions((1, 16), allocation_class="LARGE")
        assert made(device_tensor, shape, options=large).params.allocation_class == 2
    assert [arguments[1:] for arguments in blackwell.called(OLD[0])] == [(1, None), (2, None)] * 2


def test_without_it_no_request_is_possible(blackwell, device_tensor):
    for value, name in ((1, "SMALL"), (2, "LARGE")):
        with pytest.raises(TensorMapError, match=f'allocation_class="{name}" needs a driver with cuTensorMapSetAlloc'):
            made(device_tensor, (64, 128), options=TensorMapOptions((1, 16), allocation_class=value))


def test_a_wide_map_has_the_class_that_its_bytes_have(blackwell, device_tensor):
    wide = cuda_tma.TensorMapIm2colWideOptions(-1, -1, 32, 64, mode="W128")
    large, small = (made(device_tensor, (n, 8, 8, 64), options=wide) for n in (8, 2))
    assert (large.params.allocation_class, small.params.allocation_class) == (2, 1)
    assert (large.params.mode, large.params.channels_per_pixel) == (1, 32)
