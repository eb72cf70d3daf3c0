"""CUDA graphs: captured, built of nodes, changed, read back, and what they keep alive."""

import gc

import numpy as np
import pytest
from cuda import core

import cuda_tma
from cuda_tma import graph

torch = pytest.importorskip("torch")
core_graph = pytest.importorskip("cuda.core.graph")

SOURCE = """
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using Window = Tile<FLOAT32, Box<16, 64>>;
using Map = TiledMap<Window>;

extern "C" __global__ void copy(const __grid_constant__ Map from, const __grid_constant__ Map to) {
    __shared__ Window tile;
    __shared__ Barrier full;
    const Coordinates at{int(blockIdx.x) * 64, int(blockIdx.y) * 16};
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile);
        load(tile, from, full, at);
        full.wait(0);
        store(to, at, tile);
        commit_group();
        wait_group();
    }
}

// What arrives of a map, and of a number.
extern "C" __global__ void put(const __grid_constant__ TensorMap map, unsigned long long* out, int number) {
    for (int i = 0; i < 16; i++) out[i] = map.opaque[i];
    out[16] = number;
}

extern "C" __global__ void put_first(const TensorMap* maps, unsigned long long* out) {
    for (int i = 0; i < 16; i++) out[i] = maps[0].opaque[i];
}

extern "C" __global__ void cluster_size(int* out) {
    unsigned size;
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
    if (blockIdx.x == 0 && threadIdx.x == 0) { out[0] = size; out[1] = gridDim.x; }
}
"""
SHAPE = (64, 128)
GRID = core.LaunchConfig(grid=(2, 4), block=32)
ONE = core.LaunchConfig(grid=1, block=32)


@pytest.fixture(scope="module")
def kernel(device):
    return lambda name: cuda_tma.compile(SOURCE, name)


@pytest.fixture
def definition(device):
    return core_graph.GraphDefinition()


def random():
    x = torch.randn(SHAPE, device="cuda")
    torch.cuda.synchronize()
    return x


def zeros(*shape, dtype=torch.float32):
    x = torch.zeros(*(shape or SHAPE), dtype=dtype, device="cuda")
    torch.cuda.synchronize()
    return x


def map_of(tensor):
    return cuda_tma.create_tensor_map(tensor, box_dim=(16, 64))


def words(tensor):
    """What `put` was given: the map, and the number."""
    found = tensor.cpu().numpy()
    return found[:16].tobytes(), int(found[16])


def run(executable, stream):
    executable.launch(stream)
    stream.sync()


# ---- nodes ----


def test_nodes_of_typed_maps(kernel, definition, stream):
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


def test_cuda_cores_nodes_follow_ours(kernel, definition, stream):
    x, out = random(), zeros(17, dtype=torch.uint64)
    descriptor = map_of(x)
    ours = graph.add_kernel_node(definition, cuda_tma.prepare(kernel("put"), ONE, descriptor, out, 7))
    ours.memset(out.data_ptr() + 16 * 8, 1, 1)  # the lowest byte of the number
    run(definition.instantiate(), stream)
    assert words(out) == (bytes(descriptor), 1)


def test_a_node_of_clusters(kernel, definition, stream):
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


def test_arguments_of_an_executable_graph_are_changed(kernel, definition, stream):
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


def test_a_prepared_launch_replaces_the_kernel(kernel, definition, stream):
    a, b, c, out = random(), zeros(), zeros(), zeros(17, dtype=torch.uint64)
    executable, live = changed_node(definition, cuda_tma.prepare(kernel("copy"), GRID, a, b))
    live[1] = c  # a tensor, of which the map is made
    run(executable, stream)
    assert torch.equal(c, a) and not b.any()
    live.update(cuda_tma.prepare(kernel("put"), ONE, map_of(a), out, 3))
    run(executable, stream)
    assert words(out) == (bytes(map_of(a)), 3)


def test_a_captured_node_is_changed(kernel, device, stream):
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


def test_a_node_of_another_graph_is_refused(kernel, definition, stream):
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


# ---- reading ----


def test_arguments_are_read_back(kernel, definition, device, publish):
    """Of a node that was added, and of launches of ours and of cuda.core's that were captured."""
    x, out = random(), zeros(17, dtype=torch.uint64)
    descriptor = map_of(x)
    prepared = cuda_tma.prepare(kernel("put"), ONE, descriptor, out, -7)
    nodes = [graph.add_kernel_node(definition, prepared)]
    captures = [
        prepared,
        lambda stream: cuda_tma.launch(stream, ONE, kernel("put"), descriptor, out, -7),
        lambda stream: core.launch(stream, ONE, kernel("put"), descriptor.to_cuda_core(), out.data_ptr(), np.int32(-7)),
    ]
    kept = []
    for capture in captures:
        builder = device.create_graph_builder().begin_building()
        capture(builder)
        kept.append(builder.end_building().graph_definition)
        nodes += kept[-1].nodes()
    for node in nodes:
        found = graph.arguments_of(node, kernel("put"))
        assert [each.value for each in found] == [descriptor, out.data_ptr(), -7]
        assert repr(found[2]) == "number=-7" and repr(found[1]) == f"out={out.data_ptr():#x}"
    publish(f"graphs: the arguments of {len(nodes)} nodes are read back as they were given")


def test_cuda_core_reads_our_nodes(kernel, definition, stream):
    """Whatever the launch was, cuda.core may copy a definition and find the same kernel and grid."""
    a, b = random(), zeros()
    node = graph.add_kernel_node(definition, cuda_tma.prepare(kernel("copy"), GRID, a, b))
    assert (node.grid, node.block, node.shmem_size) == ((2, 4, 1), (32, 1, 1), 0)
    outer = core_graph.GraphDefinition()
    outer.embed(definition)
    run(outer.instantiate(), stream)
    assert torch.equal(a, b)


# ---- keeping alive ----


def allocated():
    for _ in range(100):  # pending calls of this thread run between bytecodes
        pass
    gc.collect()
    return torch.cuda.memory_allocated()


@pytest.mark.parametrize("keeps", [True, False])
def test_a_captured_graph_keeps_tensors_when_asked(kernel, device, stream, keeps):
    out = zeros(17, dtype=torch.uint64)
    base = allocated()
    x = random()
    taken = allocated() - base
    builder = device.create_graph_builder().begin_building()
    descriptor = map_of(x)
    cuda_tma.launch(builder, ONE, kernel("put"), descriptor, out, 7)
    if keeps:
        graph.keep_alive(builder, descriptor)
    executable = builder.end_building().complete()
    builder.close()
    del builder, x, descriptor
    assert allocated() - base == (taken if keeps else 0)
    run(executable, stream)
    executable.close()
    del executable
    stream.sync()
    assert allocated() == base


@pytest.mark.parametrize("keeps", [True, False])
def test_a_node_keeps_tensors(kernel, stream, keeps):
    base = allocated()
    a, b = random(), zeros()
    taken = allocated() - base
    definition = core_graph.GraphDefinition()
    graph.add_kernel_node(definition, cuda_tma.prepare(kernel("copy"), GRID, a, b), keeps_alive=keeps)
    executable = definition.instantiate()
    del a, b, definition
    assert allocated() - base == (taken if keeps else 0)
    if keeps:
        run(executable, stream)
    executable.close()
    del executable
    stream.sync()
    assert allocated() == base


def test_torchs_capture_keeps_objects(kernel, device):
    side, captured = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    out = zeros(17, dtype=torch.uint64)
    x = random()
    expected = bytes(map_of(x))
    base = allocated()
    with torch.cuda.graph(captured, stream=side):
        cuda_tma.launch(torch.cuda.current_stream(), ONE, kernel("put"), map_of(x), out, 7)
        graph.keep_alive(torch.cuda.current_stream(), x)
    del x
    assert allocated() >= base
    captured.replay()
    torch.cuda.synchronize()
    assert words(out) == (expected, 7)
    captured.reset()
    torch.cuda.synchronize()
    assert allocated() < base


def test_an_upload_under_capture_is_kept(kernel, device, stream):
    out, x = zeros(16, dtype=torch.uint64), random()
    maps = cuda_tma.create_tensor_maps([x, random()], cuda_tma.TensorMapOptions((16, 64)))
    expected = bytes(maps)[:128]
    builder = device.create_graph_builder().begin_building()
    buffer = maps.upload(builder)
    cuda_tma.launch(builder, ONE, kernel("put_first"), buffer, out)
    graph.keep_alive(builder, maps, buffer)
    executable = builder.end_building().complete()
    del maps, buffer
    gc.collect()
    for _ in range(2):
        run(executable, stream)
        assert out.cpu().numpy().tobytes() == expected
        out.zero_()
        torch.cuda.synchronize()


# ---- errors ----


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_a_wrong_argument_is_named_and_the_capture_survives(kernel, device, stream, mode):
    out, x = zeros(17, dtype=torch.uint64), random()
    descriptor, put, copy = map_of(x), kernel("put"), kernel("copy")
    cuda_tma.launch(stream, ONE, put, descriptor, out, 1)  # loads it: a global capture forbids that
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
