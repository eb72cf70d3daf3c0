"""Tests of captured CUDA graphs, of graphs that are built from nodes, and of changes of nodes."""

import subprocess
import sys

import numpy as np
import pytest
from cuda import core

import cuda_tma
from cuda_tma import graph

from .graph_kernels import GRID, ONE, kernel, map_of, random, run, words, zeros
from .launch_kernels import HOLD

torch = pytest.importorskip("torch")
core_graph = pytest.importorskip("cuda.core.graph")


@pytest.fixture
def definition(device):
    return core_graph.GraphDefinition()


# ---- nodes ----


def test_nodes_of_typed_maps(definition, stream):
    a, b, c = random(), zeros(), zeros()
    first = graph.add_kernel_node(definition, cuda_tma.prepare(kernel("copy"), GRID, a, b))
    second = graph.add_kernel_node(definition, cuda_tma.prepare(kernel("copy"), GRID, b, c), after=[first])
    assert type(second) is core_graph.KernelNode and set(second.pred) == {first}
    executable = definition.instantiate()
    for _ in range(3):
        a.normal_()
        torch.cuda.synchronize()
        run(executable, stream)
        assert torch.equal(c, a) and torch.equal(b, a)


def test_cuda_cores_nodes_follow_ours(definition, stream):
    x, out = random(), zeros(17, dtype=torch.uint64)
    descriptor = map_of(x)
    ours = graph.add_kernel_node(definition, cuda_tma.prepare(kernel("put"), ONE, descriptor, out, 7))
    # The memset node writes 1 into the lowest byte of the last number.
    ours.memset(out.data_ptr() + 16 * 8, 1, 1)
    run(definition.instantiate(), stream)
    assert words(out) == (bytes(descriptor), 1)


def test_a_node_of_clusters(definition, stream):
    out = zeros(2, dtype=torch.int32)
    config = core.LaunchConfig(grid=3, block=32, cluster=2)
    graph.add_kernel_node(definition, cuda_tma.prepare(kernel("cluster_size"), config, out))
    run(definition.instantiate(), stream)
    assert out.tolist() == [2, 6]


# ---- changes ----


def changed_node(definition, prepared):
    node = graph.add_kernel_node(definition, prepared)
    executable = definition.instantiate()
    return executable, graph.ExecutableKernelNode(executable, node, prepared)


def test_arguments_of_an_executable_graph_are_changed(definition, stream):
    out, before, after = zeros(17, dtype=torch.uint64), map_of(random()), map_of(random())
    prepared = cuda_tma.prepare(kernel("put"), ONE, before, out, 7)
    executable, live = changed_node(definition, prepared)
    run(executable, stream)
    assert words(out) == (bytes(before), 7)
    live[0] = after
    run(executable, stream)
    assert words(out) == (bytes(after), 7)
    live[2] = -1
    run(executable, stream)
    assert words(out) == (bytes(after), -1 % 2**64)
    live.update(prepared)
    run(executable, stream)
    assert words(out) == (bytes(before), 7)


def test_a_prepared_launch_replaces_the_kernel(definition, stream):
    a, b, c, out = random(), zeros(), zeros(), zeros(17, dtype=torch.uint64)
    executable, live = changed_node(definition, cuda_tma.prepare(kernel("copy"), GRID, a, b))
    # The node creates a new map for the assigned tensor.
    live[1] = c
    run(executable, stream)
    assert torch.equal(c, a) and not b.any()
    live.update(cuda_tma.prepare(kernel("put"), ONE, map_of(a), out, 3))
    run(executable, stream)
    assert words(out) == (bytes(map_of(a)), 3)


def test_a_captured_node_is_changed(device, stream):
    out, before, after = zeros(17, dtype=torch.uint64), map_of(random()), map_of(random())
    prepared = cuda_tma.prepare(kernel("put"), ONE, before, out, 7)
    builder = device.create_graph_builder().begin_building()
    prepared(builder)
    executable = builder.end_building().complete()
    (node,) = builder.graph_definition.nodes()
    live = graph.ExecutableKernelNode(executable, node, prepared)
    live[0] = after
    run(executable, stream)
    assert words(out) == (bytes(after), 7)


def test_a_node_of_another_graph_is_refused(definition, stream):
    out, descriptor = zeros(17, dtype=torch.uint64), map_of(random())
    prepared = cuda_tma.prepare(kernel("put"), ONE, descriptor, out, 7)
    executable, live = changed_node(definition, prepared)
    elsewhere = graph.add_kernel_node(core_graph.GraphDefinition(), prepared)
    with pytest.raises(Exception, match="refused to change a node of kernel put"):
        graph.ExecutableKernelNode(executable, elsewhere, prepared)[2] = 8
    run(executable, stream)
    assert words(out) == (bytes(descriptor), 7)
    executable.close()
    with pytest.raises(ValueError, match="the graph is closed"):
        live[2] = 8


# ---- arguments that are read back ----


def test_arguments_are_read_back(definition, device, publish):
    """The test reads the arguments of an added node, and those of captured launches by the package and by cuda.core."""
    x, out = random(), zeros(17, dtype=torch.uint64)
    descriptor = map_of(x)
    prepared = cuda_tma.prepare(kernel("put"), ONE, descriptor, out, -7)
    nodes = {"added": graph.add_kernel_node(definition, prepared)}
    captures = {
        "prepared": prepared,
        "launch": lambda stream: cuda_tma.launch(stream, ONE, kernel("put"), descriptor, out, -7),
        "cuda.core": lambda stream: core.launch(
            stream, ONE, kernel("put"), descriptor.to_cuda_core(), out.data_ptr(), np.int32(-7)
        ),
    }
    kept = []
    for made_by, capture in captures.items():
        builder = device.create_graph_builder().begin_building()
        capture(builder)
        kept.append(builder.end_building().graph_definition)
        (nodes[made_by],) = kept[-1].nodes()
    shown = {made_by: arguments_shown(node) for made_by, node in nodes.items()}
    assert shown == {made_by: [descriptor, out.data_ptr(), -7] for made_by in nodes}
    _, pointer, number = graph.arguments_of(nodes["added"], kernel("put"))
    assert repr(number) == "number=-7" and repr(pointer) == f"out={out.data_ptr():#x}"
    publish(f"graphs: the arguments of {len(nodes)} nodes are read back as they were given")


def arguments_shown(node):
    """Return the argument values of a graph node, or the reason why the values are not known."""
    try:
        return [each.value for each in graph.arguments_of(node, kernel("put"))]
    except ValueError as error:
        return str(error)


def test_cuda_core_reads_our_nodes(definition, stream):
    """cuda.core copies the definition of each launch, and the copy has the same kernel and grid."""
    a, b = random(), zeros()
    node = graph.add_kernel_node(definition, cuda_tma.prepare(kernel("copy"), GRID, a, b))
    assert (node.grid, node.block, node.shmem_size) == ((2, 4, 1), (32, 1, 1), 0)
    outer = core_graph.GraphDefinition()
    outer.embed(definition)
    run(outer.instantiate(), stream)
    assert torch.equal(a, b)


# ---- errors ----


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_a_wrong_argument_is_named_and_the_capture_survives(device, stream, mode):
    out, x = zeros(17, dtype=torch.uint64), random()
    descriptor, put, copy = map_of(x), kernel("put"), kernel("copy")
    # A global capture forbids the launch, because the launch loads the kernel.
    cuda_tma.launch(stream, ONE, put, descriptor, out, 1)
    cuda_tma.launch(stream, GRID, copy, x, zeros())
    stream.sync()
    builder = device.create_graph_builder().begin_building(mode)
    try:
        for config, wrong, args, message in [
            (ONE, put, (descriptor, out), "kernel put takes 3 arguments, and 2 were given"),
            (ONE, put, (7, out, 7), r"argument 0 \(map\) of kernel put: .*128 bytes, and the int 7"),
            (ONE, put, (descriptor, out, 0.5), r"argument 2 \(number\) of kernel put: .*integer .*the float 0.5"),
            (ONE, put, (descriptor, out, 1 << 40), "does not fit the parameter's 4 bytes"),
            (GRID, copy, (x[:, ::2], out), r"argument 0 \(from\).*the innermost, has stride 2"),
            (GRID, copy, (cuda_tma.create_tensor_map(x, box_dim=(8, 8)), x), "its box_dim is"),
        ]:
            with pytest.raises((TypeError, OverflowError, cuda_tma.TensorMapError), match=message):
                cuda_tma.launch(builder, config, wrong, *args)
        cuda_tma.launch(builder, ONE, put, descriptor, out, 7)
    finally:
        builder.end_building()
    run(builder.complete(), stream)
    assert words(out) == (bytes(descriptor), 7)
    assert len(builder.graph_definition.nodes()) == 1


WHILE_A_LAUNCH_WAITS = (
    HOLD
    + """
import threading
import cuda_tma, torch
from cuda import core
from cuda.core.graph import GraphDefinition

device = cuda_tma.Device(0)
device.set_current()
source = "extern \\"C\\" __global__ void put(int* out, int number) { *out = number; }"
kernel = core.Program(source, "c++", core.ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("put")
out = torch.zeros(1, dtype=torch.int32, device="cuda")
torch.cuda.synchronize()
prepared = cuda_tma.prepare(kernel, core.LaunchConfig(grid=1, block=1), out, 0)
definition = GraphDefinition()
node = cuda_tma.graph.add_kernel_node(definition, prepared)
graph = definition.instantiate()
live = cuda_tma.graph.ExecutableKernelNode(graph, node, prepared)
live[1] = 1

full = device.create_stream()
hold(full)

def fill():
    device.set_current()
    for _ in range(3000):  # more than a queue holds: it blocks
        prepared(full)
    log.append("launched")

thread = threading.Thread(target=fill)
thread.start()
count = 0
while "ends" not in log:
    live[1] = count = count + 1
thread.join()
full.sync()
other = device.create_stream()
graph.launch(other)
other.sync()
print(out.item() == count, log)
"""
)


def test_a_node_is_changed_while_a_launch_waits():
    """A launch of another thread waits for a host function in Python. A change of a node waits neither for the launch
    nor for the host function, with or without the GIL."""
    child = subprocess.run([sys.executable, "-c", WHILE_A_LAUNCH_WAITS], capture_output=True, text=True, timeout=60)
    assert child.stdout.strip() == "True ['begins', 'ends', 'launched']", child.stderr
