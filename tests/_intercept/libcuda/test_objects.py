"""Tests of the user objects that graphs keep for a program, also through a graph of cuda.core."""

from __future__ import annotations

OBJECTS = """
begin()
destroyed = []
hook = ctypes.CFUNCTYPE(None, pointer)(destroyed.append)
graph, executable = pointer(out(pointer, "cuGraphCreate", 0)), pointer()

def made(number, count=1):
    return pointer(out(pointer, "cuUserObjectCreate", pointer(number), hook, count, 1))

moved, shared, released = made(1), made(2), made(3, 2)
require(cuda.cuGraphRetainUserObject(graph, moved, 1, 1))
require(cuda.cuGraphRetainUserObject(graph, shared, 1, 0))
require(cuda.cuUserObjectRelease(released, 1))
assert destroyed == []
require(cuda.cuUserObjectRelease(released, 1))
assert destroyed == [3]
require(cuda.cuUserObjectRelease(released, 1), 1)
require(cuda.cuGraphReleaseUserObject(graph, shared, 1))
require(cuda.cuGraphReleaseUserObject(graph, shared, 1), 1)
require(cuda.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, u64(0)))
require(cuda.cuGraphDestroy(graph))
assert destroyed == [3]
require(cuda.cuGraphExecDestroy(executable))
assert destroyed == [3, 1]
require(cuda.cuUserObjectRelease(shared, 1))
assert destroyed == [3, 1, 2]
require(cuda.cuGraphRetainUserObject(graph, made(4), 1, 0), 1)
require(cuda.cuUserObjectCreate(None, None, None, 0, 0), 1)
"""

GRAPH = '''
import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = """extern "C" __global__ void add(float* values, float other) { values[threadIdx.x] += other; }"""
device = Device()
device.set_current()
stream = device.create_stream()
program = Program(SOURCE, code_type="c++", options=ProgramOptions(std="c++17", arch=f"sm_{device.arch}"))
kernel = program.compile("cubin").get_kernel("add")
values, found = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
memory = device.allocate(128, stream=stream)
driver.cuMemcpyHtoD(int(memory.handle), values.ctypes.data, 128)

builder = stream.create_graph_builder()
builder.begin_building()
for other in (1, 2):
    launch(builder, LaunchConfig(grid=1, block=32), kernel, memory, np.float32(other))
graph = builder.end_building().complete()
for launched in range(3):
    driver.cuMemcpyDtoH(found.ctypes.data, int(memory.handle), 128)
    assert (found == values + 3 * launched).all(), found
    graph.launch(stream)
    stream.sync()
memory.close(stream)
'''


def test_an_object_is_destroyed_when_no_graph_keeps_it(run):
    ran = run(OBJECTS)
    assert "Traceback" not in ran.err, ran.err


def test_a_graph_of_cuda_core_runs_at_each_launch(run):
    ran = run(GRAPH, "")
    assert (ran.status, ran.kinds, ran.err) == (0, [], "")
    assert len(ran.launches) == 6


def test_a_pool_of_host_memory_is_memory_of_the_process(run):
    """cuda.core reads attribute 144, CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, before it creates the pool."""
    ran = run(
        """
begin()
assert out(i32, "cuDeviceGetAttribute", 144, 0) == 1
properties = (ctypes.c_uint32 * 22)(1, 0, 2, 0)  # CUmemPoolProps: pinned, without handles, of the host
pool = pointer(out(pointer, "cuMemPoolCreate", properties))
address = out(u64, "cuMemAllocFromPoolAsync", ctypes.c_size_t(128), pool, None)
values = np.ctypeslib.as_array((ctypes.c_uint32 * 32).from_address(address))
values[:] = np.arange(32)
module, function = loaded()
launch(function, 32, u64(address))
assert (values == 5 * np.arange(32)).all()
require(cuda.cuMemFreeAsync(u64(address), None))
"""
    )
    assert (ran.status, ran.kinds, ran.leaks) == (0, [], []), ran.err
