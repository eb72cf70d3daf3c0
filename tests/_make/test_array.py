"""Tests of many maps that are created at once on a fake driver."""

import gc
import weakref

import numpy as np
import pytest

import cuda_tma
from cuda_tma import TensorMapError, TensorMapOptions
from tests.support.buffers import WRITABLE, asked, check_read_only_bytes

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
        ([16], r"shape \(1,\) .*pass 2 integers"),
        ([16.0, 32.0], "dtype float64; pass 2 integers"),
        ([[16, 32]], r"shape \(1, 2\)"),
        ([16, 40], "address 0x28 is not a multiple of 16"),
        ([16, -16], "address -16 is not a 64-bit address"),
        ([0, 16], "address 0 is not a 64-bit address"),
        ([np.uint64(16), 1 << 64], "address 18446744073709551616 is not a 64-bit address"),
        ([np.uint64(16), 1 << 63 | 8], "address 0x8000000000000008 is not a multiple of 16"),
        (["16", 16], "pass 2 integers"),
    ],
)
def test_refused_addresses_change_nothing(driver, device_tensor, addresses, message):
    array = cuda_tma.create_tensor_maps([device_tensor((64, 128))] * 2, OPTIONS)
    before = bytes(array)
    with pytest.raises(TensorMapError, match=message):
        array.replace_addresses(addresses)
    assert bytes(array) == before


def test_numpys_integers_with_pythons(driver, device_tensor):
    """``np.asarray`` converts a mixed list to floats, which represent only 53 bits."""
    array = cuda_tma.create_tensor_maps([device_tensor((64, 128))] * 2, OPTIONS)
    addresses = [np.uint64((1 << 62) + 16), (1 << 62) + 32]
    array.replace_addresses(addresses)
    assert [array[index].params.global_address for index in range(2)] == addresses


def test_an_array_can_be_watched(driver, device_tensor):
    array = cuda_tma.create_tensor_maps([device_tensor((64, 128))], OPTIONS)
    gone = weakref.ref(array)
    assert gone() is array
    del array
    assert gone() is None


def test_a_bad_tensor_among_good_ones(driver, device_tensor):
    with pytest.raises(TensorMapError, match="dimension 1, the innermost, has stride 2"):
        cuda_tma.create_tensor_maps([device_tensor((64, 128)), device_tensor((64, 128), (256, 2))], OPTIONS)
    with pytest.raises(TypeError, match="make a TensorMapArray with"):
        cuda_tma.TensorMapArray()


def test_no_device_at_all(driver):
    assert bytes(cuda_tma.create_tensor_maps([], OPTIONS)) == b""


def test_a_map_of_an_address_has_no_tensor(driver, device_tensor):
    """A tensor map of an address does not keep a tensor, even if a tensor has the same address and geometry."""
    for count in (1, 2):
        array = cuda_tma.create_tensor_maps(device_tensor((64, 128)), OPTIONS, addresses=[1 << 20] * count)
        assert (array[0].tensor, array[0].is_stale()) == (None, False)


def test_like_tensors_are_encoded_once(driver, device_tensor):
    """For tensors that differ only in their addresses, one common call gives the same bytes and errors as separate
    calls."""
    shapes = [(64, 128)] * 5 + [(32, 128)] * 2 + [(64, 128)]
    tensors = [device_tensor(shape, address=(1 << 33) + 4096 * n) for n, shape in enumerate(shapes)]
    array = cuda_tma.create_tensor_maps(tensors, OPTIONS)
    assert driver.encoded == 3
    assert bytes(array) == b"".join(bytes(cuda_tma.create_tensor_map(tensor, OPTIONS)) for tensor in tensors)
    with pytest.raises(TensorMapError, match="global_address"):
        cuda_tma.create_tensor_maps([*tensors, device_tensor((64, 128), address=(1 << 33) + 8)], OPTIONS)


def test_index_of_the_refused_tensor(driver, device_tensor):
    tensors = [device_tensor((64, 128))] * 3 + [device_tensor((64, 127))]
    with pytest.raises(TensorMapError, match=r"^tensors\[3\]: no tensor map for a float32 tensor of shape \(64, 127\)"):
        cuda_tma.create_tensor_maps(tensors, OPTIONS)
    with pytest.raises(
        TypeError, match="tensors is a DeviceTensor; pass a sequence of tensors, or one with addresses="
    ):
        cuda_tma.create_tensor_maps(tensors[0], OPTIONS)
    with pytest.raises(IndexError, match="index 4 is outside the 3 maps"):
        cuda_tma.create_tensor_maps(tensors[:3], OPTIONS)[4]


# ---- the data of an element, and its lifetime ----


@pytest.mark.parametrize("make", [lambda x: cuda_tma.create_tensor_map(x, OPTIONS),
                                  lambda x: cuda_tma.create_tensor_maps([x], OPTIONS)[0]])  # fmt: skip
def test_an_element_has_its_dtype(driver, device_tensor, make):
    """A TMA copy does not distinguish int8 and uint8, but the comparison of two tensors uses their dtypes."""
    options = {"shape": (64, 128), "dtype": "int8"}
    descriptor = make(device_tensor(**options))
    assert "int8 as UINT8 (64, 128)" in repr(descriptor)
    before = bytes(descriptor)
    with pytest.raises(TensorMapError, match="dtype is uint8, and the descriptor was made for int8"):
        descriptor.replace_address(device_tensor((64, 128), dtype="uint8", address=1 << 33))
    assert bytes(descriptor) == before
    descriptor.replace_address(device_tensor(**options, address=1 << 33))
    assert descriptor.params.global_address == 1 << 33


def test_tensors_of_several_dtypes(driver, device_tensor):
    """The test's tensors have different dtypes, but equal bytes in their tensor maps."""
    tensors = [device_tensor((64, 128), dtype=dtype, address=1 << 32) for dtype in ("int8", "uint8", "uint8")]
    array = cuda_tma.create_tensor_maps(tensors, OPTIONS)
    assert driver.encoded == 2
    assert [repr(each).split()[3] for each in array] == ["int8", "uint8", "uint8"]
    assert len({bytes(each) for each in array}) == 1


def test_elements_are_valid_where_the_array_is(driver, device_tensor):
    driver.context, driver.device = 0xD1, 1
    array = cuda_tma.create_tensor_maps([device_tensor((64, 128), device_id=1)] * 2, OPTIONS)
    driver.context, driver.device = 0xC0DE, 0
    assert [each.context for each in array] == [0xD1, 0xD1]
    assert "device 1)" in repr(array[1])


def test_each_element_keeps_its_tensor(driver, device_tensor):
    tensors = [device_tensor((64, 128), address=1 << n) for n in (32, 33)]
    references = [weakref.ref(tensor) for tensor in tensors]
    array = cuda_tma.create_tensor_maps(tensors, OPTIONS)
    del tensors
    gc.collect()
    assert [each.tensor for each in array] == [reference() for reference in references] and references[1]() is not None
    second = array[1]
    del array
    gc.collect()
    assert references[0]() is None and references[1]() is second.tensor
    del second
    assert references[1]() is None


def test_the_memory_outlives_the_tensor(driver):
    """In torch, the assignment ``x.data = ...`` replaces the storage of a tensor. The array of tensor maps keeps the
    old storage."""
    torch = pytest.importorskip("torch")
    driver.pinned = ((0, 1 << 63),)
    for keep in (lambda x: cuda_tma.create_tensor_maps([x], OPTIONS),
                 lambda x: cuda_tma.create_tensor_maps([x], OPTIONS)[0],
                 lambda x: cuda_tma.create_tensor_maps(x, OPTIONS, addresses=[x.data_ptr()])):  # fmt: skip
        memory = np.zeros((64, 128), np.float32).view(Owner)
        reference = weakref.ref(memory)
        x = torch.from_numpy(memory)
        maps = keep(x)
        x.data = torch.zeros(1)
        del memory
        gc.collect()
        assert reference() is not None
        del maps, x
        gc.collect()
        assert reference() is None


class Owner(np.ndarray):
    """An array that supports weak references."""


def test_addresses_keep_the_tensor_whose_geometry_they_have(driver, device_tensor):
    tensor = device_tensor((64, 128))
    reference = weakref.ref(tensor)
    array = cuda_tma.create_tensor_maps(tensor, OPTIONS, addresses=[1 << 40])
    del tensor
    gc.collect()
    assert reference() is not None and array[0].tensor is None
    array.replace_addresses([1 << 41])
    gc.collect()
    assert reference() is None


def test_replaced_addresses_belong_to_no_tensor(driver, device_tensor):
    tensors = [device_tensor((64, 128), address=1 << n) for n in (32, 33)]
    reference = weakref.ref(tensors[0])
    array = cuda_tma.create_tensor_maps(tensors, OPTIONS)
    del tensors
    array.replace_addresses([1 << 40, 1 << 41])
    gc.collect()
    assert reference() is None
    assert [each.tensor for each in array] == [None, None] and [each.is_stale() for each in array] == [False, False]
    assert [each.params.global_address for each in array] == [1 << 40, 1 << 41]
    # The expression array[1] returns a copy of the element.
    array[1].replace_address(device_tensor((64, 128), address=1 << 42))
    assert array[1].params.global_address == 1 << 41


# ---- refusals ----


def test_maps_of_32_byte_addresses(driver, device_tensor):
    """The test's maps have an interleave of 32B, as in the CUDA programming guide's example with channels of 16
    bytes."""
    options = TensorMapOptions((1, 8, 8, 16), interleave="32B", swizzle="32B", data_type="UINT16")
    shape = {"shape": (4, 16, 16, 16), "dtype": "uint16"}
    array = cuda_tma.create_tensor_maps([device_tensor(**shape)] * 2, options)
    before = bytes(array)
    with pytest.raises(TensorMapError, match="address 0x200000010 is not a multiple of 32 bytes"):
        array.replace_addresses([1 << 33, (1 << 33) + 16])
    assert bytes(array) == before
    array.replace_addresses([1 << 33, (1 << 33) + 32])
    assert array[1].params.global_address == (1 << 33) + 32
    with pytest.raises(TensorMapError, match="0x200000010 is not a multiple of 32 bytes"):
        cuda_tma.create_tensor_maps(device_tensor(**shape), options, addresses=[(1 << 33) + 16])
    with pytest.raises(TensorMapError, match="0x200000010 is not a multiple of 32 bytes"):
        array[0].replace_address((1 << 33) + 16)
    with pytest.raises(TensorMapError, match=r"(?s)^tensors\[1\]: .*global_address"):
        cuda_tma.create_tensor_maps([device_tensor(**shape), device_tensor(**shape, address=(1 << 33) + 16)], options)


def test_tensors_of_another_device_are_refused(driver, device_tensor):
    here, there = device_tensor((64, 128)), device_tensor((64, 128), device_id=1)
    for arguments, keywords in (([[here, there]], {}), ([there], {"addresses": [16]}), ([there], {"addresses": []})):
        with pytest.raises(TensorMapError, match="is on device 1 and the current device is 0"):
            cuda_tma.create_tensor_maps(*arguments, OPTIONS, **keywords)
    driver.context = 0
    for tensors in ([], [here]):
        with pytest.raises(TensorMapError, match="no CUDA context is current"):
            cuda_tma.create_tensor_maps(tensors, OPTIONS)


def test_a_failed_replacement_is_undone(driver, device_tensor):
    tensors = [device_tensor((64, 128), address=1 << n) for n in (16, 17, 18)]
    array = cuda_tma.create_tensor_maps(tensors, OPTIONS)
    before = bytes(array)
    driver.half_replaced, driver.half_replaced_from = 700, 0x2000000
    with pytest.raises(Exception, match="cuTensorMapReplaceAddress failed with CUDA_ERROR_ILLEGAL_ADDRESS"):
        # Only the replacement of the third address fails.
        array.replace_addresses([0x1000010, 0x1000020, 0x2000030])
    assert bytes(array) == before and array[0].tensor is tensors[0]
    driver.half_replaced = 0
    array.replace_addresses([0x1000010, 0x1000020, 0x2000030])
    assert [each.params.global_address for each in array] == [0x1000010, 0x1000020, 0x2000030]
    # A second failure restores the current bytes, not the bytes before the first change.
    before, driver.half_replaced = bytes(array), 700
    with pytest.raises(Exception, match="cuTensorMapReplaceAddress failed"):
        array.replace_addresses([0x10, 0x2000020, 0x30])
    assert bytes(array) == before


def test_a_failed_replacement_is_undone_without_the_driver(driver, device_tensor):
    """The package restores the addresses without the driver, because the driver's function may fail again."""
    array = cuda_tma.create_tensor_maps([device_tensor((64, 128), address=1 << n) for n in (32, 33, 34)], OPTIONS)
    before = bytes(array)
    driver.half_replaced, driver.half_replaced_from = 700, 0x100000
    with pytest.raises(Exception, match="cuTensorMapReplaceAddress failed with CUDA_ERROR_ILLEGAL_ADDRESS"):
        array.replace_addresses([0x10, 0x20, 0x100000])
    assert bytes(array) == before


def test_a_failed_copy_of_a_map_names_its_tensor(driver, device_tensor):
    driver.errors["cuTensorMapReplaceAddress"] = 700
    with pytest.raises(Exception, match="cuTensorMapReplaceAddress failed with CUDA_ERROR_ILLEGAL_ADDRESS"):
        cuda_tma.create_tensor_maps([device_tensor((64, 128))] * 2, OPTIONS)


def test_addresses_are_replaced_where_the_maps_are_valid(driver, device_tensor):
    array = cuda_tma.create_tensor_maps([device_tensor((64, 128))], OPTIONS)
    before = bytes(array)
    driver.context, driver.devices = 0xBEEF, {0xC0DE: 0, 0xBEEF: 0}
    with pytest.raises(TensorMapError, match="made in context 0xc0de, and context 0xbeef is current"):
        array.replace_addresses([16])
    assert bytes(array) == before
    # A green context shares the memory of the primary context.
    driver.green = (0xC0DE, 0xBEEF)
    array.replace_addresses([16])
    assert array[0].params.global_address == 16
    empty = cuda_tma.create_tensor_maps([], OPTIONS)
    empty.replace_addresses([])
    with pytest.raises(TensorMapError, match=r"shape \(1,\) .* pass 0 integers"):
        empty.replace_addresses([16])


def test_the_buffer_is_read_only(driver, device_tensor):
    array = cuda_tma.create_tensor_maps([device_tensor((64, 128))] * 3, OPTIONS)
    view = memoryview(array)
    assert (view.format, view.shape, view.strides, view.itemsize, view.nbytes) == ("B", (384,), (1,), 1, 384)
    assert view.readonly and view.obj is array and view.contiguous
    assert np.frombuffer(array, np.uint64)[16] == 1 << 32
    check_read_only_bytes(array, array.address, 384)
    with pytest.raises(BufferError, match="a TensorMapArray is read-only; it has a method that replaces addresses"):
        asked(array, WRITABLE)


def test_each_map_is_of_its_own_tensor(driver, device_tensor):
    """After a replacement of addresses, each tensor's map is right, also if equal and different tensors alternate."""
    shapes = [(64, 64), (64, 64), (32, 32), (64, 64), (64, 64)]
    tensors = [device_tensor(shape, address=(index + 1) << 20) for index, shape in enumerate(shapes)]
    maps = cuda_tma.create_tensor_maps(tensors, OPTIONS)
    alone = [cuda_tma.create_tensor_map(tensor, OPTIONS) for tensor in tensors]
    assert [m.params for m in maps] == [m.params for m in alone] and list(maps) == alone
    maps.replace_addresses([(index + 9) << 20 for index in range(5)])
    for index, (element, tensor) in enumerate(zip(maps, tensors, strict=True)):
        assert element.params.global_address == (index + 9) << 20
        element.replace_address(tensor)
        assert element.params == alone[index].params
