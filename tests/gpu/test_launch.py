"""Tests of launch() and prepare() on a GPU, with streams and contexts of every kind, configurations and graphs."""

import subprocess
import sys

import numpy as np
import pytest
from cuda import core

import cuda_tma

from . import launch_kernels
from .launch_kernels import CONFIG, HOLD, compiled, put

torch = pytest.importorskip("torch")
cupy = pytest.importorskip("cupy")


@pytest.fixture(scope="module")
def kernel(device):
    return launch_kernels.module(device).get_kernel


def test_a_descriptor_of_another_context_is_refused(kernel, stream, device):
    from cuda.bindings import driver

    x = torch.zeros(64, 128, device="cuda")
    try:
        # cuCtxCreate() of CUDA 13 takes construction parameters, flags and the device.
        error, other = driver.cuCtxCreate(None, 0, 0)
    except TypeError:
        # cuCtxCreate() of cuda.bindings 12.9 takes only the flags and the device.
        error, other = driver.cuCtxCreate(0, 0)
    assert error == driver.CUresult.CUDA_SUCCESS
    try:
        descriptor = cuda_tma.create_tensor_map(x, box_dim=(16, 32))
    finally:
        driver.cuCtxPopCurrent()
    out = torch.zeros(16, dtype=torch.uint64, device="cuda")
    with pytest.raises(
        cuda_tma.TensorMapError, match="made on device 0 in context 0x.*the launch is on device 0 in context 0x"
    ):
        cuda_tma.launch(stream, CONFIG, kernel("put_map"), descriptor, out)
    driver.cuCtxDestroy(other)
    assert put(kernel("put_float"), stream, "float", 2.0, "float32") == 2.0


def test_a_closed_stream_is_refused(kernel, stream, device):
    closed = device.create_stream()
    closed.close()
    with pytest.raises(ValueError, match="stream is closed"):
        cuda_tma.launch(closed, CONFIG, kernel("nothing"))
    own = device.create_stream()
    prepared = cuda_tma.prepare(kernel("nothing"), CONFIG)
    prepared(own)
    own.sync()
    own.close()
    with pytest.raises(ValueError, match="stream is closed"):
        prepared(own)
    cuda_tma.launch(stream, CONFIG, kernel("nothing"))
    stream.sync()


def test_streams_of_every_kind(kernel, device):
    class Foreign:
        def __init__(self, handle):
            self.handle = handle

        def __cuda_stream__(self):
            return 0, self.handle

    streams = [
        device.default_stream, core.LEGACY_DEFAULT_STREAM, core.PER_THREAD_DEFAULT_STREAM,
        torch.cuda.Stream(), torch.cuda.current_stream(), Foreign(torch.cuda.Stream().cuda_stream), cupy.cuda.Stream(),
    ]  # fmt: skip
    for stream in streams:
        out = torch.zeros(1, device="cuda")
        torch.cuda.synchronize()
        cuda_tma.launch(stream, CONFIG, kernel("put_float"), 4.0, out)
        torch.cuda.synchronize()
        assert out.item() == 4.0, stream
    with pytest.raises(TypeError, match="stream is a int"):
        cuda_tma.launch(7, CONFIG, kernel("nothing"))


def test_a_graph(kernel, device):
    x = torch.zeros(64, 128, device="cuda")
    out = torch.zeros(16, dtype=torch.uint64, device="cuda")
    descriptor = cuda_tma.create_tensor_map(x, box_dim=(16, 32))
    torch.cuda.synchronize()
    builder = device.create_graph_builder().begin_building()
    cuda_tma.launch(builder, CONFIG, kernel("put_map"), descriptor, out)
    graph = builder.end_building().complete()
    stream = device.create_stream()
    graph.launch(stream)
    stream.sync()
    assert out.cpu().numpy().tobytes() == bytes(descriptor)


def test_a_kernel_is_first_launched_into_a_graph(device):
    """launch() finds the kernel in its context by a driver call that does not affect the capture."""
    fresh = compiled(device, "fresh", 'extern "C" __global__ void fresh(float* out) { *out = 3; }')
    out = torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    builder = device.create_graph_builder().begin_building()
    cuda_tma.launch(builder, CONFIG, fresh, out)
    graph = builder.end_building().complete()
    assert out.item() == 0
    stream = device.create_stream()
    graph.launch(stream)
    stream.sync()
    assert out.item() == 3


WHILE_A_HOST_FUNCTION_RUNS = (
    HOLD
    + """
import cuda_tma, torch
from cuda import core
device = cuda_tma.Device(0)
device.set_current()
source = """
    + repr("""extern "C" __global__ void fresh(unsigned char* out) {
    unsigned char local[4000];  // the device must have this much memory before the first launch
    for (int i = 0; i < 4000; i++) local[i] = out[i & 15];
    int sum = 1;
    for (int i = 0; i < 4000; i += out[3] + 1) sum += local[i * 7 % 4000];
    out[1] = sum;
}""")
    + """
kernel = core.Program(source, "c++", core.ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("fresh")
out = torch.zeros(16, dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
pending, other = device.create_stream(), device.create_stream()
hold(pending)
cuda_tma.launch(other, core.LaunchConfig(grid=1, block=1), kernel, out)
pending.sync()
other.sync()
print(out[1].item(), log)
"""
)


def test_a_first_launch_waits_without_the_gil(device):
    """The launch loads the kernel. The load waits for the device, and the device waits for a host function in
    Python."""
    child = [sys.executable, "-c", WHILE_A_HOST_FUNCTION_RUNS]
    done = subprocess.run(child, capture_output=True, text=True, timeout=60)
    assert done.stdout == "1 ['begins', 'ends']\n", done.stderr


def test_one_kernel_in_two_contexts(kernel, stream):
    from cuda.bindings import driver

    assert put(kernel("put_float"), stream, "float", 2.0, "float32") == 2.0
    try:
        error, other = driver.cuCtxCreate(None, 0, 0)
    except TypeError:
        error, other = driver.cuCtxCreate(0, 0)
    assert error == driver.CUresult.CUDA_SUCCESS
    try:
        (_, handle), (_, address) = driver.cuStreamCreate(0), driver.cuMemAlloc(4)
        cuda_tma.launch(core.Stream.from_handle(int(handle)), CONFIG, kernel("put_float"), 5.0, int(address))
        error, copied = 0, np.zeros(1, np.float32)
        assert driver.cuStreamSynchronize(handle) == (0,)
        assert driver.cuMemcpyDtoH(copied.ctypes.data, address, 4) == (0,)
    finally:
        driver.cuCtxPopCurrent()
        driver.cuCtxDestroy(other)
    assert copied[0] == 5.0
    assert put(kernel("put_float"), stream, "float", 3.0, "float32") == 3.0


def test_every_launch_config_field(kernel, stream):
    out = torch.zeros(2, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    config = core.LaunchConfig(grid=3, cluster=2, block=32, shmem_size=1024)
    cuda_tma.launch(stream, config, kernel("cluster_size"), out)
    stream.sync()
    assert out.tolist() == [2, 6]
    cuda_tma.launch(stream, {"grid": 5, "block": 32}, kernel("cluster_size"), out)
    stream.sync()
    assert out.tolist() == [1, 5]
    cuda_tma.launch(stream, core.LaunchConfig(grid=1, block=32, is_cooperative=True), kernel("nothing"))
    if hasattr(core.LaunchConfig, "programmatic_stream_serialization"):
        config = core.LaunchConfig(grid=1, block=32, programmatic_stream_serialization=True)
        cuda_tma.launch(stream, config, kernel("nothing"))
    stream.sync()
    with pytest.raises(ValueError, match=r"block=\(2048, 1, 1\) has 2048 threads; pass a block of at most 1024"):
        cuda_tma.launch(stream, core.LaunchConfig(grid=1, block=2048), kernel("nothing"))
    resident = core.LaunchConfig(grid=1 << 20, block=1024, is_cooperative=True)
    with pytest.raises(Exception, match=r"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE: the driver refused to launch not"):
        cuda_tma.launch(stream, resident, kernel("nothing"))


def test_a_prepared_launch(kernel, stream):
    tensors = [torch.zeros(64, 128, device="cuda") for _ in range(2)]
    maps = [cuda_tma.create_tensor_map(x, box_dim=(16, 32)) for x in tensors]
    out = torch.zeros(16, dtype=torch.uint64, device="cuda")
    torch.cuda.synchronize()
    prepared = cuda_tma.prepare(kernel("put_map"), CONFIG, maps[0], out)
    for descriptor in (*maps, maps[0]):
        prepared[0] = descriptor
        prepared(stream=stream)
        prepared(stream)
        stream.sync()
        assert out.cpu().numpy().tobytes() == bytes(descriptor)


def test_an_adopted_descriptor(kernel, stream):
    x = torch.zeros(64, 128, device="cuda")
    made = cuda_tma.create_tensor_map(x, box_dim=(16, 32))
    adopted = cuda_tma.TensorMapDescriptor.from_bytes(bytes(made), x)
    out = torch.zeros(16, dtype=torch.uint64, device="cuda")
    torch.cuda.synchronize()
    cuda_tma.launch(stream, CONFIG, kernel("put_map"), adopted, out)
    stream.sync()
    assert out.cpu().numpy().tobytes() == bytes(made) and adopted.tensor is x


def test_a_stream_of_a_green_context(kernel, device):
    """A green context shares its memory with the primary context, so a descriptor of either context is valid in
    both."""
    from cuda.bindings import driver

    def check(result):
        assert result[0] == driver.CUresult.CUDA_SUCCESS, result
        return result[1] if len(result) == 2 else result[1:]

    resource = check(driver.cuDeviceGetDevResource(0, driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM))
    description = check(driver.cuDevResourceGenerateDesc([resource], 1))
    green = check(driver.cuGreenCtxCreate(description, 0, driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM))
    handle = check(driver.cuGreenCtxStreamCreate(green, driver.CUstream_flags.CU_STREAM_NON_BLOCKING, 0))
    x = torch.zeros(64, 128, device="cuda")
    descriptor = cuda_tma.create_tensor_map(x, box_dim=(16, 32))
    out = torch.zeros(16, dtype=torch.uint64, device="cuda")
    torch.cuda.synchronize()
    of_green = core.Stream.from_handle(int(handle))
    assert_launched(kernel("put_map"), of_green, descriptor, out)
    # The test also creates a descriptor in the green context, and launches a kernel with it in the primary context.
    check(driver.cuCtxPushCurrent(check(driver.cuCtxFromGreenCtx(green))))
    try:
        made_in_green = cuda_tma.create_tensor_map(x, box_dim=(32, 32))
    finally:
        check(driver.cuCtxPopCurrent())
    assert made_in_green.context != descriptor.context
    for stream in (of_green, device.create_stream()):
        assert_launched(kernel("put_map"), stream, made_in_green, out)


def assert_launched(kernel, stream, descriptor, out):
    cuda_tma.launch(stream, CONFIG, kernel, descriptor, out)
    stream.sync()
    assert out.cpu().numpy().tobytes() == bytes(descriptor)
