"""The benchmark rows for kernel nodes of an executable graph.

Each row times the change of one map of a node, in pairs with the driver's call from C.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from cuda.bindings import driver

import cuda_tma

from ..comparison import Comparison, Goal, Timer, Work, compare, python
from .launch import Bench
from .scene import Scene

C = "C: cuGraphExecKernelNodeSetParams"
NOTE = (
    "Each call changes a node of an executable graph, whose empty kernel takes a map and a pointer. The benchmark "
    "does not launch the graph. The row of C passes the same two arguments in each call. After the first change, "
    "`cuda_tma` packs and checks one argument, and holds the GIL as C does; cuda.core and cuda.bindings receive both "
    "arguments. The median ratio of 400 pairs of 200 calls and its 95 % interval decide whether the goal is met."
)


@dataclass(frozen=True)
class Graph:
    """An instantiated graph of one node; each row has its own graph."""

    bench: Bench
    prepared: cuda_tma.PreparedLaunch
    node: Any
    executable: Any

    @classmethod
    def of(cls, bench: Bench) -> Graph:
        from cuda.core.graph import GraphDefinition

        scene = bench.scene
        prepared = cuda_tma.prepare(bench.kernel("one_map"), bench.config, scene.descriptor(), scene.address)
        definition = GraphDefinition()
        node = cuda_tma.graph.add_kernel_node(definition, prepared)
        return cls(bench, prepared, node, definition.instantiate())

    @cached_property
    def live(self) -> cuda_tma.graph.ExecutableKernelNode:
        return cuda_tma.graph.ExecutableKernelNode(self.executable, self.node, self.prepared)


def tables(scene: Scene, repeats: int) -> list[Comparison]:
    bench = Bench(scene)
    works = [
        Work(C, lambda: in_c(bench)),
        Work("`live[0] = descriptor`", lambda: one_map(bench), Goal(1.15, paired=True), True),
        Work("`live[0] = descriptor`, of a typed map", lambda: typed_map(bench), None, True),
        Work("`live.update(prepared)`", lambda: prepared_launch(bench), None, True),
        Work("cuda.core, `graph[node].update`", lambda: by_core(bench)),
        Work("cuda.bindings", lambda: by_bindings(bench)),
    ]
    return [compare("Graph: one map of a node", works, repeats, (C,), [NOTE])]


def in_c(bench: Bench) -> Timer:
    graph, scene = Graph.of(bench), bench.scene
    _, context = driver.cuCtxGetCurrent()
    handles = int(graph.executable.handle), int(graph.node.handle), bench.handle("one_map"), int(context)
    timer = scene.floor.set_node(*handles, [scene.raw_map(1), ctypes.c_void_p(scene.address)])
    return keeping(timer, graph)


def keeping(timer: Timer, kept: object) -> Timer:
    """Return a timer that keeps its graph alive."""
    return lambda calls: timer(calls) if kept else 0.0


def one_map(bench: Bench) -> Timer:
    return python("live[0] = map", live=Graph.of(bench).live, map=bench.scene.descriptor(2, 1))


TYPED = """
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
extern "C" __global__ void typed(const __grid_constant__ TiledMap<Tile<FLOAT32, Box<64, 64>>> a, float* out) {}
"""


def typed_map(bench: Bench) -> Timer:
    from cuda.core.graph import GraphDefinition

    scene = bench.scene
    kernel = cuda_tma.compile(TYPED, "typed")
    prepared = cuda_tma.prepare(kernel, bench.config, scene.descriptor(), scene.address)
    definition = GraphDefinition()
    node = cuda_tma.graph.add_kernel_node(definition, prepared)
    live = cuda_tma.graph.ExecutableKernelNode(definition.instantiate(), node, prepared)
    return python("live[0] = map", live=live, map=scene.descriptor(2, 1))


def prepared_launch(bench: Bench) -> Timer:
    graph = Graph.of(bench)
    return python("live.update(prepared)", live=graph.live, prepared=graph.prepared)


def by_core(bench: Bench) -> Timer:
    graph, scene = Graph.of(bench), bench.scene
    names = {"config": bench.config, "kernel": bench.kernel("one_map")}
    return python(
        "graph[node].update(config=config, kernel=kernel, args=args)",
        graph=graph.executable,
        node=graph.node,
        args=(scene.core_descriptor(1), scene.address),
        **names,
    )


def by_bindings(bench: Bench) -> Timer:
    graph, scene = Graph.of(bench), bench.scene
    params = driver.CUDA_KERNEL_NODE_PARAMS()
    params.gridDimX = params.gridDimY = params.gridDimZ = 1
    params.blockDimX, params.blockDimY, params.blockDimZ = 32, 1, 1
    params.kern = driver.CUkernel(bench.handle("one_map"))
    raw, address = np.frombuffer(bytearray(bytes(scene.descriptor(2, 1))), np.uint8), ctypes.c_void_p(scene.address)
    pointers = (ctypes.c_void_p * 2)(raw.ctypes.data, ctypes.addressof(address))
    params.kernelParams = ctypes.addressof(pointers)
    return keeping(
        python(
            "set_params(executable, node, params)",
            set_params=driver.cuGraphExecKernelNodeSetParams,
            executable=graph.executable.handle,
            node=graph.node.handle,
            params=params,
        ),
        (graph, raw, address, pointers),
    )
