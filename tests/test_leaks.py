"""Tests that repeated operations leave no Python object, and no reference to an argument."""

import gc
import sys

import pytest
from cuda import core

import cuda_tma
from cuda_tma import graph
from cuda_tma._make import device_memory as _device_memory
from tests._graph import Definition, Executable
from tests._threads import FREE_THREADED
from tests.support.launching import CONFIG
from tests.support.typed_kernels import TILE

pytestmark = pytest.mark.skipif(FREE_THREADED, reason="references are counted late, and some by their own thread")
ROUNDS = 400
OPTIONS = cuda_tma.TensorMapOptions((16, 32), swizzle="128B")
GRAPH_CONFIG = core.LaunchConfig(grid=2, block=32)


class CoreDevice:
    """A stand-in for cuda.core's memory resource."""

    def __init__(self, device_id):
        self.memory_resource = self

    def allocate(self, size_bytes, *, stream):
        return core.Buffer.from_handle(0xB0FFE800, size_bytes)


class Scene:
    """The objects that all tested operations use."""

    def __init__(self, driver, kernel, device_tensor):
        self.driver, self.stream = driver, core.Stream.from_handle(0x5000)
        self.typed, self.of_pointer = kernel(TILE, "i", sizes=(128, 4)), kernel("Pv", sizes=(8,))
        self.tensors = [device_tensor((64, 128), address=n << 32) for n in (1, 2)]
        self.shared = [self.stream, self.typed, self.of_pointer, *self.tensors, CONFIG, GRAPH_CONFIG, OPTIONS]

    def forget(self):
        """Delete the objects that the tests of leaks keep."""
        for kept in (self.driver.launches, self.driver.nodes, self.driver.captures, *(t.asked for t in self.tensors)):
            kept.clear()
        self.driver.calls.clear()
        self.driver.copies.clear()


def create(scene):
    cuda_tma.launch(scene.stream, CONFIG, scene.typed, cuda_tma.create_tensor_map(scene.tensors[0], OPTIONS), 0)


def replace(scene):
    descriptor = cuda_tma.create_tensor_map(scene.tensors[0], OPTIONS)
    descriptor.replace_address(scene.tensors[1])
    cuda_tma.launch(scene.stream, CONFIG, scene.typed, descriptor, 0)


def launch_tensor(scene):
    cuda_tma.launch(scene.stream, CONFIG, scene.typed, scene.tensors[0], 0)


def prepare(scene):
    step = cuda_tma.prepare(scene.typed, CONFIG, scene.tensors[0], 0)
    step[0], step[1] = scene.tensors[1], 7
    step(scene.stream)


def capture(scene):
    step = cuda_tma.prepare(scene.typed, GRAPH_CONFIG, scene.tensors[0], 0)
    # The test captures into a separate stream, like a graph builder.
    stream = core.Stream.from_handle(0x6010)
    scene.driver.captures[0x6010] = 0x6000
    graph.keep_alive(stream, step)
    step(stream)
    node = graph.add_kernel_node(Definition(scene.driver), step)
    live = graph.ExecutableKernelNode(Executable(), node, step)
    live[0], live[1] = scene.tensors[1], 7
    scene.driver.destroy_graph(0x6000)


def upload(scene):
    buffer = cuda_tma.create_tensor_maps(scene.tensors, OPTIONS).upload(scene.stream)
    cuda_tma.launch(scene.stream, CONFIG, scene.of_pointer, buffer)


@pytest.mark.parametrize("work", [create, replace, launch_tensor, prepare, capture, upload])
def test_no_objects_remain(driver, kernel, device_tensor, monkeypatch, work):
    monkeypatch.setattr(_device_memory, "CoreDevice", CoreDevice)
    scene = Scene(driver, kernel, device_tensor)

    def left():
        for _ in range(ROUNDS):
            work(scene)
            scene.forget()
        gc.collect()
        return sys.getallocatedblocks(), [sys.getrefcount(each) for each in scene.shared]

    (blocks, references), (blocks_later, references_later) = (left() for _ in range(2))
    # A leak would add ROUNDS blocks of memory, but ctypes keeps fewer blocks.
    assert blocks_later - blocks < ROUNDS // 2
    assert references_later == references
