"""The benchmark rows for a launch that creates the maps of three torch tensors, in comparison with other libraries."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from cuda import core
from cuda.bindings import driver
from cuda.core.utils import StridedMemoryView as CoreView

import cuda_tma

from ..comparison import Comparison, Goal, Timer, Work, compare, python, queued
from .create import encode_floor, require_success
from .scene import BOXES, SHAPES, Scene

FLOOR = "C: 3 owning exchanges, 3 storages, 3 encodes, cuLaunchKernel"
SEQUENCE = "C: the same, in the order of a launch"
LAUNCH = "cuda_tma.launch, three tensors"
GOAL = Goal(1.15, paired=True)
COUNT = 7  # COUNT is the only argument of the kernel that is not a tensor map.

SOURCE = """
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using Map = TiledMap<Tile<FLOAT32, Box<{}, {}>>>;
#define MAP const __grid_constant__ Map
extern "C" __global__ void three_maps(MAP a, MAP b, MAP c, int count) {{}}
""".format(*BOXES[2])
NOTE = (
    "The kernel is empty, takes three typed maps and an int, and runs one block of 32 threads. Each launch encodes "
    "its maps again, from float32 tensors of torch. The floor is the sum of three parts, each timed separately in the "
    "same round, with its code and data in the caches. The row after the floor makes the calls of these parts in "
    "sequence, as a launch does. Triton and CuTe DSL launch their own empty kernels with three descriptors."
)


@dataclass(frozen=True)
class Bench:
    """The objects that the rows share, which are made at their first use."""

    scene: Scene

    @functools.cached_property
    def tensors(self) -> list[Any]:
        return [self.scene.torch.zeros(SHAPES[2], device="cuda:0") for _ in range(3)]

    @functools.cached_property
    def kernel(self) -> Any:
        return cuda_tma.compile(SOURCE, "three_maps")

    @functools.cached_property
    def config(self) -> Any:
        return core.LaunchConfig(grid=1, block=32)

    def timer(self, statement: str, **names: object) -> Timer:
        a, b, c = self.tensors
        stream = self.scene.stream
        names |= {"s": stream, "config": self.config, "kernel": self.kernel, "a": a, "b": b, "c": c, "count": COUNT}
        return queued(python(statement, **names), stream.sync)


def tables(scene: Scene, repeats: int) -> list[Comparison]:
    works = three_tensors(Bench(scene))
    return [compare("Launch: three tensors with new maps", works, repeats, (FLOOR,), [NOTE])]


def three_tensors(bench: Bench) -> list[Work]:
    options = bench.scene.options()
    separate = "launch(s, config, kernel, create(a, o), create(b, o), create(c, o), count)"
    again = "prepared[0] = a; prepared[1] = b; prepared[2] = c; prepared(s)"
    return [
        Work(FLOOR, lambda: floor(bench)),
        Work(SEQUENCE, lambda: sequence(bench)),
        Work(
            LAUNCH, lambda: bench.timer("launch(s, config, kernel, a, b, c, count)", launch=cuda_tma.launch), GOAL, True
        ),
        Work(
            "cuda_tma.create_tensor_map, then launch",
            lambda: bench.timer(separate, launch=cuda_tma.launch, create=cuda_tma.create_tensor_map, o=options),
        ),
        Work(
            "cuda_tma.PreparedLaunch, three tensors set",
            lambda: bench.timer(again, prepared=cuda_tma.prepare(bench.kernel, bench.config, *bench.tensors, COUNT)),
        ),
        Work("cuda.core, views, maps and launch", lambda: cuda_core(bench)),
        Work("Triton, tensor descriptors", lambda: triton(bench)),
        Work("CuTe DSL, compiled once", lambda: cute(bench)),
    ]


# ---- the launching libraries ----


def floor(bench: Bench) -> Timer:
    """Return a timer that adds the times of all necessary C calls."""
    scene = bench.scene
    arguments = [*[scene.raw_map(memory) for memory in range(3)], ctypes.c_int32(COUNT)]
    launch = scene.floor.launch(function(bench.kernel), int(scene.stream.handle), arguments, "cuLaunchKernel")
    return together([
        *[scene.floor.exchange(tensor) for tensor in bench.tensors],
        *[scene.floor.method(tensor, "untyped_storage") for tensor in bench.tensors],
        *[encode_floor(scene, 2) for _ in bench.tensors],
        queued(launch, scene.stream.sync),
    ])  # fmt: skip


def sequence(bench: Bench) -> Timer:
    """Return a timer of the same calls in the order of a C program, in which a launch evicts data that the next
    encoding needs.
    """
    scene, kernel = bench.scene, function(bench.kernel)
    params = scene.descriptor(2).params
    count = ctypes.c_int32(COUNT)
    timer = scene.floor.launch_tensors(kernel, int(scene.stream.handle), bench.tensors, params, count)
    return queued(timer, scene.stream.sync)


def together(timers: Sequence[Timer]) -> Timer:
    """Return a timer of several parts, each of which has its own timer."""
    return lambda calls: sum(timer(calls) for timer in timers)


def function(kernel: Any) -> int:
    """Return the kernel in the current context, which is a CUfunction as in C programs."""
    error, found = driver.cuKernelGetFunction(driver.CUkernel(int(kernel.handle)))
    require_success((error,))
    return int(found)


def cuda_core(bench: Bench) -> Timer:
    """Return a timer of cuda.core in the form of its documentation: a view of each tensor, and a map of each view."""
    made = ", ".join(f"View.from_any_interface({x}, stream_ptr=-1).as_tensor_map(options=o)" for x in "abc")
    names = {"launch": core.launch, "View": CoreView, "o": bench.scene.core_options(), "k": np.int32(COUNT)}
    return bench.timer(f"launch(s, config, kernel, {made}, k)", **names)


def triton(bench: Bench) -> Timer:
    from triton.tools.tensor_descriptor import TensorDescriptor

    from . import triton_kernel

    described = ", ".join(f"describe({x}, box)" for x in "abc")
    a, b, c = bench.tensors
    names = {"describe": TensorDescriptor.from_tensor, "box": list(BOXES[2]), "a": a, "b": b, "c": c, "count": COUNT}
    statement = f"kernel[(1,)]({described}, count, num_warps=1)"
    timer = python(statement, kernel=triton_kernel.with_descriptors, **names)
    return queued(timer, bench.scene.torch.cuda.synchronize)


def cute(bench: Bench) -> Timer:
    from . import cute_kernel

    stream = driver.CUstream(int(bench.scene.stream.handle))
    run = cute_kernel.compiled(bench.tensors, BOXES[2], COUNT, stream)
    return bench.timer("run(view(a), view(b), view(c), count, cuda_stream)", run=run, view=cute_kernel.view,
                       cuda_stream=stream)  # fmt: skip
