"""Tests of launch() and prepare() on a GPU, with tensors as arguments for typed maps."""

import gc
import threading

import pytest
from cuda import core

import cuda_tma
from cuda_tma import TensorMapError

from .launch_kernels import COPY_TILES

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("watched")
WATCHED_LAUNCHES = 3

COPY = (
    COPY_TILES
    + """
// Stores the 16 words of the map that arrives.
extern "C" __global__ void put_map(const __grid_constant__ Map map, unsigned long long* out) {
    for (int i = 0; i < 16; i++) out[i] = map.opaque[i];
}
"""
)
COLUMN = """
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using Column = Tile<FLOAT32, Box<64, 32>, SWIZZLE_128B>;

// The first 64 pixels of an image, 32 channels of each.
extern "C" __global__ void column(const __grid_constant__ Im2colMap<Column, 4> image, float* out) {
    __shared__ Column tile;
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile);
        load_im2col(tile, image, full, Coordinates{0, 0, 0, 0}, Offsets{0, 0});
    }
    __syncthreads();
    full.wait(0);
    for (int i = threadIdx.x; i < 64 * 32; i += blockDim.x) out[i] = tile(i / 32, i % 32);
}
"""
SHARED = """
// Writes the last word of its dynamic shared memory, and reads it back.
extern "C" __global__ void last_word(int* out, int words) {
    extern __shared__ volatile int memory[];
    if (words > 0) { memory[words - 1] = 41; out[0] = memory[words - 1] + 1; } else { out[0] = -1; }
}
extern "C" __global__ void beside_static(int* out, int words) {
    extern __shared__ volatile int memory[];
    __shared__ volatile int fixed[8 * 1024];
    for (int i = threadIdx.x; i < 8 * 1024; i += 32) fixed[i] = i;
    __syncwarp();
    if (threadIdx.x == 0) { memory[words - 1] = 41; out[0] = memory[words - 1] + (fixed[8191] == 8191); }
}
"""
CONFIG = core.LaunchConfig(grid=1, block=32)
DTYPES = {"FLOAT32": "float32", "BFLOAT16": "bfloat16", "FLOAT64": "float64", "UINT8": "uint8", "INT64": "int64"}


@pytest.fixture(scope="module")
def kernels(device):
    """Return a function that compiles a kernel of the source COPY with given macros."""
    return lambda name, **defines: cuda_tma.compile(COPY, name, defines=defines, cache=False)


@pytest.fixture(scope="module")
def window(kernels):
    """Return the kernels for a tile of 16 x 64 float32 elements, which consists of two boxes."""
    defines = {"TYPE": "FLOAT32", "ROWS": 16, "COLUMNS": 64, "SWIZZLE": "SWIZZLE_128B"}
    return lambda name: kernels(name, **defines)


def options_of(kernel, index=0):
    return cuda_tma.parameters_of(kernel)[index].map_type.options


def grid_over(shape, tile):
    return core.LaunchConfig(
        grid=tuple(-(-extent // step) for extent, step in zip(shape, tile, strict=True))[::-1], block=32
    )


def random(shape, dtype="float32"):
    kind = getattr(torch, dtype)
    if kind.is_floating_point:
        return torch.randn(shape, device="cuda").to(kind)
    return torch.randint(0, 200, shape, device="cuda").to(kind)


@pytest.mark.parametrize("data_type", DTYPES)
@pytest.mark.parametrize(
    ("rows", "columns", "swizzle"), [(8, 64, "SWIZZLE_128B"), (16, 128, "SWIZZLE_64B"), (32, 32, "SWIZZLE_NONE")]
)
def test_a_copy_of_tensor_arguments(kernels, stream, data_type, rows, columns, swizzle):
    kernel = kernels("copy", TYPE=data_type, ROWS=rows, COLUMNS=columns, SWIZZLE=swizzle)
    for shape in [(rows, columns), (100, 208), (3, 16)]:
        source = random(shape, DTYPES[data_type])
        target = torch.zeros_like(source)
        torch.cuda.synchronize()
        cuda_tma.launch(stream, grid_over(shape, (rows, columns)), kernel, source, target)
        stream.sync()
        assert torch.equal(source, target), shape


def test_views_are_copied_in_place(window, stream):
    kernel, source, target = window("copy"), random((200, 256)), torch.zeros(200, 256, device="cuda")
    torch.cuda.synchronize()
    cuda_tma.launch(stream, grid_over((80, 128), (16, 64)), kernel, source[20:100, 64:192], target[20:100, 64:192])
    stream.sync()
    expected = torch.zeros_like(source)
    expected[20:100, 64:192] = source[20:100, 64:192]
    assert torch.equal(target, expected)


def given_as(kind, tensor):
    if kind == "cupy":
        return pytest.importorskip("cupy").from_dlpack(tensor)
    if kind == "view":
        return cuda_tma.StridedMemoryView.from_any_interface(tensor, stream_ptr=-1)
    return cuda_tma.create_tensor_map(tensor, kind) if isinstance(kind, cuda_tma.TensorMapOptions) else tensor


@pytest.mark.parametrize("kind", ["torch", "cupy", "view", "descriptor"])
def test_the_bytes_that_arrive(window, stream, kind):
    kernel, tensor, out = window("put_map"), random((100, 128)), torch.zeros(16, dtype=torch.int64, device="cuda")
    descriptor = cuda_tma.create_tensor_map(tensor, options_of(kernel))
    torch.cuda.synchronize()
    given = given_as(options_of(kernel) if kind == "descriptor" else kind, tensor)
    cuda_tma.launch(stream, CONFIG, kernel, given, out)
    stream.sync()
    assert out.cpu().numpy().tobytes() == bytes(descriptor)


def test_another_tile_is_refused_before_the_launch(window, stream):
    kernel, tensor, out = window("put_map"), random((100, 128)), torch.zeros(16, dtype=torch.int64, device="cuda")
    for options, message in [
        ({"box_dim": (16, 16), "swizzle": "128B"}, r"its box_dim is \(16, 16\), the kernel's \(16, 32\)"),
        ({"box_dim": (16, 32), "swizzle": "NONE"}, "its swizzle is NONE, the kernel's 128B"),
        (
            {"box_dim": (16, 32), "swizzle": "128B", "data_type": "TFLOAT32"},
            "its data_type is TFLOAT32, the kernel's F",
        ),
    ]:
        with pytest.raises(TensorMapError, match=rf"argument 0 \(map\) of kernel put_map is of type .*{message}"):
            cuda_tma.launch(stream, CONFIG, kernel, cuda_tma.create_tensor_map(tensor, **options), out)
    with pytest.raises(TensorMapError, match=r"argument 0 \(map\) .*: data_type=FLOAT32 has 32-bit elements"):
        cuda_tma.launch(stream, CONFIG, kernel, tensor.half(), out)
    with pytest.raises(TensorMapError, match=r"argument 0 \(map\) .*: the tensor is in host memory"):
        cuda_tma.launch(stream, CONFIG, kernel, tensor.cpu(), out)
    stream.sync()
    assert not out.any()


def test_many_launches_in_flight_keep_their_maps(window, device):
    """In the test, the address in a tensor map changes while earlier launches wait for the GPU."""
    kernel, stream = window("copy"), device.create_stream()
    sources = [random((64 + 16 * (index % 3 == 2), 128)) for index in range(60)]
    targets = [torch.zeros_like(source) for source in sources]
    prepared = cuda_tma.prepare(kernel, grid_over((80, 128), (16, 64)), sources[0], targets[0])
    torch.cuda.synchronize()
    for source, target in zip(sources, targets, strict=True):
        prepared[0], prepared[1] = source, target
        prepared(stream)
    stream.sync()
    assert all(torch.equal(source, target) for source, target in zip(sources, targets, strict=True))


def test_a_launch_keeps_nothing_and_a_prepared_one_its_tensors(window, stream):
    kernel, config = window("copy"), grid_over((64, 128), (16, 64))
    gc.collect()
    before = torch.cuda.memory_allocated()
    source, target = random((64, 128)), torch.zeros(64, 128, device="cuda")
    torch.cuda.synchronize()
    cuda_tma.launch(stream, config, kernel, source, target)
    stream.sync()
    del source, target
    gc.collect()
    assert torch.cuda.memory_allocated() == before
    expected = random((64, 128))
    prepared = cuda_tma.prepare(kernel, config, expected.clone(), torch.zeros(64, 128, device="cuda"))
    # The new tensors would overwrite the memory of a freed clone.
    others = [torch.full((64, 128), 7.0, device="cuda") for _ in range(8)]
    torch.cuda.synchronize()
    prepared(stream)
    stream.sync()
    assert torch.equal(prepared[1], expected) and len(others) == 8


def test_threads_launch_tensors_of_their_own(window, device):
    kernel, config, wrong = window("copy"), grid_over((64, 128), (16, 64)), []

    def work(seed):
        device.set_current()
        stream = device.create_stream()
        for index in range(50):
            source = torch.full((64, 128), float(100 * seed + index), device="cuda")
            target = torch.zeros_like(source)
            torch.cuda.current_stream().synchronize()
            cuda_tma.launch(stream, config, kernel, source, target)
            stream.sync()
            if not torch.equal(source, target):
                wrong.append((seed, index))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert wrong == [] and not any(thread.is_alive() for thread in threads)


def captured(device, config, kernel, *args):
    """Capture a graph of one launch, and end the capture even after an error, because an open capture would make later
    tests fail."""
    torch.cuda.synchronize()
    builder = device.create_graph_builder().begin_building()
    try:
        cuda_tma.launch(builder, config, kernel, *args)
    finally:
        builder.end_building()
    return builder.complete()


def test_tensors_in_a_graph(window, device):
    kernel, source, target = window("copy"), random((64, 128)), torch.zeros(64, 128, device="cuda")
    graph = captured(device, grid_over((64, 128), (16, 64)), kernel, source, target)
    stream = device.create_stream()
    for value in (1.0, 2.0):
        source.fill_(value)
        torch.cuda.synchronize()
        graph.launch(stream)
        stream.sync()
        assert (target == value).all()


def test_an_im2col_map_of_the_type(stream, device):
    kernel = cuda_tma.compile(COLUMN, "column", cache=False)
    image, out = random((2, 16, 16, 64)), torch.zeros(64, 32, device="cuda")
    keywords = cuda_tma.parameters_of(kernel)["image"].map_type.keywords
    descriptor = cuda_tma.create_tensor_map(image, cuda_tma.TensorMapIm2colOptions((0, 0), (0, 0), **keywords))
    torch.cuda.synchronize()
    cuda_tma.launch(stream, CONFIG, kernel, descriptor, out)
    stream.sync()
    assert torch.equal(out, image.reshape(-1, 64)[:64, :32])
    with pytest.raises(TensorMapError, match=r"argument 0 \(image\) of kernel column is of type Im2colMap<.*corners"):
        cuda_tma.launch(stream, CONFIG, kernel, image, out)
    other = cuda_tma.TensorMapIm2colOptions((0, 0), (0, 0), **{**keywords, "pixels_per_column": 32})
    with pytest.raises(TensorMapError, match="its pixels_per_column is 32, the kernel's 64"):
        cuda_tma.launch(stream, CONFIG, kernel, cuda_tma.create_tensor_map(image, other), out)


# ---- shared memory ----


def last_word(stream, kernel, shmem_size, launch=cuda_tma.launch):
    out = torch.zeros(1, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    config = core.LaunchConfig(grid=1, block=32, shmem_size=shmem_size)
    launch(stream, config, kernel, out, shmem_size // 4)
    stream.sync()
    return out.item()


def test_the_limit_is_raised_after_the_first_launch_too(device, stream):
    """A change of a kernel's shared-memory limit also applies in a context that has already loaded the kernel."""
    kernel = cuda_tma.compile(SHARED, "last_word", cache=False)
    assert last_word(stream, kernel, 0) == -1
    most = torch.cuda.get_device_properties(0).shared_memory_per_block_optin
    for size in (48 * 1024, 49 * 1024, 200, most, 64 * 1024):
        assert last_word(stream, kernel, size) == 42
    with pytest.raises(
        ValueError, match=rf"kernel last_word is launched with {most + 4} bytes .* has {most} for a thr"
    ):
        last_word(stream, kernel, most + 4)


def test_static_memory_counts(device, stream):
    kernel = cuda_tma.compile(SHARED, "beside_static", cache=False)
    most = torch.cuda.get_device_properties(0).shared_memory_per_block_optin
    for size in (16 * 1024, 17 * 1024, most - 32 * 1024):
        assert last_word(stream, kernel, size) == 42
    with pytest.raises(
        ValueError, match="bytes of dynamic shared memory in addition to its static 32768, and device 0 has"
    ):
        last_word(stream, kernel, most - 32 * 1024 + 4)


def test_the_limit_is_raised_while_a_graph_is_captured(device):
    kernel, out = cuda_tma.compile(SHARED, "last_word", cache=False), torch.zeros(1, dtype=torch.int32, device="cuda")
    graph = captured(device, {"grid": 1, "block": 32, "shmem_size": 100_000}, kernel, out, 25_000)
    stream = device.create_stream()
    graph.launch(stream)
    stream.sync()
    assert out.item() == 42


def test_a_prepared_launch_and_a_default_stream(device):
    kernel = cuda_tma.compile(SHARED, "last_word", cache=False)
    prepared = lambda stream, config, kernel, *args: cuda_tma.prepare(kernel, config, *args)(stream)  # noqa: E731
    assert last_word(device.default_stream, kernel, 100_000, prepared) == 42
    assert last_word(device.default_stream, kernel, 101_000) == 42
