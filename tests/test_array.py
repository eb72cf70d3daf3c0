"""Many maps at once, on a driver that is not there."""

import numpy as np
import pytest

import cuda_tma
from cuda_tma import TensorMapError, TensorMapOptions

OPTIONS = TensorMapOptions((16, 32), swizzle="128B")


def test_each_map_is_the_tensors_own(driver, device_tensor):
    tensors = [device_tensor((64 + n, 128), address=1 << n) for n in range(32, 40)]
    array = cuda_tma.create_tensor_maps(tensors, OPTIONS)
    one_by_one = [cuda_tma.create_tensor_map(tensor, OPTIONS) for tensor in tensors]
    assert bytes(array) == b"".join(map(bytes, one_by_one)) == bytes(memoryview(array))
    assert (len(array), array.nbytes, array.address % 128) == (8, 1024, 0)
    assert [array[index] for index in range(-8, 8)] == one_by_one * 2
    assert array[3].tensor is tensors[3] and memoryview(array).readonly
    with pytest.raises(IndexError):
        array[8]


@pytest.mark.parametrize("kind", [list, np.array, lambda values: np.array(values, np.int64)])
def test_one_geometry_and_many_addresses(driver, device_tensor, kind):
    addresses = [(1 << 33) + 4096 * n for n in range(100)]
    array = cuda_tma.create_tensor_maps(device_tensor((64, 128)), OPTIONS, addresses=kind(addresses))
    assert driver.encoded == 1
    one_by_one = [cuda_tma.create_tensor_map(device_tensor((64, 128), address=a), OPTIONS) for a in addresses]
    assert bytes(array) == b"".join(map(bytes, one_by_one))
    array.replace_addresses(kind(addresses[::-1]))
    assert bytes(array) == b"".join(map(bytes, one_by_one[::-1]))


@pytest.mark.parametrize(
    ("addresses", "message"),
    [
        ([16], r"shape \(1,\) .*give 2 integers"),
        ([16.0, 32.0], "dtype float64; give 2 integers"),
        ([[16, 32]], r"shape \(1, 2\)"),
        ([16, 40], "address 0x28 is not a multiple of 16"),
        ([16, -16], "address -16 is no 64-bit device address"),
        ([0, 16], "address 0 is no 64-bit device address"),
    ],
)
def test_refused_addresses_change_nothing(driver, device_tensor, addresses, message):
    array = cuda_tma.create_tensor_maps([device_tensor((64, 128))] * 2, OPTIONS)
    before = bytes(array)
    with pytest.raises(TensorMapError, match=message):
        array.replace_addresses(addresses)
    assert bytes(array) == before


def test_a_bad_tensor_among_good_ones(driver, device_tensor):
    with pytest.raises(TensorMapError, match="dimension 1, the innermost, has stride 2"):
        cuda_tma.create_tensor_maps([device_tensor((64, 128)), device_tensor((64, 128), (256, 2))], OPTIONS)
    with pytest.raises(TypeError, match="make a TensorMapArray with"):
        cuda_tma.TensorMapArray()


def test_none_at_all(driver):
    assert bytes(cuda_tma.create_tensor_maps([], OPTIONS)) == b""


def test_a_map_of_an_address_claims_no_tensor(driver, device_tensor):
    """Also where there is but one: it points elsewhere than the tensor whose geometry it has."""
    for count in (1, 2):
        array = cuda_tma.create_tensor_maps(device_tensor((64, 128)), OPTIONS, addresses=[1 << 20] * count)
        assert (array[0].tensor, array[0].is_stale()) == (None, False)


def test_like_tensors_are_encoded_once(driver, device_tensor):
    """A run of tensors that differ in the address alone: the same bytes, and refusals, as one at a time."""
    shapes = [(64, 128)] * 5 + [(32, 128)] * 2 + [(64, 128)]
    tensors = [device_tensor(shape, address=(1 << 33) + 4096 * n) for n, shape in enumerate(shapes)]
    array = cuda_tma.create_tensor_maps(tensors, OPTIONS)
    assert driver.encoded == 3
    assert bytes(array) == b"".join(bytes(cuda_tma.create_tensor_map(tensor, OPTIONS)) for tensor in tensors)
    with pytest.raises(TensorMapError, match="global_address"):
        cuda_tma.create_tensor_maps([*tensors, device_tensor((64, 128), address=(1 << 33) + 8)], OPTIONS)


def test_which_tensor_is_refused(driver, device_tensor):
    tensors = [device_tensor((64, 128))] * 3 + [device_tensor((64, 127))]
    with pytest.raises(TensorMapError, match=r"^tensors\[3\]: no tensor map for a float32 tensor of shape \(64, 127\)"):
        cuda_tma.create_tensor_maps(tensors, OPTIONS)
    with pytest.raises(TypeError, match="tensors is a DeviceTensor; give a sequence of tensors, or addresses= beside"):
        cuda_tma.create_tensor_maps(tensors[0], OPTIONS)
    with pytest.raises(IndexError, match="index 4 is outside the 3 maps"):
        cuda_tma.create_tensor_maps(tensors[:3], OPTIONS)[4]
