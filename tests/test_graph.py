"""Tests that add, change and read kernel nodes of graphs, and tests of the objects that a graph keeps alive."""

import ctypes
import gc
import struct
import weakref

import pytest
from cuda import core

import cuda_tma
from cuda_tma import TensorMapError, graph
from cuda_tma._cuda import driver as _driver
from tests._graph import Definition, Executable, Node, Thing, changed, dropped
from tests.support.typed_kernels import TILE, made

CONFIG = core.LaunchConfig(grid=(2, 3), block=32)


@pytest.fixture
def definition(driver):
    return Definition(driver)


@pytest.fixture
def prepared(kernel, device_tensor):
    """Return the arguments of a launch, which are a tensor map, a pointer and an int."""
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    return cuda_tma.prepare(kernel("9TensorMap", "Pf", "i", sizes=(128, 8, 4)), CONFIG, descriptor, 1 << 40, -7)


@pytest.fixture
def live(definition, prepared):
    node = graph.add_kernel_node(definition, prepared)
    return graph.ExecutableKernelNode(Executable(), node, prepared)


def test_a_node_takes_the_arguments_of_a_launch(driver, definition, prepared, stream):
    node = graph.add_kernel_node(definition, prepared)
    prepared(stream)
    added, launched = driver.nodes[node.handle].launch, driver.launches[-1]
    assert (
        added.arguments == launched.arguments == [bytes(prepared[0]), struct.pack("Q", 1 << 40), struct.pack("i", -7)]
    )
    assert (added.grid, added.block, added.shared_mem_bytes) == ((2, 3, 1), (32, 1, 1), 0)
    assert (driver.nodes[node.handle].context, driver.nodes[node.handle].graph) == (0xC0DE, 0x6000)


def test_nodes_follow_others(driver, definition, prepared):
    first, second = (graph.add_kernel_node(definition, prepared) for _ in range(2))
    third = graph.add_kernel_node(definition, prepared, after=[first, second])
    assert driver.nodes[third.handle].after == (first.handle, second.handle)
    assert third.handle not in (first.handle, second.handle)


def test_a_typed_map_takes_a_tensor(driver, definition, kernel, device_tensor):
    tensor = device_tensor((64, 128))
    node = graph.add_kernel_node(definition, cuda_tma.prepare(kernel(TILE), CONFIG, tensor))
    assert driver.nodes[node.handle].launch.arguments == [made(tensor)]


def test_clusters_become_an_attribute_of_the_node(driver, definition, kernel):
    config = clustered()
    node = graph.add_kernel_node(definition, cuda_tma.prepare(kernel("i", sizes=(4,)), config, 1))
    assert driver.nodes[node.handle].launch.attributes == {4: (4, 1, 1)}
    assert driver.nodes[node.handle].launch.grid == (8, 1, 1)
    driver.errors["cuGraphKernelNodeSetAttribute"] = 1
    with pytest.raises(Exception, match="cuGraphKernelNodeSetAttribute failed with CUDA_ERROR_INVALID_VALUE"):
        graph.add_kernel_node(definition, cuda_tma.prepare(kernel("i", sizes=(4,)), config, 1))
    assert [*driver.nodes] == [node.handle]


def test_invalid_node_is_refused(driver, definition, prepared, kernel, device_tensor):
    with pytest.raises(TypeError, match="^definition is a Executable; pass a cuda.core.graph.GraphDefinition$"):
        graph.add_kernel_node(Executable(), prepared)
    with pytest.raises(TypeError, match="^prepared is a int; pass the result of cuda_tma.prepare"):
        graph.add_kernel_node(definition, 7)
    with pytest.raises(TypeError, match=r"^after is .*; pass cuda.core.graph nodes .*; for one node: after=\[node\]$"):
        graph.add_kernel_node(definition, prepared, after=Node(definition, 1))
    with pytest.raises(TypeError, match=r"^after is \[5\]; pass cuda.core.graph nodes of this definition$"):
        graph.add_kernel_node(definition, prepared, after=[5])
    driver.context = 0xBEEF
    with pytest.raises(
        TensorMapError, match="argument 0: .* in context 0xc0de, and the launch is on .* context 0xbeef"
    ):
        graph.add_kernel_node(definition, prepared)
    driver.context = 0xC0DE
    driver.errors["cuGraphAddKernelNode"] = 1
    with pytest.raises(Exception, match="^CUDA_ERROR_INVALID_VALUE: the driver refused to add a node of kernel k; "):
        graph.add_kernel_node(definition, prepared)
    assert driver.nodes == {}


def test_shared_memory_is_allowed(driver, definition, kernel):
    config = core.LaunchConfig(grid=1, block=32, shmem_size=100_000)
    taken = kernel("i", sizes=(4,))
    graph.add_kernel_node(definition, cuda_tma.prepare(taken, config, 1))
    assert driver.shared_limits == {(int(taken.handle), 0): 227 * 1024}


def clustered():
    """Return a launch configuration with a cluster, as cuda.core makes it with a driver."""
    config = core.LaunchConfig(grid=2, block=32)
    config.cluster = (4, 1, 1)
    return config


# ---- changing ----


def test_a_single_argument_changes(driver, live, prepared, device_tensor):
    other = cuda_tma.create_tensor_map(device_tensor((64, 128), address=1 << 33), box_dim=(16, 32))
    rest = [struct.pack("Q", 1 << 40), struct.pack("i", -7)]
    live[0] = other
    assert changed(driver) == [bytes(other), *rest] and live[0] is other
    live[2] = 8
    assert changed(driver) == [bytes(other), rest[0], struct.pack("i", 8)]
    assert (len(live), live[2], prepared[2]) == (3, 8, -7)
    (node,) = driver.nodes.values()
    # The node of the definition keeps its original arguments.
    assert node.launch.arguments == [bytes(prepared[0]), *rest]


def test_a_prepared_launch_changes_all(driver, live, kernel, device_tensor):
    tensor = device_tensor((64, 128))
    live.update(cuda_tma.prepare(kernel(TILE), {"grid": 5, "block": 64}, tensor))
    (node,) = driver.nodes.values()
    assert node.executable[0x7000].arguments == [made(tensor)]
    assert (node.executable[0x7000].grid, node.executable[0x7000].block) == ((5, 1, 1), (64, 1, 1))
    # For a typed map, the program assigns a tensor to the argument.
    live[0] = other = device_tensor((64, 128), address=1 << 34)
    assert changed(driver) == [made(other)] and live[0] is other


def test_a_refusal_changes_nothing(driver, live, kernel, device_tensor):
    live[2] = 1
    before = changed(driver)
    for index, value, message in [
        (0, 7, "argument 0 of kernel k: the parameter takes 128 bytes, and the int 7 was passed"),
        (2, 1 << 40, "does not fit the parameter's 4 bytes"),
        (3, 1, "index 3 is outside the 3 arguments"),
        (1 << 64, 1, f"index {1 << 64} is outside the 3 arguments"),
    ]:
        with pytest.raises((TypeError, OverflowError, IndexError), match=message):
            live[index] = value
    driver.context = 0xBEEF
    there = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    driver.context = 0xC0DE
    with pytest.raises(TensorMapError, match="in context 0xbeef, and the launch is on device 0 in context 0xc0de"):
        live[0] = there
    driver.errors["cuGraphExecKernelNodeSetParams"] = 1
    with pytest.raises(
        Exception, match="refused to change a node of kernel k; the node may belong to another definition than the one"
    ):
        live[2] = 3
    del driver.errors["cuGraphExecKernelNodeSetParams"]
    assert live[2] == 1 and changed(driver) == before
    with pytest.raises(IndexError, match="index 3 is outside the 3 arguments"):
        live[3]
    live[1] = 5
    assert changed(driver) == [before[0], struct.pack("Q", 5), struct.pack("i", 1)]


def test_a_node_keeps_its_clusters(live, kernel):
    config = clustered()
    with pytest.raises(ValueError, match="^the launch has other clusters or cooperation than the node"):
        live.update(cuda_tma.prepare(kernel("i", sizes=(4,)), config, 1))


def test_a_closed_graph_is_not_changed(driver, definition, prepared):
    executable = Executable()
    live = graph.ExecutableKernelNode(executable, graph.add_kernel_node(definition, prepared), prepared)
    executable.is_closed = True
    for change in (lambda: live.__setitem__(2, 3), lambda: live.update(prepared)):
        with pytest.raises(ValueError, match="^the graph is closed; instantiate its definition again$"):
            change()
    assert live[2] == -7 and not driver.called("cuGraphExecKernelNodeSetParams")


def test_the_gil_is_free_after_a_refused_change(driver, live):
    """The driver may load the kernel at the first accepted change of a node, so the package releases the GIL for the
    call."""
    driver.errors["cuGraphExecKernelNodeSetParams"] = 1
    with pytest.raises(Exception, match="CUDA_ERROR_INVALID_VALUE"):
        live[2] = 3
    has_gil = ctypes.cast(ctypes.pythonapi.PyGILState_Check, ctypes.c_void_p).value
    _driver.install({**_driver.snapshot(), "cuGraphExecKernelNodeSetParams": has_gil})
    live[2] = 4
    assert live[2] == 4


def test_handles_are_also_accepted(driver, definition, prepared):
    node = graph.add_kernel_node(definition, prepared)
    graph.ExecutableKernelNode(0x7777, node.handle, prepared)[2] = 9
    assert driver.nodes[node.handle].executable[0x7777].arguments[2] == struct.pack("i", 9)
    for handles, message in [
        ((None, 1), "^graph is None .*CUgraphExec"),
        ((1, object()), "^node is <object.*CUgraphNode"),
        ((definition, node), "^graph is <.*Definition.*pass a cuda.core.graph.Graph, "),
        ((node, node), "^graph is <.*Node.*pass a cuda.core.graph.Graph, "),
        ((1, Executable()), "^node is <.*Executable.*pass a cuda.core.graph.KernelNode, "),
    ]:
        with pytest.raises(TypeError, match=message):
            graph.ExecutableKernelNode(*handles, prepared)


# ---- reading ----


@pytest.mark.parametrize("shows", ["pointers", "address", "size"])
def test_arguments_are_read_back(driver, definition, kernel, device_tensor, shows):
    driver.shows = shows
    tensor = device_tensor((64, 128))
    taken = kernel(TILE, "Pf", "i", "f", "b", "3Two", sizes=(128, 8, 4, 4, 1, 12))
    given = cuda_tma.prepare(taken, CONFIG, tensor, 1 << 40, -7, 0.5, True, struct_of(b"twelve bytes"))
    node = graph.add_kernel_node(definition, given)
    found = graph.arguments_of(node)
    assert [type(each.value).__name__ for each in found] == [
        "TensorMapDescriptor",
        "int",
        "int",
        "float",
        "bool",
        "bytes",
    ]
    assert bytes(found[0].value) == made(tensor) and found[0].parameter.map_type == TILE
    assert [each.value for each in found[1:]] == [1 << 40, -7, 0.5, True, b"twelve bytes"]
    assert [repr(each) for each in found[1:4]] == ["0x10000000000", "-7", "0.5"]
    assert repr(found[0]).startswith("TensorMapDescriptor(tiled, rank 2, float32")
    assert graph.arguments_of(node.handle, taken) == found


def struct_of(raw):
    import numpy as np

    return np.frombuffer(raw, dtype=np.dtype((np.void, len(raw))))[0]


def test_unnamed_types_are_read_by_size(driver, definition, kernel, device_tensor):
    driver.kernels[0x1F0] = ("plain", [128, 8, 4, 128])
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    given = (descriptor, 1 << 40, 7, struct_of(bytes(range(128))))
    node = graph.add_kernel_node(definition, cuda_tma.prepare(core.Kernel.from_handle(0x1F0), CONFIG, *given))
    assert [each.value for each in graph.arguments_of(node)] == [descriptor, 1 << 40, 7, bytes(range(128))]


def test_another_kernels_arguments_are_not_read(definition, prepared, kernel):
    node = graph.add_kernel_node(definition, prepared)
    with pytest.raises(ValueError, match="^the node launches another kernel than k$"):
        graph.arguments_of(node, kernel("i", sizes=(4,)))


@pytest.mark.parametrize(
    "shows, message",
    [("nothing", "both kernelParams and extra are NULL in"), ("unknown", "extra begins with the unknown name 0x7 in")],
)
def test_arguments_that_are_not_shown(driver, definition, prepared, shows, message):
    driver.shows = shows
    node = graph.add_kernel_node(definition, prepared)
    with pytest.raises(
        ValueError, match=f"^the driver does not show the arguments of this node of kernel .*: {message}"
    ):
        graph.arguments_of(node)


# ---- objects that a node keeps ----


@pytest.mark.parametrize("keeps_alive", [True, False])
def test_a_node_keeps_its_arguments(driver, definition, kernel, device_tensor, keeps_alive):
    """A graph node keeps the present tensor of its tensor map, even if the address of the map changes later."""
    tensor = device_tensor((64, 128))
    descriptor = cuda_tma.create_tensor_map(tensor, box_dim=(16, 32))
    prepared = cuda_tma.prepare(kernel("9TensorMap", sizes=(128,)), CONFIG, descriptor)
    graph.add_kernel_node(definition, prepared, keeps_alive=keeps_alive)
    descriptor.replace_address(1 << 34)
    gone = weakref.ref(tensor)
    del tensor, prepared
    gc.collect()
    assert (gone() is not None) is keeps_alive
    driver.destroy_graph(0x6000)
    dropped()
    assert gone() is None


@pytest.mark.parametrize("call", ["cuGraphAddKernelNode", "cuUserObjectCreate", "cuGraphRetainUserObject"])
def test_a_node_that_is_refused_leaves_nothing(driver, definition, prepared, call):
    """A refused call creates no graph node, and keeps no objects for a node."""
    driver.errors[call] = 2
    with pytest.raises(Exception, match="CUDA_ERROR_OUT_OF_MEMORY"):
        graph.add_kernel_node(definition, prepared)
    dropped()
    assert (driver.nodes, driver.kept, driver.user_objects) == ({}, [], {})


@pytest.mark.parametrize("call", ["cuUserObjectCreate", "cuGraphRetainUserObject"])
def test_objects_that_the_driver_refuses_to_keep_are_released(driver, definition, call):
    thing = Thing()
    gone = weakref.ref(thing)
    driver.errors[call] = 2
    with pytest.raises(Exception, match=f"{call} failed with CUDA_ERROR_OUT_OF_MEMORY"):
        graph.keep_alive(definition, thing)
    del thing
    dropped()
    assert gone() is None and driver.user_objects == {}


# ---- maps of nodes in executable graphs ----


def test_a_refused_map_leaves_the_preceding_one(driver, live, device_tensor):
    first, second = (
        cuda_tma.create_tensor_map(device_tensor((64, 128), address=n << 32), box_dim=(16, 32)) for n in (5, 6)
    )
    # The test changes the node twice, because later changes use a different code path.
    for _ in range(2):
        live[0] = first
        driver.errors["cuGraphExecKernelNodeSetParams"] = 1
        with pytest.raises(Exception, match="refused to change a node of kernel k"):
            live[0] = second
        del driver.errors["cuGraphExecKernelNodeSetParams"]
    live[2] = 8
    assert live[0] is first and changed(driver)[0] == bytes(first)


def test_a_map_argument_is_copied(driver, live, device_tensor):
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    live[2] = 1
    live[0] = descriptor
    given = bytes(descriptor)
    descriptor.replace_address(7 << 32)
    live[2] = 2
    assert changed(driver) == [given, struct.pack("Q", 1 << 40), struct.pack("i", 2)] and given != bytes(descriptor)
