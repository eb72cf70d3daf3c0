"""Tests of CUDA graphs whose nodes a program adds through the driver's interface. The nodes run in the order of their
dependencies."""

from __future__ import annotations

import pytest

BEGIN = """
begin()
size = ctypes.c_size_t
node_bytes = 8

def nodes(*given):
    return (pointer * max(len(given), 1))(*given)

def added(entry, graph, before, *arguments):
    return out(pointer, entry, pointer(graph), nodes(*before), size(len(before)), *arguments)

def kernel(function, address, threads=8):
    values = (pointer * 1)(ctypes.addressof(address))
    packed = struct.pack("<Q7I4xQQQQ", function.value, 1, 1, 1, threads, 1, 1, 0, ctypes.addressof(values), 0, 0, 0)
    return packed, values

def fill(address, value):
    return struct.pack("<QQIIQQ", address.value, 0, value, 4, 8, 1)

def launched(executable):
    require(cuda.cuGraphLaunch(pointer(executable), None))

values = np.zeros(8, np.uint32)
address = array(values)
_, function = loaded()
graph = out(pointer, "cuGraphCreate", 0)
packed, kept = kernel(function, address)
"""


@pytest.mark.parametrize("order", ["kernel first", "fill first"])
def test_nodes_run_by_their_dependencies(run, order):
    text = {
        "fill first": """
first = added("cuGraphAddMemsetNode", graph, (), fill(address, 3), None)
added("cuGraphAddKernelNode_v2", graph, (first,), packed)
""",
        "kernel first": """
last = added("cuGraphAddKernelNode_v2", graph, (), packed)
first = added("cuGraphAddMemsetNode", graph, (), fill(address, 3), None)
require(cuda.cuGraphAddDependencies(pointer(graph), nodes(first), nodes(last), size(1)))
""",
    }[order]
    ran = run(
        f"""{BEGIN}{text}
executable = out(pointer, "cuGraphInstantiateWithFlags", pointer(graph), u64(0))
require(cuda.cuGraphDestroy(pointer(graph)))
launched(executable)
require(list(read(address, values)), [15] * 8)
launched(executable)
require(list(read(address, values)), [15] * 8)
"""
    )
    assert (ran.status, ran.kinds, len(ran.launches)) == (0, [], 2), ran.err


def test_changes_of_an_executable_graph(run):
    ran = run(
        f"""{BEGIN}
first = added("cuGraphAddMemsetNode", graph, (), fill(address, 3), None)
last = added("cuGraphAddKernelNode_v2", graph, (first,), packed)
executable = out(pointer, "cuGraphInstantiateWithFlags", pointer(graph), u64(0))
require(cuda.cuGraphExecMemsetNodeSetParams(pointer(executable), pointer(first), fill(address, 4), None))
launched(executable)
require(list(read(address, values)), [20] * 8)
require(cuda.cuGraphNodeSetEnabled(pointer(executable), pointer(last), 0))
launched(executable)
require(list(read(address, values)), [4] * 8)
require(cuda.cuGraphMemsetNodeSetParams(pointer(first), fill(address, 7)))
update = ctypes.create_string_buffer(24)
require(cuda.cuGraphExecUpdate_v2(pointer(executable), pointer(graph), update))
launched(executable)
require(list(read(address, values)), [7] * 8)
added("cuGraphAddEmptyNode", graph, ())
require(cuda.cuGraphExecUpdate_v2(pointer(executable), pointer(graph), update), 910)
require(struct.unpack_from("<i", update)[0], 2)
"""
    )
    assert (ran.status, ran.kinds, len(ran.launches)) == (0, [], 1), ran.err


def test_memory_of_a_graph(run):
    ran = run(
        f"""{BEGIN}
memory = bytearray(struct.pack("<4i72xQQQQ", 1, 0, 1, 0, 0, 0, 32, 0))
buffer = (ctypes.c_char * len(memory)).from_buffer(memory)
first = added("cuGraphAddMemAllocNode", graph, (), buffer)
own = u64(struct.unpack_from("<Q", memory, 112)[0])
second = added("cuGraphAddMemsetNode", graph, (first,), fill(own, 2), None)
packed, kept = kernel(function, own)
third = added("cuGraphAddKernelNode_v2", graph, (second,), packed)
executable = out(pointer, "cuGraphInstantiateWithFlags", pointer(graph), u64(0))
launched(executable)
require(list(read(own, values)), [10] * 8)
require(cuda.cuGraphLaunch(pointer(executable), None), 1)
require(cuda.cuMemFree_v2(own))
launched(executable)
require(cuda.cuMemFree_v2(own))
executable = out(pointer, "cuGraphInstantiateWithFlags", pointer(graph), u64(1))
launched(executable)
launched(executable)
"""
    )
    assert (ran.status, ran.kinds, len(ran.launches)) == (0, [], 4), ran.err


def test_what_is_refused(run):
    ran = run(
        f"""{BEGIN}
first = added("cuGraphAddEmptyNode", graph, ())
second = added("cuGraphAddEmptyNode", graph, (first,))
require(cuda.cuGraphAddDependencies(pointer(graph), nodes(second), nodes(first), size(1)))
executable = pointer()
require(cuda.cuGraphInstantiateWithFlags(ctypes.byref(executable), pointer(graph), u64(0)), 1)  # a cycle
require(cuda.cuGraphKernelNodeSetParams_v2(pointer(first), packed), 1)
require(cuda.cuGraphDestroyNode(pointer(second)))
require(cuda.cuGraphDestroyNode(pointer(second)), 1)
count = size()
require(cuda.cuGraphGetNodes(pointer(graph), None, ctypes.byref(count)))
require(count.value, 1)
for entry in ("cuGraphAddKernelNode_v2", "cuGraphAddMemcpyNode", "cuGraphAddMemsetNode", "cuGraphAddHostNode"):
    node = pointer()
    require(getattr(cuda, entry)(ctypes.byref(node), pointer(graph), None, size(0), None, None), 1)
    require(getattr(cuda, entry)(None, None, None, None, None, None), 1)
require(cuda.cuGraphLaunch(None, None), 1)
"""
    )
    assert not ran.findings, ran.err
