"""Tests of the class TensorMapDescriptor on a fake driver."""

import copy
import copyreg
import dataclasses
import gc
import pickle
import sys
import tracemalloc
import types
import weakref

import numpy as np
import pytest

import cuda_tma
from cuda_tma import (
    TensorMapDescriptor,
    TensorMapError,
    TensorMapOptions,
    TiledParams,
)
from cuda_tma.smem import smem_offset
from tests._make._arguments import params_of


def test_a_descriptor_has_the_drivers_bytes(driver, device_tensor):
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


def test_repr_shows_the_way_a_type_is_copied(driver, device_tensor):
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128), dtype="int8"), box_dim=(16, 32))
    assert "int8 as UINT8 (64, 128)" in repr(descriptor)


def test_equality_is_by_content(driver, device_tensor):
    def make(**keywords):
        return cuda_tma.create_tensor_map(device_tensor((64, 128), **keywords), box_dim=(16, 32))

    assert make() == make() and make() != make(address=1 << 33) and make() != bytes(make())
    assert len({make(), make(), make(address=1 << 33), make(dtype="int32")}) == 3


@pytest.mark.parametrize("kind", [cuda_tma.TensorMapDescriptor, cuda_tma.TensorMapArray])
def test_only_functions_make_one(driver, device_tensor, kind):
    """Only the package's functions create a descriptor, even if a finalizer runs during the construction. Before Python
    3.12, an allocation may collect garbage."""
    made, refused = [], []

    class MakesOne:
        def __init__(self):
            # Only the garbage collector can free an object that refers to itself.
            self.itself = self

        def __del__(self):
            try:
                made.append(kind.__new__(kind))
            except TypeError as error:
                refused.append(str(error))

    tensor, kept, before = device_tensor((64, 128)), [], gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(100):
            MakesOne()
            kept.append(cuda_tma.create_tensor_maps([tensor], {"box_dim": (16, 32)}))
            kept.append(kept[-1][0])
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert not made and len(refused) == 100 and gc.isenabled()
    assert all(f"make a {kind.__name__} with" in each for each in refused)


def test_a_hash_outlives_the_address(driver, device_tensor):
    """The hash of a descriptor covers every field except the address, so that the hash never changes."""
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    kept, before = {descriptor: "value"}, hash(descriptor)
    descriptor.replace_address((1 << 44) + 16)
    assert kept[descriptor] == "value" and hash(descriptor) == before == hash(bytes(descriptor)[8:])
    assert hash(descriptor) == hash(cuda_tma.TensorMapDescriptor.from_bytes(bytes(descriptor)))
    assert hash(descriptor) != hash(cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 16)))


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
    """In the test, the shapes and the strides in bytes of two tensors are equal, but the data types differ."""
    options = TensorMapOptions((16, 32))
    taken = cuda_tma.create_tensor_maps([device_tensor((64, 128), (256, 1))], options)[0]
    with pytest.raises(TensorMapError, match="dtype is float64, and the descriptor was made for float32"):
        taken.replace_address(device_tensor((64, 128), dtype="float64"))
    taken.replace_address(device_tensor((64, 128), (256, 1), address=1 << 33))
    assert taken.params.global_address == 1 << 33


@pytest.mark.parametrize("address", [-16, 0, False, 2**64, 8])
def test_a_refused_integer_address_changes_nothing(driver, device_tensor, address):
    tensor = device_tensor((64, 128))
    descriptor = cuda_tma.create_tensor_map(tensor, box_dim=(16, 32))
    before = bytes(descriptor)
    with pytest.raises(TensorMapError, match="not a multiple of 16 bytes|not a 64-bit address"):
        descriptor.replace_address(address)
    assert bytes(descriptor) == before and descriptor.tensor is tensor


def test_is_stale_reads_the_tensor(driver, device_tensor):
    tensor = device_tensor((64, 128))
    descriptor = cuda_tma.create_tensor_map(tensor, box_dim=(16, 32))
    assert descriptor.is_stale() is False
    tensor.layout = (*tensor.layout[:3], 1 << 33)
    assert descriptor.is_stale() is True


def test_places_where_a_map_may_be_made(driver, device_tensor):
    with pytest.raises(TensorMapError, match=r"on device 1 and the current device is 0; .*Device\(1\).set_current\(\)"):
        cuda_tma.create_tensor_map(device_tensor((64, 128), device_id=1), box_dim=(16, 32))
    with pytest.raises(TensorMapError, match="host memory"):
        cuda_tma.create_tensor_map(np.zeros((64, 128), np.float32), box_dim=(16, 32))
    driver.context = 0
    with pytest.raises(TensorMapError, match="no CUDA context is current"):
        cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))


def test_refusals_of_the_driver_are_explained(driver, device_tensor):
    with pytest.raises(TensorMapError) as error:
        cuda_tma.create_tensor_map(device_tensor((128, 1733)), box_dim=(32, 300))
    assert "1733" in str(error.value) and "1736" in str(error.value) and "300" in str(error.value)
    assert {violation.parameter for violation in error.value.violations} == {"global_strides", "box_dim"}


def test_a_descriptor_owns_its_tensor_and_releases_it(driver, device_tensor):
    tensor = device_tensor((64, 128))
    reference = weakref.ref(tensor)
    descriptor = cuda_tma.create_tensor_map(tensor, box_dim=(16, 32))
    gc.disable()
    try:
        del tensor
        assert reference() is descriptor.tensor
        del descriptor
        # The tensor and the descriptor form no cycle, so Python frees both without a garbage collection.
        assert reference() is None
    finally:
        gc.enable()


def test_a_descriptor_is_small(driver, device_tensor):
    """A descriptor takes at most 512 bytes in addition to the tensor's view."""
    view = cuda_tma.StridedMemoryView.from_any_interface(device_tensor((64, 128)), stream_ptr=-1)
    options = TensorMapOptions((16, 32))
    assert sys.getsizeof(cuda_tma.create_tensor_map(view, options)) <= 512
    keep = [None] * 1000
    # The fake driver keeps the last 100 calls.
    for _ in range(100):
        cuda_tma.create_tensor_map(view, options)
    tracemalloc.start()
    try:
        for index in range(1000):
            keep[index] = cuda_tma.create_tensor_map(view, options)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 128 * 1000 < held <= 512 * 1000


def test_a_device_makes_maps_while_it_is_current(driver, device_tensor):
    # The constructor of LaunchConfig queries the real driver.
    device = object.__new__(cuda_tma.Device)
    object.__setattr__(device, "_core", types.SimpleNamespace(device_id=1))
    object.__setattr__(device, "_ordinal", 1)
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


@pytest.mark.parametrize("kind", [TensorMapDescriptor, cuda_tma.TensorMapArray])
def test_blank_descriptors_do_not_exist(driver, device_tensor, kind):
    """A blank descriptor must not exist, because a launch on a stream with an unknown context would accept the
    descriptor."""
    makers = lambda: kind(), lambda: kind(3, a=4), lambda: kind.__new__(kind), lambda: object.__new__(kind)
    for make in (*makers, lambda: copyreg.__newobj__(kind)):
        with pytest.raises(TypeError, match=f"make a {kind.__name__} with cuda_tma.create|not safe"):
            make()
    cuda_tma.create_tensor_maps([device_tensor((64, 128))], TensorMapOptions((16, 32)))[0]
    # After a successful call, the constructors still raise the error.
    for make in makers:
        with pytest.raises(TypeError):
            make()


def test_misuse_is_refused(driver, device_tensor):
    tensor = device_tensor((64, 128))
    view = cuda_tma.StridedMemoryView.from_dlpack(tensor, stream_ptr=-1)
    view._exported = 5
    with pytest.raises(TypeError, match="ExportedTensor"):
        cuda_tma.create_tensor_map(view, box_dim=(16, 32))


def test_options_travel(driver, device_tensor):
    options = TensorMapOptions((16, 32), swizzle="128B")
    # The first call with the options stores their compiled form.
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), options)
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


def test_display_in_a_notebook(driver, device_tensor):
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


def test_an_array_is_neither_copied_nor_pickled(driver, device_tensor):
    array = cuda_tma.create_tensor_maps([device_tensor((64, 128))], TensorMapOptions((16, 32)))
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a TensorMapArray cannot be copied or pickled: it belongs to a process"):
            attempt(array)


@pytest.mark.parametrize("kind", [np.uint64, np.int64])
def test_an_address_may_be_one_of_numpys_integers(driver, device_tensor, kind):
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    descriptor.replace_address(kind(1 << 40))
    assert (descriptor.params.global_address, descriptor.tensor) == (1 << 40, None)
    for wrong in (kind(8), np.int64(-16), 10**5000):
        with pytest.raises(TensorMapError, match="address .* (is not a multiple of 16|is not a 64-bit address)"):
            descriptor.replace_address(wrong)
    assert descriptor.params.global_address == 1 << 40


def test_an_extent_of_thousands_of_digits_is_refused_by_its_name(driver, device_tensor):
    for extent in (10**5000, -(10**5000)):
        with pytest.raises(TensorMapError, match=r"box_dim\[1\]=<int of 16610 bits> does not fit the driver's"):
            cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, extent))


# ---- every option, every field, and its place ----


def test_every_option_reaches_the_driver(driver, device_tensor):
    """In the test, each option of a tensor map has a different value, so that the test finds exchanged options."""
    tensor = device_tensor((4, 16, 16, 32), dtype="float16")
    descriptor = cuda_tma.create_tensor_map(
        tensor, box_dim=(1, 7, 5, 16), element_strides=(4, 3, 2, 1), data_type="FLOAT16", interleave="32B",
        swizzle="32B", l2_promotion="256B", oob_fill="NAN", allocation_class="LARGE")  # fmt: skip
    assert descriptor.params == TiledParams(
        data_type=6, global_address=1 << 32, global_dim=(32, 16, 16, 4), global_strides=(64, 1024, 16384),
        box_dim=(16, 5, 7, 1), element_strides=(1, 2, 3, 4), interleave=2, swizzle=1, l2_promotion=3, oob_fill=1,
        allocation_class=2)  # fmt: skip
    assert driver.params == dataclasses.replace(descriptor.params, allocation_class=1)
    assert driver.called("cuTensorMapSetAllocationClass")[0][1:] == (2, None)
    assert bytes(descriptor) == cuda_tma.encode(descriptor.params)


@pytest.mark.parametrize("name", [
    "interleave", "swizzle", "l2_promotion", "oob_fill", "data_type", "allocation_class", "element_strides",
])  # fmt: skip
def test_options_next_to_options_are_refused(driver, device_tensor, name):
    value = {"element_strides": (2, 1), "data_type": "INT32", "oob_fill": "NAN", "allocation_class": "LARGE"}
    value |= {"swizzle": "64B", "l2_promotion": "128B", "interleave": "16B"}
    with pytest.raises(TypeError, match=f"options= and {name} were both passed"):
        cuda_tma.create_tensor_map(device_tensor((64, 128)), TensorMapOptions((16, 32)), **{name: value[name]})
    assert driver.encoded == 0


@pytest.mark.parametrize("box_dim", [(2**32, 1), (1, 2**32), (1, -1), (2**64, 1)])
def test_numbers_that_would_be_cut_on_their_way(driver, device_tensor, box_dim):
    place = 0 if box_dim[0] != 1 else 1
    message = rf"\[{place}\]={box_dim[place]} does not fit the driver's unsigned 32-bit integer; use 1 to "
    with pytest.raises(TensorMapError, match=rf"box_dim{message}256"):
        cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=box_dim)
    # The function refuses an innermost element stride other than 1 with a separate error.
    if place == 0:
        with pytest.raises(TensorMapError, match=rf"element_strides{message}8"):
            cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(1, 1), element_strides=box_dim)
    with pytest.raises(TensorMapError, match="4294967295"):
        cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(2**32 - 1, 1))
    assert driver.params.box_dim == (1, 2**32 - 1)
