"""Tests of the arguments of launch() on a GPU. Every kind of argument arrives, and every mistake raises an error."""

import ctypes
import struct

import numpy as np
import pytest
from cuda import core
from cuda.bindings import driver as cuda_driver

import cuda_tma

from . import launch_kernels
from .launch_kernels import CONFIG, TYPES, compiled, put

torch = pytest.importorskip("torch")
cupy = pytest.importorskip("cupy")

pytestmark = pytest.mark.usefixtures("watched")
WATCHED_LAUNCHES = 10


@pytest.fixture(scope="module")
def kernel(device):
    return launch_kernels.module(device).get_kernel


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
    """For a Python float, cuda.core 1.2 packs 8 bytes. The kernel reads the lower 4 bytes, which are 0.0."""
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
    """The test launches kernels with more than 4096 bytes of parameters, which was the limit before compute capability
    7.0 and CUDA 12.1."""
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
    """In the test, cuda.bindings encodes a tensor map with the parameters of the package."""
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
    "one too few": ("put_float", lambda x, m: (1.0,), TypeError, "takes 2 arguments, and 1 was given"),
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
    """cuda.core accepts some mistakes in arguments that launch() refuses. If a later cuda.core refuses the mistakes,
    the test fails."""
    x = torch.zeros(64, 128, device="cuda")
    torch.cuda.synchronize()
    core.launch(stream, CONFIG, kernel("put_float"), 1.0, x.data_ptr(), 3)
    stream.sync()
    assert x[0, 0].item() == 0.0
