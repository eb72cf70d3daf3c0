"""Shared by the tests of ``graph`` and their neighbors."""

from __future__ import annotations

import pytest
from cuda import core

import cuda_tma
from cuda_tma import graph
from tests.support.typed_kernels import TILE, kernel, made, stream  # noqa: F401

CONFIG = core.LaunchConfig(grid=(2, 3), block=32)


class Node:
    def __init__(self, definition, handle):
        self.definition, self.handle = definition, handle

    @property
    def succ(self):
        return {
            node for node in self.definition.nodes() if self.handle in self.definition.driver.nodes[node.handle].after
        }


class Definition:
    """As a cuda.core GraphDefinition, of the fake driver's nodes."""

    def __init__(self, driver, handle=0x6000):
        self.driver, self.handle = driver, handle

    def nodes(self):
        return {Node(self, handle) for handle, node in self.driver.nodes.items() if node.graph == self.handle}

    def instantiate(self):
        return Executable()


class Executable:
    handle, is_closed = 0x7000, False

    def upload(self):
        pass

    def launch(self):
        pass


@pytest.fixture
def definition(driver):
    return Definition(driver)


@pytest.fixture
def prepared(kernel, device_tensor):  # noqa: F811
    """A map, a pointer and an int, launched."""
    descriptor = cuda_tma.create_tensor_map(device_tensor((64, 128)), box_dim=(16, 32))
    return cuda_tma.prepare(kernel("9TensorMap", "Pf", "i", sizes=(128, 8, 4)), CONFIG, descriptor, 1 << 40, -7)


@pytest.fixture
def live(definition, prepared):
    node = graph.add_kernel_node(definition, prepared)
    return graph.ExecutableKernelNode(Executable(), node, prepared)


def changed(driver):
    (node,) = driver.nodes.values()
    return node.executable[0x7000].arguments
