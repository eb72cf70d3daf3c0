"""Tests of prepared launches with typed maps. A prepared launch keeps each tensor, and changes the address in the
tensor's map."""

import dataclasses
import gc
import threading
import weakref

import pytest

import cuda_tma
from cuda_tma import TensorMapError
from tests.conftest import DeviceTensor
from tests.support.launching import CONFIG, ForeignStream
from tests.support.typed_kernels import TILE, made


class Counted(DeviceTensor):
    """A tensor to which weak references can be made."""


def test_a_prepared_launch_keeps_its_tensor_and_no_other(driver, kernel, stream):
    first, second = Counted((64, 128)), Counted((64, 128), address=1 << 33)
    old, new = weakref.ref(first), weakref.ref(second)
    prepared = cuda_tma.prepare(kernel(TILE), CONFIG, first)
    assert prepared[0] is first
    del first
    gc.collect()
    assert old() is prepared[0]
    prepared(stream)
    prepared[0] = second
    gc.collect()
    assert old() is None and prepared[0] is second
    del second, prepared
    gc.collect()
    assert new() is None


def test_another_address_is_put_into_the_map(driver, kernel, stream, device_tensor):
    tensors = [device_tensor((64, 128), address=address << 32) for address in (1, 2, 3)]
    prepared = cuda_tma.prepare(kernel(TILE, "i", sizes=(128, 4)), CONFIG, tensors[0], 7)
    prepared(stream)
    driver.calls.clear()
    for tensor in tensors[1:]:
        prepared[0] = tensor
        prepared(stream)
    assert len(driver.called("cuTensorMapReplaceAddress")) == 2
    assert driver.called("cuTensorMapEncodeTiled") == []
    assert [launch.arguments for launch in driver.launches] == [[made(each), b"\7\0\0\0"] for each in tensors]


def test_tensors_that_differ_in_more_are_encoded_again(driver, kernel, stream, device_tensor):
    first = device_tensor((64, 128))
    prepared = cuda_tma.prepare(kernel(TILE), CONFIG, first)
    for other in [
        device_tensor((65, 128)), device_tensor((64, 256)), device_tensor((64, 128), (256, 1)),
        cuda_tma.create_tensor_map(first, TILE.options),
    ]:  # fmt: skip
        prepared[0] = first
        driver.calls.clear()
        prepared[-1] = other
        assert driver.called("cuTensorMapReplaceAddress") == []
        prepared(stream)
        expected = made(other) if isinstance(other, DeviceTensor) else bytes(other)
        assert driver.launches[-1].arguments == [expected] and prepared[0] is other


def test_a_tensor_in_the_place_of_a_descriptor(driver, kernel, stream, device_tensor):
    """A prepared launch does not change the user's descriptor, and later changes of the descriptor do not affect the
    launch."""
    first, second = device_tensor((64, 128)), device_tensor((64, 128), address=1 << 33)
    descriptor = cuda_tma.create_tensor_map(first, TILE.options)
    prepared = cuda_tma.prepare(kernel(TILE), CONFIG, descriptor)
    prepared[0] = second
    prepared(stream)
    assert driver.launches[-1].arguments == [made(second)] and bytes(descriptor) == made(first)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (DeviceTensor((64, 128), address=(1 << 33) + 4), "the tensor begins at address 0x200000004; TMA needs"),
        (DeviceTensor((64, 128), device_id=1), "the tensor is on device 1"),
        (DeviceTensor((64, 128, 2)), r"box_dim=\(16, 32\) has length 2 for a tensor of rank 3"),
        (DeviceTensor((64, 128), dtype="bfloat16"), "data_type=FLOAT32 has 32-bit elements"),
        ("text", "is not a tensor"),
    ],
)
def test_a_failed_assignment_changes_nothing(driver, kernel, stream, device_tensor, other, message):
    first = device_tensor((64, 128))
    prepared = cuda_tma.prepare(kernel(TILE), CONFIG, first)
    with pytest.raises(TensorMapError, match=rf"(?s)argument 0 of kernel k, TiledMap<.*{message}"):
        prepared[0] = other
    wrong = dataclasses.replace(TILE, tile_dim=(8, 32))
    with pytest.raises(TensorMapError, match=r"its box_dim is \(8, 32\), the kernel's \(16, 32\)"):
        prepared[0] = cuda_tma.create_tensor_map(first, wrong.options)
    prepared(stream)
    assert prepared[0] is first and driver.launches[-1].arguments == [made(first)]


def test_an_address_that_is_half_replaced_changes_nothing(driver, kernel, stream, device_tensor):
    first = device_tensor((64, 128))
    prepared = cuda_tma.prepare(kernel(TILE), CONFIG, first)
    driver.half_replaced = 700
    with pytest.raises(cuda_tma._cuda.core.CUDAError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        prepared[0] = device_tensor((64, 128), address=0x12345670)
    prepared(stream)
    assert prepared[0] is first and driver.launches[-1].arguments == [made(first)]


def test_another_context_makes_the_map_again(driver, kernel, device_tensor):
    prepared = cuda_tma.prepare(kernel(TILE), CONFIG, device_tensor((64, 128)))
    driver.context = driver.stream_context = 0xBEEF
    driver.calls.clear()
    prepared[0] = device_tensor((64, 128), address=1 << 33)
    assert len(driver.called("cuTensorMapEncodeTiled")) == 1
    prepared(ForeignStream())
    assert len(driver.launches) == 1


def test_threads_that_launch_and_set(driver, kernel, stream):
    """Each launch uses tensor maps that some thread has set. The threads set the two arguments of the launch
    independently."""
    tensors = [Counted((64, 128), address=(1 + index) << 32) for index in range(8)]
    maps = [made(tensor) for tensor in tensors]
    prepared = cuda_tma.prepare(kernel(TILE, TILE, sizes=(128, 128)), CONFIG, tensors[0], tensors[0])
    taken = kernel(TILE)

    def work(first):
        for index in range(60):
            prepared[first % 2] = tensors[(first + index) % 8]
            prepared(stream)
            cuda_tma.launch(stream, CONFIG, taken, tensors[index % 8])

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(driver.launches) == 4 * 60 * 2
    assert all(argument in maps for launch in driver.launches for argument in launch.arguments)
