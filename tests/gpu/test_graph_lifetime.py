"""Tests of the objects that graphs keep alive."""

import gc
import time

import pytest

import cuda_tma
from cuda_tma import graph

from .graph_kernels import GRID, ONE, kernel, map_of, random, run, words, zeros

torch = pytest.importorskip("torch")
core_graph = pytest.importorskip("cuda.core.graph")


def allocated():
    gc.collect()
    return torch.cuda.memory_allocated()


def comes_to(least, most):
    """Return whether the allocated memory reaches this size within a few seconds. The driver releases the objects of a
    graph on its own thread, and the calling thread frees them between two bytecodes. Up to Python 3.12, the thread
    frees the objects only after it has released the GIL."""
    deadline = time.monotonic() + 10
    while not least <= allocated() <= most and time.monotonic() < deadline:
        time.sleep(0.001)
    return least <= allocated() <= most


@pytest.mark.parametrize("keeps", [True, False])
def test_a_captured_graph_keeps_tensors_when_asked(device, stream, keeps):
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
    assert comes_to(base, base)


@pytest.mark.parametrize("keeps", [True, False])
def test_a_node_keeps_tensors(stream, keeps):
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
    assert comes_to(base, base)


def test_torchs_capture_keeps_objects(device):
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
    assert comes_to(0, base - 1)


def test_an_upload_under_capture_is_kept(device, stream):
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
