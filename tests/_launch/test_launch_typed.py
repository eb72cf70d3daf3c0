"""Tests of launches with tensors as arguments for typed maps."""

import gc
import struct
import sys
import weakref

import pytest
from cuda import core
from hypothesis import given
from hypothesis import strategies as st

import cuda_tma
from cuda_tma import TensorMapDataType as T
from cuda_tma import TensorMapError
from cuda_tma._compile.compiled import Compiled, remember
from cuda_tma._cuda import driver as _driver
from cuda_tma._launch.signature import layout_of, types_of
from cuda_tma._map_type import MapType
from cuda_tma._read.dlpack import describe_tensor
from cuda_tma.rules._launches import KERNELS_OWN
from tests.conftest import DeviceTensor
from tests.support.fake_driver import FakeDriver
from tests.support.launching import CONFIG, HANDLES, ForeignStream, kernel_name
from tests.support.typed_kernels import TILE, made

COLUMN = MapType(mode="im2col", tile_dim=(64, 32), data_type=T.FLOAT32, swizzle="128B", rank=4)


BYTES = (T.UINT8, T.PACKED_16U4_ALIGN8B, T.PACKED_16U4_ALIGN16B, T.PACKED_16U6_ALIGN16B)
WORDS = T.UINT32, T.INT32
LONGS = T.UINT64, T.INT64
# For each dtype of a tensor, the table contains the data types of typed maps that accept the tensor without a view.
DTYPES = {
    "float32": (T.FLOAT32, T.FLOAT32_FTZ, T.TFLOAT32, T.TFLOAT32_FTZ, *WORDS), "int32": WORDS,
    "bfloat16": (T.BFLOAT16, T.UINT16), "float16": (T.FLOAT16, T.UINT16), "uint16": (T.BFLOAT16, T.UINT16),
    "float64": (T.FLOAT64, *LONGS), "int64": LONGS, "complex64": LONGS, "uint8": BYTES, "float8_e4m3fn": BYTES,
}  # fmt: skip


@st.composite
def cases(draw):
    """Draw a tensor and the type of a map. In most cases the tensor fits the type."""
    dtype = draw(st.sampled_from([*DTYPES]))
    data_type = draw(st.sampled_from(DTYPES[dtype] if draw(st.booleans()) else [*T]))
    rank = draw(st.integers(1, 5))
    tile_dim = draw(st.lists(st.sampled_from([1, 3, 8, 64]), min_size=rank - 1, max_size=rank - 1))
    map_type = MapType(
        mode="tiled", tile_dim=(*tile_dim, draw(st.sampled_from([8, 16, 64, 128, 256]))), data_type=data_type,
        swizzle=draw(st.integers(0, 3)), oob_fill=draw(st.integers(0, 1)), l2_promotion=draw(st.integers(0, 3)),
    )  # fmt: skip
    shape = draw(st.lists(st.integers(1, 300), min_size=1, max_size=5) if draw(st.integers(0, 9)) == 0 else
                 st.lists(st.integers(1, 300), min_size=rank, max_size=rank))  # fmt: skip
    shape[-1] = -(-shape[-1] // 32) * 32
    address = 1 << 32 | draw(st.sampled_from([0, 16, 256, 4]))
    return DeviceTensor(tuple(shape), dtype=dtype, address=address), map_type


@given(cases())
def test_the_map_equals_that_of_create_tensor_map(case):
    """The launch and create_tensor_map() create equal bytes, and refuse the same tensors with the same text."""
    tensor, map_type = case
    before, fake = _driver.snapshot(), FakeDriver(compute_capability=(10, 0))
    fake.install()
    try:
        handle = next(HANDLES)
        fake.kernels[handle] = (kernel_name("i", map_type), [4, 128])
        kernel = core.Kernel.from_handle(handle)
        try:
            expected = made(tensor, map_type)
        except TensorMapError as error:
            for call in (cuda_tma.launch, lambda _, config, *rest: cuda_tma.prepare(rest[0], config, *rest[1:])):
                with pytest.raises(TensorMapError) as refused:
                    call(ForeignStream(), CONFIG, kernel, 7, tensor)
                where = f"argument 1 of kernel k, {map_type}: "
                assert str(refused.value) in (where + str(error), where + str(error) + KERNELS_OWN)
                assert str(refused.value).endswith(KERNELS_OWN) == (
                    "box_dim=" in str(error) or "data_type=" in str(error)
                )
                assert refused.value.violations == error.violations
            assert fake.launches == []
            return
        if map_type.data_type not in DTYPES[tensor.layout[2]]:
            with pytest.raises(TensorMapError, match="and the kernel's .* as other numbers"):
                cuda_tma.launch(ForeignStream(), CONFIG, kernel, 7, tensor)
            tensor = cuda_tma.create_tensor_map(tensor, map_type.options)
        cuda_tma.launch(ForeignStream(), CONFIG, kernel, 7, tensor)
        cuda_tma.prepare(kernel, CONFIG, 7, tensor)(ForeignStream())
        assert [launch.arguments for launch in fake.launches] == [[(7).to_bytes(4, "little"), expected]] * 2
    finally:
        _driver.restore(before)


@pytest.mark.parametrize("dtype, data_type, wanted", [
    ("float16", T.BFLOAT16, "bfloat16"), ("bfloat16", T.FLOAT16, "float16"), ("int32", T.TFLOAT32, "float32"),
])  # fmt: skip
def test_numbers_that_the_kernel_would_take_for_others(driver, kernel, stream, device_tensor, dtype, data_type, wanted):
    """The tensor's data type and the kernel's data type have the same number of bits. Without a check of the types, the
    kernel would compute wrong values."""
    tile = MapType(mode="tiled", tile_dim=(16, 32), data_type=data_type)
    taken, right = kernel(tile), device_tensor((64, 128), dtype=wanted)
    prepared = cuda_tma.prepare(taken, CONFIG, right)
    message = (
        rf"^argument 0 of kernel k, .*: the tensor's elements are {dtype}, and the kernel's {data_type.short_name}, .*"
        rf"Pass a tensor of {wanted}, .* pass tensor.view\({wanted}\) or a descriptor of data_type="
    )
    wrong = device_tensor((64, 128), dtype=dtype)
    for call in (lambda: cuda_tma.launch(stream, CONFIG, taken, wrong), lambda: cuda_tma.prepare(taken, CONFIG, wrong),
                 lambda: prepared.__setitem__(0, wrong)):  # fmt: skip
        with pytest.raises(TensorMapError, match=message):
            call()
    assert prepared[0] is right and driver.launches == []
    cuda_tma.launch(stream, CONFIG, taken, cuda_tma.create_tensor_map(wrong, tile.options))
    assert driver.launches[-1].arguments == [made(right, tile)]


def test_a_block_is_aligned_for_the_encoder(driver, stream, device_tensor):
    """The driver documents that the tensorMap of cuTensorMapEncodeTiled is aligned to 64 bytes.

    The test covers small parameter blocks, which are on the stack, and larger parameter blocks."""
    tensor = device_tensor((64, 128))
    for count in (1, 3, 7, 8, 20):
        taken = compiled_kernel(driver, "i", *[TILE] * count, sizes=(4, *[128] * count))
        cuda_tma.launch(stream, CONFIG, taken, 1, *[tensor] * count)
        assert driver.launches[-1].arguments[1:] == [made(tensor)] * count
    assert {arguments[0] % 64 for arguments in driver.called("cuTensorMapEncodeTiled")} == {0}


def test_tensors_of_every_kind(launch, device_tensor):
    tensor = device_tensor((64, 128))
    expected = made(tensor)
    view = cuda_tma.StridedMemoryView.from_dlpack(tensor, stream_ptr=-1)
    for each in (tensor, view, describe_tensor((64, 128), None, "float32", 1 << 32, device_id=0)):
        assert launch(kernel_name(TILE), [128], each).arguments == [expected]


def test_torch_tensors(launch, driver):
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(64, 128)
    begin = tensor.data_ptr()
    driver.allocated = {(begin, begin + tensor.nbytes): 0}
    for each in (tensor, tensor[3:40], tensor[:, 32:96], torch.nn.Parameter(tensor)):
        assert launch(kernel_name(TILE), [128], each).arguments == [made(each)]
    words = MapType(mode="tiled", tile_dim=(16, 32), data_type=T.UINT64)
    pairs = torch.view_as_complex(tensor.view(64, 64, 2))
    assert launch(kernel_name(words), [128], pairs).arguments == [made(pairs, words)]
    for map_type, view, bit in [(TILE, torch._neg_view(tensor), "negative"), (words, pairs.conj(), "conjugate")]:
        with pytest.raises(
            TensorMapError, match=rf"^argument 0 of kernel k, .*: the tensor is a lazy view.* {bit} bit"
        ):
            launch(kernel_name(map_type), [128], view)
    with pytest.raises(TensorMapError, match=r"^argument 0 of kernel k, .*: a tensor of torch.sparse_coo.*to_dense"):
        launch(kernel_name(TILE), [128], tensor.to_sparse())


@pytest.mark.parametrize("value", ["text", None, [1, 2], (1,), object()])
def test_invalid_tensor(launch, value):
    with pytest.raises(
        TensorMapError, match=rf"argument 0 of kernel k, TiledMap<.*>: a .*{type(value).__name__} is not a te"
    ):
        launch(kernel_name(TILE), [128], value)


def test_im2col_takes_only_descriptors(launch, driver, device_tensor):
    image = device_tensor((2, 16, 16, 64))
    message = (
        r"argument 0 of kernel k is of type Im2colMap<Tile<FLOAT32, Box<64, 32>, SWIZZLE_128B>, 4>, and a DeviceTensor "
        r"was passed; an im2col map needs corners.*Pass create_tensor_map\(tensor, TensorMapIm2colOptions\("
        r"lower_corner, upper_corner, pixels_per_column=64, channels_per_pixel=32, data_type='FLOAT32', "
        r"swizzle='128B'\)\)"
    )
    for call in (lambda: launch(kernel_name(COLUMN), [128], image),
                 lambda: cuda_tma.prepare(kernel_of(driver, COLUMN), CONFIG, image)):  # fmt: skip
        with pytest.raises(TensorMapError, match=message):
            call()


def kernel_of(driver, *parameters):
    handle = next(HANDLES)
    driver.kernels[handle] = (kernel_name(*parameters), [128] * len(parameters))
    return core.Kernel.from_handle(handle)


# ---- types from the compiler ----


def described(*parameters):
    """Return the table of a kernel's parameters that the compiler writes into PTX."""
    words = [len(parameters)]
    for each in parameters:
        if isinstance(each, str):
            words += [{"i": 1, "f": 2}[each], *[0] * 11]
        else:
            mode = {"tiled": 5, "im2col": 6}[each.mode]
            values = each.rank, each.data_type, each.swizzle, each.oob_fill, each.l2_promotion
            words += [mode, 0, *values, *each.tile_dim, *[0] * (5 - len(each.tile_dim))]
    content = struct.pack(f"<{len(words)}i", *words) + bytes(48)
    return f".global .align 4 .b8 types_of_k[{len(content)}] = {{{', '.join(map(str, content))}}};"


def compiled_kernel(driver, *parameters, sizes, names=()):
    """Return an ``extern "C"`` kernel that the test compiles, so that its module contains the types."""
    handle = next(HANDLES)
    driver.kernels[handle] = ("k", list(sizes))
    kernel = core.Kernel.from_handle(handle)
    ptx = f"{described(*parameters)}\n.entry k("
    remember(kernel, Compiled("k", "k", "types_of_k", "sm_90a", ptx, b"", names))
    return kernel


def test_types_of_an_extern_c_kernel(driver, stream, device_tensor):
    kernel = compiled_kernel(driver, TILE, "i", "f", sizes=(128, 4, 4))
    tensor = device_tensor((64, 128))
    cuda_tma.launch(stream, CONFIG, kernel, tensor, 3, 1.5)
    assert driver.launches[-1].arguments[0] == made(tensor)
    with pytest.raises(
        TypeError, match="argument 1 of kernel k: the parameter takes an integer of 4 bytes, and the fl"
    ):
        cuda_tma.launch(stream, CONFIG, kernel, tensor, 1.5, 1.5)
    with pytest.raises(
        TypeError, match="argument 2 of kernel k: the parameter takes a float of 4 bytes, and the int 3"
    ):
        cuda_tma.launch(stream, CONFIG, kernel, tensor, 3, 3)


def test_a_kernel_without_types_is_checked_for_sizes(driver, stream):
    """Another program compiled the ``extern "C"`` kernel, so the driver reports no types."""
    handle = next(HANDLES)
    driver.kernels[handle] = ("scale", [4])
    loaded = core.Kernel.from_handle(handle)
    cuda_tma.launch(stream, CONFIG, loaded, 1.5)
    assert driver.launches[-1].arguments == [struct.pack("f", 1.5)]
    with pytest.raises(TypeError, match=r"^argument 0 of kernel scale: "):
        cuda_tma.launch(stream, CONFIG, loaded, bytes(8))


def test_errors_have_the_names_of_the_source(driver, stream, device_tensor):
    kernel = compiled_kernel(driver, TILE, "i", sizes=(128, 4), names=("a_map", ""))
    with pytest.raises(
        TensorMapError, match=r"^argument 0 \(a_map\) of kernel k, TiledMap<.*>: box_dim=\(16, 32\) has length 2"
    ):
        cuda_tma.launch(stream, CONFIG, kernel, device_tensor((64,)), 3)
    with pytest.raises(TypeError, match=r"^argument 1 of kernel k: the parameter takes an integer"):
        cuda_tma.launch(stream, CONFIG, kernel, device_tensor((64, 128)), 3.0)


def test_facts_about_a_kernel(driver, kernel):
    taken = kernel(TILE, "i", "Pf", "6Struct", sizes=(128, 4, 8, 16))
    assert types_of(taken) == (TILE, "integer", "pointer", None)
    assert layout_of(taken) == ((112, 128), (240, 4), (248, 8), (256, 16))
    handle = next(HANDLES)
    driver.kernels[handle] = ("extern_c", [4])
    taken = core.Kernel.from_handle(handle)
    assert (types_of(taken), layout_of(taken)) == (None, ((0, 4),))
    with pytest.raises(TypeError, match="kernel is a str"):
        types_of("k")


def test_a_pointer_to_typed_maps_is_a_pointer(driver, stream):
    name = kernel_name(TILE).removeprefix("_Z1k")
    handle = next(HANDLES)
    driver.kernels[handle] = (f"_Z1kPK{name}", [8])
    kernel = core.Kernel.from_handle(handle)
    cuda_tma.launch(stream, CONFIG, kernel, 1 << 32)
    assert driver.launches[-1].arguments == [(1 << 32).to_bytes(8, "little")]
    with pytest.raises(TypeError, match="takes a pointer of 8 bytes, and the float 1.5"):
        cuda_tma.launch(stream, CONFIG, kernel, 1.5)


# ---- contexts and devices ----


def test_a_tensor_is_described_in_the_current_context(driver, kernel, stream, device_tensor):
    taken = kernel("i", TILE, sizes=(4, 128))
    driver.stream_context, driver.devices = 0xBEEF, {0xBEEF: 1}
    message = (
        r"argument 1: a tensor's map is made in the current context, which is 0xc0de on device 0, and the launch is on "
        r"device 1 in context 0xbeef; make that one current first: Device\(1\).set_current\(\)"
    )
    with pytest.raises(TensorMapError, match=message):
        cuda_tma.launch(stream, CONFIG, taken, 1, device_tensor((64, 128)))
    prepared = cuda_tma.prepare(taken, CONFIG, 1, device_tensor((64, 128)))
    with pytest.raises(TensorMapError, match="argument 1: the descriptor was made on device 0 in context 0xc0de"):
        prepared(stream)
    assert driver.launches == []
    driver.context, driver.device = 0xBEEF, 1
    tensor = device_tensor((64, 128), device_id=1)
    cuda_tma.launch(stream, CONFIG, taken, 1, tensor)
    assert driver.launches[-1].arguments[1] == made(tensor)


def test_green_contexts(driver, kernel, device_tensor):
    driver.green, driver.stream_context = (0x6EE,), 0x6EE
    taken, tensor = kernel(TILE), device_tensor((64, 128))
    for each in (core.Stream.from_handle(0x2000), ForeignStream()):
        for _ in range(2):
            cuda_tma.launch(each, CONFIG, taken, tensor)
    assert [launch.arguments for launch in driver.launches] == [[made(tensor)]] * 4


def test_a_tensor_of_another_device(driver, kernel, stream, device_tensor):
    with pytest.raises(
        TensorMapError, match=r"argument 0 of .*: the tensor is on device 1 and the current device is 0"
    ):
        cuda_tma.launch(stream, CONFIG, kernel(TILE), device_tensor((64, 128), device_id=1))


def test_without_a_context(driver, kernel, stream, device_tensor):
    driver.context = 0
    with pytest.raises(TensorMapError, match=r"argument 0 of .*: no CUDA context is current"):
        cuda_tma.launch(stream, CONFIG, kernel(TILE), device_tensor((64, 128)))


# ---- kept objects ----


class Counted(DeviceTensor):
    """A tensor to which weak references can be made."""


def test_a_launch_keeps_nothing(driver, kernel, stream):
    taken, tensor = kernel(TILE, TILE, sizes=(128, 128)), Counted((64, 128))
    cuda_tma.launch(stream, CONFIG, taken, tensor, tensor)
    count = sys.getrefcount(tensor)
    for _ in range(10):
        cuda_tma.launch(stream, CONFIG, taken, tensor, tensor)
    with pytest.raises(TensorMapError):
        cuda_tma.launch(stream, CONFIG, taken, tensor, Counted((8, 8, 8)))
    assert sys.getrefcount(tensor) == count
    gone = weakref.ref(tensor)
    del tensor
    gc.collect()
    assert gone() is None
