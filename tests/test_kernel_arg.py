"""Tests of the bytes that cuLaunchKernelEx receives for the arguments of launch(), on a fake driver."""

import ctypes
import struct

import numpy as np
import pytest
from cuda import core
from cuda.bindings import driver as cuda_driver

import cuda_tma
from cuda_tma import TensorMapError
from tests.support.capsules import Exporter, OldExporter


class Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_double))


class Four(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int),)


def int_like(value):
    return type("Int", (int,), {})(value)


def float_like(value):
    return type("Float", (float,), {})(value)


def complex_like(value):
    return type("Complex", (complex,), {})(value)


def condition(handle):
    """Return a GraphCondition without a graph, although cuda.core makes conditions only in a graph."""
    graph = pytest.importorskip("cuda.core.graph")
    return type("Condition", (graph.GraphCondition,), {"handle": handle})()


PACKED = [
    (5, 1, b"\5"), (-5, 1, b"\xfb"), (255, 1, b"\xff"), (-2, 2, b"\xfe\xff"), (7, 4, b"\7\0\0\0"), (-1, 8, b"\xff" * 8),
    (2**64 - 1, 8, b"\xff" * 8), (1.5, 4, struct.pack("f", 1.5)), (1.5, 8, struct.pack("d", 1.5)), (True, 1, b"\1"),
    (False, 1, b"\0"), (1 + 2j, 8, struct.pack("ff", 1, 2)), (1 + 2j, 16, struct.pack("dd", 1, 2)),
    (np.int8(-1), 1, b"\xff"), (np.uint16(513), 2, b"\1\2"), (np.float16(1), 2, b"\x00\x3c"),
    (np.float32(1.5), 4, struct.pack("f", 1.5)), (np.float64(1.5), 8, struct.pack("d", 1.5)),
    (np.bool_(True), 1, b"\1"),
    (np.complex64(1 + 2j), 8, struct.pack("ff", 1, 2)), (ctypes.c_int(-3), 4, struct.pack("i", -3)),
    (ctypes.c_uint8(200), 1, b"\xc8"), (ctypes.c_double(2), 8, struct.pack("d", 2)), (ctypes.c_bool(True), 1, b"\1"),
    (ctypes.c_void_p(0x1234), 8, struct.pack("Q", 0x1234)), (Pair(1, 2.0), 16, bytes(Pair(1, 2.0))),
    (int_like(5), 4, b"\5\0\0\0"), (float_like(1.5), 4, struct.pack("f", 1.5)),
    (2**63, 8, bytes(7) + b"\x80"), (-(2**63), 8, bytes(7) + b"\x80"), (2**32 - 1, 4, b"\xff" * 4), (-128, 1, b"\x80"),
    (-(2**31), 4, b"\0\0\0\x80"), (-(2**15), 2, b"\0\x80"), (2**16 - 1, 2, b"\xff\xff"), (0, 8, bytes(8)),
    (np.int64(-2), 8, b"\xfe" + b"\xff" * 7), (np.uint64(2**64 - 1), 8, b"\xff" * 8), (np.int32(-1), 4, b"\xff" * 4),
    (np.bool_(False), 1, b"\0"), (np.complex128(1 + 2j), 16, struct.pack("dd", 1, 2)),
    (complex_like(1 + 2j), 8, struct.pack("ff", 1, 2)), (float("nan"), 8, struct.pack("d", float("nan"))),
    (-float("inf"), 4, struct.pack("f", -float("inf"))), (3.4028234e38, 4, struct.pack("f", 3.4028234e38)),
    (condition(0x77), 8, struct.pack("Q", 0x77)), (cuda_driver.CUdeviceptr(0x1234), 8, struct.pack("Q", 0x1234)),
    (cuda_driver.CUstream(0x99), 8, struct.pack("Q", 0x99)), (Four(9), 4, b"\x09\0\0\0"),
    ((ctypes.c_char * 3)(*b"abc"), 3, b"abc"), (np.void(b"abc"), 3, b"abc"),
    (float("inf"), 4, struct.pack("f", float("inf"))), (-np.float32(0), 4, b"\0\0\0\x80"),
    (np.array((1, 2.0), np.dtype([("a", "i4"), ("b", "f8")], align=True))[()], 16, bytes(Pair(1, 2.0))),
]  # fmt: skip


@pytest.mark.parametrize(("value", "size", "wanted"), PACKED)
def test_a_value_takes_the_parameters_size(launch, value, size, wanted):
    packed = launch("k", [size], value).arguments[0]
    padded = isinstance(value, (Pair, np.void)) and size == 16
    mask = b"\xff\xff\xff\xff\0\0\0\0" + b"\xff" * 8 if padded else b"\xff" * 16
    assert bytes(a & m for a, m in zip(packed, mask)) == bytes(a & m for a, m in zip(wanted, mask))  # noqa: B905


@pytest.mark.parametrize(("value", "size", "_"), PACKED)
def test_a_value_writes_nothing_after_its_parameter(launch, driver, value, size, _):
    """A value writes no byte after its parameter. The test packs the next parameter before the value."""
    parameter_info = driver.cuKernelGetParamInfo

    def of_the_other(kernel, index, offset, size):
        parameter_info(kernel, 0, offset, size)
        return parameter_info(kernel, 1 - index if index < 2 else index, offset, size)

    driver.cuKernelGetParamInfo = of_the_other
    driver.install()
    assert launch("k", [size, 1, 8], 0xA5, value, 0).arguments[1] == b"\xa5"


def test_arguments_have_the_places_that_the_kernel_reads(launch, device_tensor):
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    given = launch("k", [1, 128, 4, 8], 3, descriptor, 2.0, device_tensor((8,), address=0xABC0))
    assert given.arguments == [b"\3", bytes(descriptor), struct.pack("f", 2.0), struct.pack("Q", 0xABC0)]


MISTAKES = [
    ("k", [4, 8], (1,), TypeError, "kernel k takes 2 arguments, and 1 was given"),
    ("k", [4], (1, 2), TypeError, "takes 1 argument, and 2 were given"),
    ("k", [128], (5,), TypeError, "argument 0 of kernel k: the parameter takes 128 bytes, and the int 5 .*Descriptor"),
    ("k", [12], (5,), TypeError, "takes 12 bytes, and the int 5 was passed"),
    ("k", [4], (2**32,), OverflowError, "4294967296 does not fit .* 4 bytes, whose range is -2147483648 to 4294967295"),
    ("k", [1], (-129,), OverflowError, "-129 does not fit"),
    ("k", [8], (2**64,), OverflowError, "does not fit"),
    ("k", [4], (True,), TypeError, r"the bool True \(1 byte\) was passed; pass int\(True\)"),
    ("k", [2], (1.0,), TypeError, r"float 1.0 was passed; pass numpy.float16\(value\) or"),
    ("k", [4], (np.float64(1),), TypeError, r"1\.0\)? \(float64, 8 bytes\)"),
    ("k", [4], (1 + 2j,), TypeError, r"the complex \(1\+2j\)"),
    ("k", [16], (ctypes.c_int(1),), TypeError, r"c_int, 4 bytes"),
    ("k", [8], ("text",), TypeError, "argument 0 .*a str was passed .*neither __dlpack__ nor"),
    ("k", [8], (10**5000,), OverflowError, "<16610 bits> does not fit the parameter's 8 bytes"),
    ("k", [8], (type("Odd", (), {"__module__": None})(),), TypeError, "a Odd was passed .*is not a tensor"),
    ("k", [8], (np.zeros(4),), TypeError, "argument 0 .*host memory"),
    ("_Z1kf", [4], (1,), TypeError, r"takes a float of 4 bytes, and the int 1 was passed; pass 1\.0"),
    ("_Z1ki", [4], (1.0,), TypeError, "takes an integer of 4 bytes, and the float 1.0"),
    ("_Z1kb", [1], (1,), TypeError, r"takes a bool of 1 byte, and the int 1 was passed; pass bool\(1\)"),
    ("_Z1ki", [4], (np.float32(1),), TypeError, "takes an integer of 4 bytes"),
    ("_Z1kf", [4], (ctypes.c_int(1),), TypeError, "takes a float of 4 bytes"),
    ("_Z1kPf", [8], (1.0,), TypeError, "takes a pointer of 8 bytes"),
    ("_Z1kb", [1], (np.int8(5),), TypeError, "takes a bool of 1 byte"),
    ("_Z1k6__half", [2], (1,), TypeError, "takes a float of 2 bytes"),
    ("k", [8], (np.str_("ab"),), TypeError, "argument 0 .*a str_ was passed"),
    ("k", [8], (np.datetime64("2026-01-01"),), TypeError, "argument 0 .*a datetime64 was passed"),
    ("k", [8], (np.array([object()]),), TypeError, "argument 0 .*a ndarray was passed"),
    ("k", [4], (1e300,), OverflowError, "argument 0 of kernel k: 1e\\+300 does not fit a float"),
    ("_Z1kd", [8], (np.zeros(1),), TypeError, "argument 0"),
    ("k", [4], (-(2**31) - 1,), OverflowError, "-2147483649 does not fit"),
    ("k", [1], (256,), OverflowError, "256 does not fit the parameter's 1 bytes, whose range is -128 to 255"),
    ("k", [2], (65536,), OverflowError, "65536 does not fit the parameter's 2 bytes, whose range is -32768 to 65535"),
    ("k", [8], (-(2**63) - 1,), OverflowError, f"whose range is {-(2**63)} to {2**64 - 1}"),
    ("k", [4], (2**64,), OverflowError, "18446744073709551616 does not fit the parameter's 4 bytes"),
    ("k", [8], (1 << 128,), OverflowError, "<129 bits> does not fit"),
    ("k", [8], ((1 << 128) - 1,), OverflowError, "340282366920938463463374607431768211455 does not fit"),
    ("_Z1kPf", [8], (1 + 2j,), TypeError, r"takes a pointer of 8 bytes, and the complex \(1\+2j\)"),
    ("_Z1kd", [8], (1 + 2j,), TypeError, r"takes a float of 8 bytes, and the complex"),
    ("k", [4], (complex(1),), TypeError, r"takes 4 bytes, and the complex \(1\+0j\)"),
    (
        "_Z1kPf",
        [8],
        (True,),
        TypeError,
        r"takes a pointer of 8 bytes, and the bool True \(1 byte\) was passed; pass int",
    ),
    ("_Z1kPf", [1], (True,), TypeError, "takes a pointer of 1 byte, and the bool"),
    ("_Z1kf", [1], (True,), TypeError, "takes a float of 1 byte, and the bool"),
    ("_Z1kf", [4], (np.uint32(5),), TypeError, r"takes a float of 4 bytes, and .* \(uint32, 4 bytes\)"),
    ("_Z1kPf", [8], (np.float64(5),), TypeError, r"takes a pointer of 8 bytes, and .* \(float64, 8 bytes\)"),
    ("_Z1kPf", [8], (ctypes.c_double(5),), TypeError, r"takes a pointer of 8 bytes, and .* \(c_double, 8 bytes\)"),
    ("_Z1kPf", [8], (np.bool_(True),), TypeError, r"takes a pointer of 8 bytes, and .* \(bool_?, 1 bytes\)"),
    ("_Z1ki", [1], (ctypes.c_bool(True),), TypeError, r"takes an integer of 1 byte, and .* \(c_bool, 1 bytes\)"),
    ("_Z1kd", [8], (ctypes.c_void_p(5),), TypeError, r"takes a float of 8 bytes, and .* \(c_void_p, 8 bytes\)"),
    ("_Z1kd", [8], (ctypes.pointer(ctypes.c_int(5)),), TypeError, r"takes a float of 8 bytes, and .*LP_c_int"),
    (
        "_Z1kd",
        [8],
        (cuda_driver.CUdeviceptr(5),),
        TypeError,
        r"a float of 8 bytes, and the address of a CUdeviceptr \(8",
    ),
    ("k", [4], (cuda_driver.CUdeviceptr(5),), TypeError, "takes 4 bytes, and the address of a CUdeviceptr"),
    ("_Z1kb", [8], (cuda_driver.CUdeviceptr(5),), TypeError, "a bool of 8 bytes, and the address of a CUdeviceptr"),
    ("k", [4], (condition(5),), TypeError, "takes 4 bytes, and the address of a Condition"),
    (
        "k",
        [8],
        (cuda_driver.CUtensorMap(),),
        TypeError,
        r"a tensor map \(128 bytes\) was passed; declare the parameter as",
    ),
    ("_Z1kPfi", [8, 4], (1, 1.0), TypeError, "argument 1 of kernel k: the parameter takes an integer"),
    (
        "_Z1kf",
        [2],
        (1.0,),
        TypeError,
        r"takes a float of 2 bytes, and the float 1.0 was passed; pass numpy.float16\(value",
    ),
]


@pytest.mark.parametrize(("name", "sizes", "args", "error", "message"), MISTAKES)
def test_mistakes_are_named_and_nothing_is_launched(launch, driver, name, sizes, args, error, message):
    with pytest.raises(error, match=message):
        launch(name, sizes, *args)
    assert driver.launches == []
    assert launch("k", [4], 1).arguments == [b"\1\0\0\0"]


def test_a_descriptor_and_a_pointer_are_not_confused(launch, device_tensor):
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    with pytest.raises(TypeError, match="declare the parameter as const __grid_constant__ CUtensorMap, by value"):
        launch("k", [8], descriptor)
    with pytest.raises(TypeError, match="address of a DeviceTensor .* a parameter of 128 bytes takes a TensorMapDesc"):
        launch("k", [128], device_tensor((4,)))


def test_an_array_is_its_address(launch, driver, device_tensor):
    """Each launch passes the address of an array of any library. An integer of ctypes is not a tensor, and each launch
    passes the integer by value."""
    torch = pytest.importorskip("torch")
    driver.pinned = ((0, 1 << 63),)
    tensor = torch.zeros(8, 4)
    view = cuda_tma.StridedMemoryView.from_dlpack(tensor[2:], stream_ptr=-1)
    for _ in range(2):
        assert launch("k", [8, 8], tensor, tensor[2:]).arguments == [
            struct.pack("Q", tensor.data_ptr()), struct.pack("Q", tensor.data_ptr() + 32)
        ]  # fmt: skip
        assert launch("k", [8], view).arguments == [struct.pack("Q", tensor.data_ptr() + 32)]
        assert launch("k", [8], torch.zeros(0)).arguments == [bytes(8)]
        with pytest.raises(TypeError, match="argument 0 .* a Tensor was passed .*negative bit"):
            launch("k", [8], torch.zeros(4, dtype=torch.complex64).conj().imag)
        with pytest.raises(TensorMapError, match="c_int"):
            cuda_tma.create_tensor_map(ctypes.c_int(3), box_dim=(4,))
        assert launch("k", [4], ctypes.c_int(3)).arguments == [b"\3\0\0\0"]


def test_kinds_that_agree_are_taken(launch, device_tensor):
    given = launch("_Z1kPfifb", [8, 4, 4, 1], device_tensor((4,), address=0x40), 2, 0.5, True)
    assert given.arguments == [struct.pack("Q", 0x40), struct.pack("i", 2), struct.pack("f", 0.5), b"\1"]


@pytest.mark.parametrize(
    ("name", "sizes", "args"), [("_Z1kif", [4], (1.5,)), ("_Z1kf", [4, 4], (1, 2)), ("k", [4], (1.5,))]
)
def test_a_name_of_another_number_of_parameters_gives_no_kinds(launch, name, sizes, args):
    """A launch takes the sizes of parameters from the driver, even if the mangled name has another number of
    parameters."""
    assert [len(argument) for argument in launch(name, sizes, *args).arguments] == sizes


POINTERS = [
    np.uint64(0x1230), np.int64(0x1230), 0x1230, ctypes.c_void_p(0x1230), ctypes.c_uint64(0x1230), condition(0x1230),
    cuda_driver.CUdeviceptr(0x1230), ctypes.cast(0x1230, ctypes.POINTER(ctypes.c_float)),
    core.Buffer.from_handle(0x1230, 64),
]  # fmt: skip


@pytest.mark.parametrize("pointer", POINTERS, ids=lambda pointer: type(pointer).__name__)
@pytest.mark.parametrize("name", ["_Z1kPf", "_Z1ky", "k"])
def test_pointers_of_every_kind(launch, name, pointer):
    """A kernel parameter with the type of an 8-byte integer also accepts a pointer."""
    assert launch(name, [8], pointer).arguments == [struct.pack("Q", 0x1230)]


@pytest.mark.parametrize("pointer", [0, np.uint64(0), ctypes.c_void_p(None), ctypes.POINTER(ctypes.c_int)()])
def test_a_null_pointer_is_passed(launch, pointer):
    assert launch("_Z1kPf", [8], pointer).arguments == [bytes(8)]


@pytest.mark.parametrize("device_type", [1, 2, 3, 8, 10, 13, 14])
@pytest.mark.parametrize("kind", [Exporter, OldExporter])
def test_pointers_of_other_vendors_are_refused(launch, driver, kind, device_type):
    """In DLPack, the device type is 1 for the CPU, 2 for CUDA, 3 for pinned memory, 8 for Metal, 10 for ROCm, 13 for
    managed memory, and 14 for oneAPI."""
    driver.pinned = ((1 << 32, 1 << 33),)
    tensor = kind(device_type=device_type)
    if device_type in (1, 2, 3, 13):
        assert launch("k", [8], tensor).arguments == [struct.pack("Q", 1 << 32)]
        return
    message = f"argument 0 of kernel k: .*on DLPack device type {device_type}, which is not a CUDA device's memory"
    for _ in range(2):
        with pytest.raises(TypeError, match=message):
            launch("k", [8], tensor)
    assert driver.launches == []


def test_an_array_without_memory_is_refused_unless_it_is_empty(launch):
    with pytest.raises(TypeError, match=r"a Exporter was passed \(the tensor has no memory of its own \(address 0\)"):
        launch("k", [8], Exporter(address=0))
    assert launch("k", [8], Exporter((4, 0), address=0)).arguments == [bytes(8)]
    assert launch("k", [8], Exporter((4, 0), address=64)).arguments == [struct.pack("Q", 64)]
    with pytest.raises(TypeError, match=r"a Buffer was passed"):
        launch("k", [8], core.Buffer.from_handle(0, 64))


def test_the_drivers_own_tensor_map_is_passed_by_value(launch, device_tensor):
    """The encoders of cuda.bindings create a CUtensorMap."""
    raw = bytes(cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32)))
    theirs = cuda_driver.CUtensorMap()
    theirs.opaque = list(struct.unpack("16Q", raw))
    assert launch("k", [4, 128], 7, theirs).arguments == [b"\7\0\0\0", raw]
    with pytest.raises(
        TypeError, match=r"takes a pointer of 8 bytes, and a tensor map \(128 bytes\) was passed; declare"
    ):
        launch("_Z1kPv", [8], theirs)


def test_a_descriptor_is_packed_by_value(launch, driver, device_tensor):
    """If the conversion of a later argument changes a descriptor, the launch uses the descriptor's earlier bytes."""
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    before = bytes(descriptor)

    class Meddler(device_tensor):
        def __dlpack__(self, **keywords):
            descriptor.replace_address(1 << 40)
            return super().__dlpack__(**keywords)

    assert launch("k", [128, 8], descriptor, Meddler((4,))).arguments[0] == before != bytes(descriptor)


def test_many_and_large_arguments(launch):
    sizes = [4] * 100 + [2000]
    structure = np.zeros((), np.dtype((np.void, 2000)))[()]
    assert launch("k", sizes, *range(100), structure).arguments[99] == b"c\0\0\0"
