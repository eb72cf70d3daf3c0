"""Tests of the command's driver library through its C entries, which ctypes calls."""

from __future__ import annotations


def test_a_launch_changes_memory_and_is_checked(run):
    ran = run("""
begin()
_, function = loaded()
values = np.arange(32, dtype=np.uint32)
address = array(values)
launch(function, 32, address)
assert (read(address, np.zeros_like(values)) == 5 * values).all()
require(cuda.cuMemFree_v2(address))
""")
    assert (ran.status, ran.kinds, ran.err) == (0, [], "")
    (launched,) = ran.launches
    assert (launched["kernel"], launched["block"], launched["skipped"]) == ("scale", [32, 1, 1], None)
    assert launched["launched_at"]["file"] == "script.py"


def test_a_thread_beyond_an_allocation_is_found(run):
    ran = run("begin()\n_, function = loaded()\nlaunch(function, 33, array(np.zeros(32, np.uint32)))\n")
    assert (ran.status, ran.kinds) == (1, ["out-of-bounds"])
    assert "memory, 128 bytes" in ran.launches[0]["findings"][0]["message"]


def test_a_kernel_that_uses_freed_memory_is_found(run):
    ran = run("""
begin()
_, function = loaded()
address = array(np.zeros(32, np.uint32))
require(cuda.cuMemFree_v2(address))
launch(function, 32, address)
""")
    assert (ran.status, ran.kinds) == (1, ["out-of-bounds"])
    assert "which the program has freed" in ran.launches[0]["findings"][0]["message"]


def test_variables_of_two_loads_are_apart(run):
    ran = run("""
begin()
(first, function), (second, other) = loaded(), loaded()
address = u64()
require(cuda.cuModuleGetGlobal_v2(ctypes.byref(address), None, first, b"factor"))
require(cuda.cuMemsetD32_v2(address, 7, ctypes.c_size_t(1)))
values = array(np.ones(4, np.uint32))
launch(function, 4, values)
launch(other, 4, values)
assert (read(values, np.zeros(4, np.uint32)) == 35).all()
require(cuda.cuModuleUnload(first))
require(cuda.cuModuleGetFunction(ctypes.byref(pointer()), first, b"scale"), 400)
launch(function, 4, values, expected=400)
""")
    assert (ran.status, ran.kinds) == (0, [])


def test_tensor_maps_are_the_bytes_of_the_encoder(run):
    ran = run("""
from cuda_tma import TiledParams, encode
begin()
storage = (u64 * 32)()
map = (ctypes.addressof(storage) + 63) // 64 * 64
params = dict(data_type=7, global_address=1 << 30, global_dim=(64, 32, 3), global_strides=(256, 8192),
              element_strides=(1, 1, 2), box_dim=(16, 8, 2), interleave=0, swizzle=2, l2_promotion=2, oob_fill=1)
arrays = [(u64 * 3)(64, 32, 3), (u64 * 2)(256, 8192), (ctypes.c_uint32 * 3)(16, 8, 2), (ctypes.c_uint32 * 3)(1, 1, 2)]
require(cuda.cuTensorMapEncodeTiled(pointer(map), 7, 3, pointer(1 << 30), *arrays, 0, 2, 2, 1))
assert ctypes.string_at(map, 128) == encode(TiledParams(**params))
require(cuda.cuTensorMapEncodeTiled(pointer(map), 7, 3, pointer(8), *arrays, 0, 2, 2, 1), 1)
""")
    # The command ends with status 3, because the program launches no kernel.
    assert ran.status == 3, ran.err
    assert "the driver refuses a tensor map: " in ran.err and "16" in ran.err and "Traceback" not in ran.err


def test_each_version_of_an_entry_is_found(run):
    ran = run("""
require(cuda.cuInit(0))
address = lambda name: ctypes.cast(getattr(cuda, name), pointer).value
def found(name, version, expected=0):
    entry, status = pointer(), i32(-1)
    require(cuda.cuGetProcAddress_v2(name, ctypes.byref(entry), version, u64(0), ctypes.byref(status)))
    require(status.value, expected)
    return entry.value
assert found(b"cuMemAlloc", 2000) == address("cuMemAlloc") != found(b"cuMemAlloc", 12000) == address("cuMemAlloc_v2")
assert found(b"cuCtxCreate", 13000) == address("cuCtxCreate_v4")
assert found(b"cuProfilerStart", 4000) == address("cuProfilerStart")
begin()
require(cuda.cuProfilerStart() or cuda.cuProfilerStop())
assert found(b"cuLaunchKernelEx", 11000, 2) is None
assert found(b"cuNothing", 13000, 1) is None
""")
    assert ran.err == "cuda-tma: note: the program launched no kernel\n"


def test_an_absent_entry_is_reported(run):
    ran = run("require(cuda.cuInit(0))\nrequire(cuda.cuGraphicsMapResources(0, None, None), 801)\n")
    assert "does not have cuGraphicsMapResources: it returned CUDA_ERROR_NOT_SUPPORTED" in ran.err


WRONG = """
size = ctypes.c_size_t
require(cuda.cuMemAlloc_v2(ctypes.byref(u64()), size(64)), 3)
begin()
require(cuda.cuMemAlloc_v2(None, size(64)), 1)
require(cuda.cuMemAlloc_v2(ctypes.byref(u64()), size(0)), 1)
require(cuda.cuMemAlloc_v2(ctypes.byref(u64()), size(1 << 60)), 2)
require(cuda.cuModuleLoadData(None, PTX), 1)
require(cuda.cuModuleLoadData(ctypes.byref(pointer()), None), 1)
require(cuda.cuModuleLoadData(ctypes.byref(pointer()), pointer(8)), 200)
require(cuda.cuModuleLoadData(ctypes.byref(pointer()), b"no PTX"), 218)
require(cuda.cuModuleLoadData(ctypes.byref(pointer()), struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 60)), 200)
require(cuda.cuModuleLoadData(ctypes.byref(pointer()), struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 29)), 200)
require(cuda.cuModuleGetFunction(None, None, None), 400)
require(cuda.cuLaunchKernel(None, 1, 1, 1, 1, 1, 1, 0, None, None, None), 400)
require(cuda.cuLaunchKernelEx(None, None, None, None), 1)
_, function = loaded()
launch(function, 0, u64(), expected=1)
require(cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, None, None), 1)
require(cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 49153, None, (pointer * 1)(), None), 1)
require(cuda.cuDeviceGetAttribute(None, 1, 0), 1)
require(cuda.cuDeviceGetAttribute(ctypes.byref(i32()), 1, 1), 101)
require(cuda.cuTensorMapEncodeTiled(None, 7, 3, None, None, None, None, None, 0, 0, 0, 0), 1)
require(cuda.cuMemcpyDtoH_v2(None, u64(5), size(4)), 1)
require(cuda.cuEventRecord(None, None), 400)
require(cuda.cuFuncGetName(ctypes.byref(pointer()), None), 1)
host = ctypes.create_string_buffer(128)
require(cuda.cuMemHostRegister_v2(host, size(128), 0))
require(cuda.cuMemHostUnregister(pointer(ctypes.addressof(host) + 64)), 1)
require(cuda.cuMemHostUnregister(host))
require(cuda.cuMemHostUnregister(host), 713)
text = ctypes.c_char_p()
for error, expected in {0: b"no error", 700: b"an illegal memory access was encountered", 900: None}.items():
    require(cuda.cuGetErrorString(error, ctypes.byref(text)))
    assert text.value == expected or expected is None, text
require(cuda.cuGetErrorString(12345, ctypes.byref(text)), 1)
assert text.value is None
"""


def test_wrong_calls_return_the_errors_of_the_driver(run):
    ran = run(WRONG)
    assert "Traceback" not in ran.err, ran.err
    assert ran.status == 3


def test_an_array_of_another_library_is_reached_at_its_address(run):
    ran = run("""
from cuda_tma._intercept.session import current
begin()
_, function = loaded()
values = np.arange(4, dtype=np.uint32)
address = u64(current().device.address(values))
launch(function, 4, address)
assert (values == [0, 5, 10, 15]).all()
assert (read(address, np.zeros_like(values)) == values).all()
""")
    assert (ran.status, ran.kinds) == (0, [])


def test_memory_released_after_the_end_of_python_is_right(run):
    ran = run("""
begin()
address = array(np.zeros(4, np.uint32))
class Last:
    def __del__(self, free=cuda.cuMemFree_v2, address=address):
        assert free(address) == 0
last = Last()
""")
    assert "Traceback" not in ran.err and "Exception" not in ran.err
