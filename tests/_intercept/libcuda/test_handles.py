"""Tests of calls with invalid handles, which the driver library has never returned."""

from __future__ import annotations

FOREIGN = """
begin()
space = ctypes.create_string_buffer(4096)
inside = pointer(out(pointer, "cuEventCreate", 0)).value + 8
# Null and the small values of default streams have a meaning; the others are unmapped, foreign, and within an object.
foreign = [pointer(each) for each in (8, 0xDEADBEE0, (1 << 64) - 64, ctypes.addressof(space), inside)]
target, size, other = ctypes.byref(u64()), ctypes.c_size_t(16), pointer(ctypes.addressof(space) + 2048)
address = u64(out(u64, "cuMemAlloc_v2", size))
event, stream = pointer(out(pointer, "cuEventCreate", 0)), pointer(out(pointer, "cuStreamCreate", 0))
graph = pointer(out(pointer, "cuGraphCreate", 0))
ENTRIES = {
    400: lambda x: [
        ("cuStreamDestroy_v2", x), ("cuStreamSynchronize", x), ("cuStreamQuery", x), ("cuStreamGetFlags", x, target),
        ("cuStreamGetPriority", x, target), ("cuStreamGetCtx", x, target), ("cuStreamWaitEvent", stream, x, 0),
        ("cuStreamWaitEvent", x, event, 0), ("cuEventRecord", x, stream), ("cuEventRecord", event, x),
        ("cuEventDestroy_v2", x), ("cuEventSynchronize", x), ("cuEventQuery", x),
        ("cuEventElapsedTime", target, x, event), ("cuEventElapsedTime", target, event, x),
        ("cuModuleUnload", x), ("cuModuleGetFunction", target, x, b"scale"), ("cuModuleGetFunctionCount", target, x),
        ("cuModuleGetGlobal_v2", target, target, x, b"factor"), ("cuLibraryUnload", x),
        ("cuLibraryGetKernel", target, x, b"scale"), ("cuLibraryGetModule", target, x),
        ("cuFuncGetAttribute", target, 0, x), ("cuFuncSetAttribute", x, 8, 0), ("cuFuncGetModule", target, x),
        ("cuFuncGetName", target, x), ("cuKernelGetFunction", target, x), ("cuFuncSetCacheConfig", x, 0),
        ("cuLaunchKernel", x, 1, 1, 1, 1, 1, 1, 0, None, None, None),
        ("cuOccupancyMaxActiveBlocksPerMultiprocessor", target, x, 32, u64(0)),
        ("cuMemcpyHtoDAsync_v2", address, other, size, x), ("cuMemsetD8Async", address, 1, size, x),
        ("cuMemFreeAsync", address, x), ("cuMemAllocAsync", target, size, x), ("cuLinkComplete", x, target, target),
        ("cuLinkDestroy", x), ("cuArrayDestroy", x), ("cuLaunchHostFunc", x, other, None),
        ("cuStreamBeginCapture_v2", x, 0), ("cuStreamEndCapture", x, target), ("cuGraphLaunch", graph, x),
    ],
    1: lambda x: [
        ("cuGraphDestroy", x), ("cuGraphExecDestroy", x), ("cuGraphGetNodes", x, None, target),
        ("cuGraphInstantiateWithFlags", target, x, u64(0)), ("cuGraphNodeGetType", x, target),
        ("cuGraphDestroyNode", x), ("cuGraphKernelNodeGetParams_v2", x, other), ("cuMemRelease", x),
        ("cuGraphAddEmptyNode", target, x, None, 0), ("cuGraphClone", target, x), ("cuGraphLaunch", x, stream),
        ("cuUserObjectRelease", x, 1), ("cuMemPoolDestroy", x), ("cuMemPoolTrimTo", x, size),
        ("cuMemAllocFromPoolAsync", target, size, x, stream),
        ("cuDeviceSetMemPool", 0, x), ("cuMemMap", address, size, u64(0), x, u64(0)),
    ],
    201: lambda x: [
        ("cuCtxPushCurrent_v2", x), ("cuCtxDestroy_v2", x), ("cuCtxSetCurrent", x), ("cuCtxGetId", x, target),
        ("cuCtxGetApiVersion", x, target),
    ],
}
for expected, entries in ENTRIES.items():
    for value in foreign:
        for name, *arguments in entries(value):
            found = getattr(cuda, name)(*arguments)
            if found not in (expected, 1, 400):
                print(name, hex(value.value), found)
print("end")
"""

REUSED = """
begin()
graph = pointer(out(pointer, "cuGraphCreate", 0))
for _ in range(3):
    out(pointer, "cuGraphAddEmptyNode", graph, None, 0)
    require(cuda.cuGraphInstantiateWithFlags(ctypes.byref(executable := pointer()), graph, u64(0)))
    require(cuda.cuGraphLaunch(executable, None))
    require(cuda.cuGraphExecDestroy(executable))
    require(cuda.cuGraphLaunch(executable, None), 1)
assert len({out(pointer, "cuEventCreate", 0) for _ in range(100_000)}) == 100_000
"""


def test_a_foreign_value_is_an_error_in_place_of_a_crash(run):
    ran = run(FOREIGN)
    assert (ran.out.splitlines()[:1], ran.notes) == (["end"], ["the program launched no kernel"])


def test_handles_of_executable_graphs_are_used_again(run):
    ran = run(REUSED)
    assert "Traceback" not in ran.err, ran.err
