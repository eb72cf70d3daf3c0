"""launch(): every kind of argument arrives, every mistake is named, and the next launch works."""

import ctypes
import struct
import subprocess
import sys

import numpy as np
import pytest
from cuda import core
from cuda.bindings import driver as cuda_driver

import cuda_tma

torch = pytest.importorskip("torch")
cupy = pytest.importorskip("cupy")

SOURCE = r"""
#include <cuda_tma/tma.cuh>
struct Pair { int first; double second; };
struct Complex { float re, im; };

template <typename T> __global__ void put(T value, T* out) { *out = value; }
extern "C" __global__ void put_float(float value, float* out) { *out = value; }
extern "C" __global__ void put_map(const __grid_constant__ cuda_tma::TensorMap map, unsigned long long* out) {
    for (int i = 0; i < 16; i++) out[i] = map.opaque[i];
}
__global__ void mixed(signed char a, unsigned short b, int c, long long d, float e, double f, bool g, Pair h, float* i,
                      double* out) {
    double values[] = {double(a), double(b), double(c), double(d), e, f, double(g), double(h.first), h.second, *i};
    for (int k = 0; k < 10; k++) out[k] = values[k];
}
extern "C" __global__ void nothing() {}
extern "C" __global__ void cluster_size(int* out) {
    unsigned n; asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(n));
    if (blockIdx.x == 0 && threadIdx.x == 0) { out[0] = n; out[1] = gridDim.x; }
}
"""

TYPES = {"signed char": "int8", "unsigned short": "uint16", "int": "int32", "unsigned long long": "uint64",
         "float": "float32", "double": "float64", "bool": "bool"}  # fmt: skip


@pytest.fixture(scope="module")
def module(device):
    names = [f"put<{name}>" for name in TYPES] + ["put<Complex>", "mixed"]
    options = core.ProgramOptions(std="c++17", arch=f"sm_{device.arch}", include_path=cuda_tma.include_path())
    return core.Program(SOURCE, "c++", options).compile("cubin", name_expressions=names)


@pytest.fixture(scope="module")
def kernel(module):
    return lambda name: module.get_kernel(name)


CONFIG = core.LaunchConfig(grid=1, block=1)


def compiled(device, name, source):
    options = core.ProgramOptions(arch=f"sm_{device.arch}")
    return core.Program(source, "c++", options).compile("cubin").get_kernel(name)


def put(kernel, stream, name, value, dtype):
    out = torch.zeros(1, dtype=getattr(torch, dtype), device="cuda")
    torch.cuda.synchronize()
    cuda_tma.launch(stream, CONFIG, kernel, value, out)
    stream.sync()
    return out.cpu().numpy()[0]


@pytest.mark.parametrize(
    ("c_type", "value"),
    [
        ("signed char", -7), ("signed char", 127), ("unsigned short", 65535), ("int", -123456), ("int", 2**31 - 1),
        ("unsigned long long", 2**64 - 1), ("float", 1.5), ("double", 1e300), ("bool", True), ("bool", False),
        ("int", np.int32(5)), ("float", np.float32(2.5)), ("int", ctypes.c_int(6)), ("double", ctypes.c_double(0.5)),
        ("signed char", np.int8(-3)), ("bool", np.bool_(True)), ("unsigned short", ctypes.c_uint16(9)),
    ],
)  # fmt: skip
def test_scalars_take_the_parameters_own_size(kernel, stream, c_type, value):
    wanted = getattr(value, "value", value)
    assert put(kernel(f"put<{c_type}>"), stream, c_type, value, TYPES[c_type]) == wanted


def test_a_float_for_a_float(kernel, stream):
    """cuda.core 1.2 packs 8 bytes here, of which the kernel reads the lower 4: 0.0."""
    assert put(kernel("put_float"), stream, "float", 1.0, "float32") == 1.0


def test_complex(kernel, stream):
    out = torch.zeros(1, dtype=torch.complex64, device="cuda")
    for value in (1 + 2j, np.complex64(1 + 2j)):
        out.zero_()
        torch.cuda.synchronize()
        cuda_tma.launch(stream, CONFIG, kernel("put<Complex>"), value, out)
        stream.sync()
        assert out.item() == 1 + 2j


class Pair(ctypes.Structure):
    _fields_ = (("first", ctypes.c_int), ("second", ctypes.c_double))


def test_many_at_once_and_structures_by_value(kernel, stream):
    cell = torch.full((1,), 9.25, device="cuda")
    structured = np.zeros((), np.dtype([("first", "i4"), ("second", "f8")], align=True))
    structured["first"], structured["second"] = 8, 8.5
    for pair in (Pair(8, 8.5), structured[()]):
        out = torch.zeros(10, dtype=torch.float64, device="cuda")
        torch.cuda.synchronize()
        cuda_tma.launch(stream, CONFIG, kernel("mixed"), -1, 2, -3, 2**40, 0.5, 0.25, True, pair, cell, out)
        stream.sync()
        assert out.tolist() == [-1, 2, -3, 2**40, 0.5, 0.25, 1, 8, 8.5, 9.25]


def test_more_parameters_than_fit_the_stack(device, stream):
    """Beyond the 4096 bytes that parameters had before compute capability 7.0 and CUDA 12.1, too."""
    source = """struct Large { int values[2000]; };
        extern "C" __global__ void sum(char first, Large large, int* out) {
            int sum = first; for (int i = 0; i < 2000; i++) sum += large.values[i]; *out = sum; }"""
    values = (ctypes.c_int * 2000)(*range(2000))
    out = torch.zeros(1, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    cuda_tma.launch(stream, CONFIG, compiled(device, "sum", source), 1, values, out)
    stream.sync()
    assert out.item() == 1 + sum(range(2000))


def test_descriptors_by_value_ours_and_theirs(kernel, stream):
    x = torch.zeros(64, 128, device="cuda")
    ours = cuda_tma.create_tensor_map(x, box_dim=(16, 32))
    theirs = core.utils.StridedMemoryView.from_any_interface(x, stream_ptr=-1).as_tensor_map((16, 32))
    for descriptor in (ours, theirs):
        out = torch.zeros(16, dtype=torch.uint64, device="cuda")
        torch.cuda.synchronize()
        cuda_tma.launch(stream, CONFIG, kernel("put_map"), descriptor, out)
        stream.sync()
        assert out.cpu().numpy().tobytes() == bytes(ours)


def test_the_drivers_own_tensor_map_by_value(kernel, stream):
    """Encoded by cuda.bindings, with the parameters of ours."""
    x = torch.zeros(64, 128, device="cuda")
    ours = cuda_tma.create_tensor_map(x, box_dim=(16, 32))
    words, halves = cuda_driver.cuuint64_t, cuda_driver.cuuint32_t
    result, theirs = cuda_driver.cuTensorMapEncodeTiled(
        cuda_driver.CUtensorMapDataType(ours.params.data_type), 2, x.data_ptr(), [words(128), words(64)], [words(512)],
        [halves(32), halves(16)], [halves(1), halves(1)], cuda_driver.CUtensorMapInterleave(0),
        cuda_driver.CUtensorMapSwizzle(0), cuda_driver.CUtensorMapL2promotion(ours.params.l2_promotion),
        cuda_driver.CUtensorMapFloatOOBfill(0),
    )  # fmt: skip
    assert result == cuda_driver.CUresult.CUDA_SUCCESS
    out = torch.zeros(16, dtype=torch.uint64, device="cuda")
    torch.cuda.synchronize()
    cuda_tma.launch(stream, CONFIG, kernel("put_map"), theirs, out)
    stream.sync()
    arrived = out.cpu().numpy().tobytes()
    assert arrived == struct.pack("16Q", *(int(word) for word in theirs.opaque))
    assert cuda_tma.decode(arrived).global_address == x.data_ptr()


@pytest.mark.parametrize("library", ["torch", "cupy", "view", "buffer", "int", "ctypes", "pinned", "core view"])
def test_everything_that_is_a_pointer(kernel, stream, device, library):
    x = torch.zeros(4, device="cuda")
    host = torch.zeros(4).pin_memory()
    torch.cuda.synchronize()
    pointer = {
        "torch": lambda: x,
        "cupy": lambda: cupy.from_dlpack(x),
        "view": lambda: cuda_tma.StridedMemoryView.from_any_interface(x, stream_ptr=-1),
        "core view": lambda: core.utils.StridedMemoryView.from_any_interface(x, stream_ptr=-1),
        "buffer": lambda: core.Buffer.from_handle(x.data_ptr(), 16),
        "int": lambda: x.data_ptr(),
        "ctypes": lambda: ctypes.c_void_p(x.data_ptr()),
        "pinned": lambda: host,
    }[library]()
    cuda_tma.launch(stream, CONFIG, kernel("put_float"), 3.0, pointer)
    stream.sync()
    assert (host if library == "pinned" else x)[0].item() == 3.0


MISTAKES = {
    "one too many": ("put_float", lambda x, m: (1.0, x, 3), TypeError, "takes 2 arguments, and 3 were given"),
    "one too few": ("put_float", lambda x, m: (1.0,), TypeError, "takes 2 arguments, and 1 were given"),
    "a map for a pointer": (
        "put_float",
        lambda x, m: (1.0, m),
        TypeError,
        "argument 1 .*__grid_constant__ CUtensorMap",
    ),
    "a pointer for a map": ("put_map", lambda x, m: (x, x), TypeError, "argument 0 .*128 bytes.*TensorMapDescriptor"),
    "an int for a map": ("put_map", lambda x, m: (5, x), TypeError, "argument 0 .*TensorMapDescriptor"),
    "an int for a float": ("put<float>", lambda x, m: (1, x), TypeError, r"argument 0 .*float.*pass 1\.0"),
    "a float for an int": ("put<int>", lambda x, m: (1.0, x), TypeError, "argument 0 .*integer of 4 bytes.*float 1.0"),
    "a bool for an int": ("put<int>", lambda x, m: (True, x), TypeError, r"argument 0 .*pass int\(True\)"),
    "too large": (
        "put<int>",
        lambda x, m: (2**32, x),
        OverflowError,
        "4294967296 does not fit the parameter's 4 bytes",
    ),
    "too small": ("put<int>", lambda x, m: (-(2**31) - 1, x), OverflowError, "does not fit"),
    "double for float": ("put<float>", lambda x, m: (np.float64(1), x), TypeError, "argument 0 .*float64, 8 bytes"),
    "float bits for int": ("put<int>", lambda x, m: (np.float32(1), x), TypeError, "argument 0 .*integer"),
    "host array": ("put_float", lambda x, m: (1.0, np.zeros(4, np.float32)), TypeError, "argument 1 .*host memory"),
    "a string": ("put_float", lambda x, m: (1.0, "x"), TypeError, "argument 1 .*a str"),
    "None": ("put_float", lambda x, m: (1.0, None), TypeError, "argument 1"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named_and_the_next_launch_works(kernel, stream, mistake):
    name, arguments, error, message = MISTAKES[mistake]
    x = torch.zeros(64, 128, device="cuda")
    descriptor = cuda_tma.create_tensor_map(x, box_dim=(16, 32))
    with pytest.raises(error, match=message):
        cuda_tma.launch(stream, CONFIG, kernel(name), *arguments(x, descriptor))
    assert put(kernel("put_float"), stream, "float", 2.0, "float32") == 2.0


def test_cuda_core_makes_those_mistakes_silently(kernel, stream):
    """The reason for the checks; if a later cuda.core refuses, this says so."""
    x = torch.zeros(64, 128, device="cuda")
    torch.cuda.synchronize()
    core.launch(stream, CONFIG, kernel("put_float"), 1.0, x.data_ptr(), 3)
    stream.sync()
    assert x[0, 0].item() == 0.0


def test_a_descriptor_of_another_context_is_refused(kernel, stream, device):
    from cuda.bindings import driver

    x = torch.zeros(64, 128, device="cuda")
    try:
        error, other = driver.cuCtxCreate(None, 0, 0)  # CUDA 13: construction parameters, flags, device
    except TypeError:
        error, other = driver.cuCtxCreate(0, 0)  # cuda.bindings 12.9
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
    """Finding the kernel in its context does not disturb the capture."""
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


def test_shared_memory_allowed_after_the_first_launch(device, stream):
    """The driver allows it the kernel, and we launch what the kernel is in a context."""
    from cuda.bindings import driver

    source = """extern "C" __global__ void large(int* out) {
        extern __shared__ int memory[]; memory[24999] = 7; *out = memory[24999]; }"""
    large = compiled(device, "large", source)
    out = torch.zeros(1, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    config = core.LaunchConfig(grid=1, block=1, shmem_size=100_000)
    with pytest.raises(Exception, match="CUDA_ERROR_INVALID_VALUE"):
        cuda_tma.launch(stream, config, large, out)
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    driver.cuKernelSetAttribute(attribute, 100_000, driver.CUkernel(int(large.handle)), driver.CUdevice(0))
    cuda_tma.launch(stream, config, large, out)
    stream.sync()
    assert out.item() == 7


WHILE_A_HOST_FUNCTION_RUNS = (
    """
import ctypes, time, cuda_tma, torch
from cuda import core
device = cuda_tma.Device(0)
device.set_current()
source = """
    + repr("""extern "C" __global__ void fresh(unsigned char* out) {
    unsigned char local[4000];  // of which the device must have enough before the first launch
    for (int i = 0; i < 4000; i++) local[i] = out[i & 15];
    int sum = 1;
    for (int i = 0; i < 4000; i += out[3] + 1) sum += local[i * 7 % 4000];
    out[1] = sum;
}""")
    + """
kernel = core.Program(source, "c++", core.ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("fresh")
out = torch.zeros(16, dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
log = []
@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def host_function(_):
    log.append("begins")
    time.sleep(0.5)
    log.append("ends")
pending, other = device.create_stream(), device.create_stream()
assert ctypes.CDLL("libcuda.so.1").cuLaunchHostFunc(ctypes.c_void_p(int(pending.handle)), host_function, None) == 0
while not log:
    time.sleep(0.01)
cuda_tma.launch(other, core.LaunchConfig(grid=1, block=1), kernel, out)
pending.sync()
other.sync()
print(out[1].item(), log)
"""
)


def test_a_first_launch_waits_without_the_gil(device):
    """It loads the kernel, which waits for the device, and that for a host function in Python."""
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
    with pytest.raises(Exception, match=r"CUDA_ERROR_INVALID_VALUE: the driver refused to launch nothing"):
        cuda_tma.launch(stream, core.LaunchConfig(grid=1, block=2048), kernel("nothing"))


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
    """Its memory is the primary context's: a descriptor made in either is launched in both."""
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
    # And the other way round: made while the green context is current, launched elsewhere.
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
