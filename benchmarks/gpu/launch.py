"""The benchmark rows for launches of empty kernels, with a map and a pointer, four maps, or eight scalars, in pairs
with the baseline.
"""

from __future__ import annotations

import ctypes
import functools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from cuda import core
from cuda.bindings import driver

import cuda_tma

from ..comparison import Comparison, Goal, Timer, Work, compare, python, queued
from .create import bindings_map, require_success
from .scene import BOXES, Scene

C = "C: cuLaunchKernel"
C_EX = "C: cuLaunchKernelEx"
C_EX_KERNEL = "C: cuLaunchKernelEx, a CUkernel"
CUDA_CORE = "cuda.core.launch"
LAUNCH = "cuda_tma.launch"
PREPARED = "cuda_tma.PreparedLaunch"
MAPS_GOAL = Goal(1.09, paired=True)
PREPARED_GOAL = Goal(1.05, paired=True)

SOURCE = """
struct alignas(64) TensorMap { char bytes[128]; };
#define MAP const __grid_constant__ TensorMap
extern "C" __global__ void one_map(MAP a, float* out) {}
extern "C" __global__ void four_maps(MAP a, MAP b, MAP c, MAP d, float* out) {}
extern "C" __global__ void eight_scalars(
    int a, float b, long long c, double d, unsigned e, long long f, double g, bool h) {}
"""
SCALARS = (np.int32(1), np.float32(2), np.int64(3), np.float64(4), np.uint32(5), 6, 7.0, True)
SCALAR_TYPES = (
    ctypes.c_int32,
    ctypes.c_float,
    ctypes.c_int64,
    ctypes.c_double,
    ctypes.c_uint32,
    ctypes.c_int64,
    ctypes.c_double,
    ctypes.c_bool,
)
NOTE = (
    "Each launch runs one block of 32 threads of an empty kernel, without launch attributes. The rows of C launch a "
    "CUfunction unless the row states another object. The rows of C hold the GIL, which all other launchers release. "
    "After every 200 launches, the benchmark waits for the stream; the time does not include this wait. The median "
    "ratio of 400 pairs of 200 launches and its 95 % interval decide whether a goal is met."
)
GOAL_NOTE = (
    "The goals of this table and of the next two tables include three costs. The release and acquisition of the GIL "
    "take some 70 ns; the other costs are a call of Python with a tuple of arguments, and cache misses of `cuda_tma` "
    "after the driver's code. An earlier version of the launch received C arrays, but needed a second copy of the "
    "launch code and private parts of CPython. The version with C arrays took 25 ns less, and 7 ns less for a "
    "prepared launch; its goals were 1.08 and 1.03."
)


@dataclass(frozen=True)
class Bench:
    """The objects that the launches share: the kernels, which are compiled at their first use, and one
    configuration."""

    scene: Scene

    @functools.cached_property
    def cubin(self) -> Any:
        options = core.ProgramOptions(arch=f"sm_{self.scene.device.arch}", std="c++17")
        return core.Program(SOURCE, "c++", options).compile("cubin")

    @functools.cached_property
    def config(self) -> Any:
        return core.LaunchConfig(grid=1, block=32)

    def kernel(self, name: str) -> Any:
        return self.cubin.get_kernel(name)

    def handle(self, name: str) -> int:
        """Return the CUkernel of a kernel."""
        return int(self.kernel(name).handle)

    def function(self, name: str) -> int:
        """Return the kernel in the current context, which is a CUfunction as in C programs. A launch of a CUfunction is
        faster than a launch of a CUkernel.
        """
        error, function = driver.cuKernelGetFunction(driver.CUkernel(self.handle(name)))
        require_success((error,))
        return int(function)

    def timer(self, statement: str, **names: object) -> Timer:
        return queued(python(statement, s=self.scene.stream, config=self.config, **names), self.scene.stream.sync)


def tables(scene: Scene, repeats: int) -> list[Comparison]:
    bench = Bench(scene)
    return [
        compare("Launch: a map and a pointer", one_map(bench), repeats, (C,), [NOTE, GOAL_NOTE]),
        compare("Launch: four maps and a pointer", four_maps(bench), repeats, (C,), [NOTE]),
        compare("Launch: eight mixed scalars", eight_scalars(bench), repeats, (C,), [NOTE]),
    ]


def one_map(bench: Bench) -> list[Work]:
    return [
        *with_maps(bench, "one_map", 1, MAPS_GOAL),
        Work(f"{LAUNCH}, a torch tensor for the pointer", lambda: with_tensor(bench)),
        Work(f"{LAUNCH}, another library's stream", lambda: foreign_stream(bench)),
        Work("Triton, with a descriptor", lambda: triton(bench.scene, with_descriptor=True)),
        Work("Triton, with a pointer alone", lambda: triton(bench.scene, with_descriptor=False)),
    ]


def four_maps(bench: Bench) -> list[Work]:
    return with_maps(bench, "four_maps", 4, MAPS_GOAL)


def with_maps(bench: Bench, name: str, count: int, goal: Goal) -> list[Work]:
    """Return launches with `count` maps of different memory, and with a pointer as an int."""
    scene, address = bench.scene, bench.scene.address

    def ours() -> tuple:
        return (*[scene.descriptor(2, memory) for memory in range(count)], address)

    def in_memory() -> list:
        return [*[scene.raw_map(memory) for memory in range(count)], ctypes.c_void_p(address)]

    def cores() -> tuple:
        return (*[scene.core_descriptor(memory) for memory in range(count)], address)

    def bindings() -> tuple[tuple, tuple]:
        maps = [bindings_map(scene.descriptor(2, memory)) for memory in range(count)]
        # In the list of types, None stands for an argument that is a struct of cuda.bindings.
        return (*maps, address), (*[None] * count, ctypes.c_void_p)

    def cupys() -> tuple:
        return (*[struct_scalar(bytes(scene.descriptor(2, memory))) for memory in range(count)], address)

    return launches(bench, name, Arguments(ours, in_memory, cores, bindings, cupys), goal)


def eight_scalars(bench: Bench) -> list[Work]:
    def in_memory() -> list:
        return [kind(value) for kind, value in zip(SCALAR_TYPES, plain, strict=True)]

    plain: tuple[Any, ...] = tuple(value.item() if isinstance(value, np.generic) else value for value in SCALARS)
    arguments = Arguments(lambda: SCALARS, in_memory, lambda: SCALARS, lambda: (plain, SCALAR_TYPES), lambda: SCALARS)
    return [
        *launches(bench, "eight_scalars", arguments, Goal(1, floor=(CUDA_CORE,), paired=True)),
        Work(f"{LAUNCH}, Python's own numbers", lambda: ours_launch(bench, "eight_scalars", plain)),
    ]


@dataclass(frozen=True)
class Arguments:
    """The arguments of the same launch in the form of each library.

    Each field is a function, so that the failure of a library affects only its own row.
    """

    ours: Callable[[], tuple]
    in_memory: Callable[[], list]
    cores: Callable[[], tuple]
    bindings: Callable[[], tuple[tuple, tuple]]
    cupys: Callable[[], tuple]


def launches(bench: Bench, name: str, arguments: Arguments, goal: Goal) -> list[Work]:
    return [
        Work(C, lambda: c_launch(bench, bench.function(name), arguments.in_memory(), "cuLaunchKernel")),
        Work(C_EX, lambda: c_launch(bench, bench.function(name), arguments.in_memory(), "cuLaunchKernelEx")),
        Work(C_EX_KERNEL, lambda: c_launch(bench, bench.handle(name), arguments.in_memory(), "cuLaunchKernelEx")),
        Work(LAUNCH, lambda: ours_launch(bench, name, arguments.ours()), goal, True),
        Work(PREPARED, lambda: prepared_launch(bench, name, arguments.ours()), PREPARED_GOAL, True),
        Work(CUDA_CORE, lambda: core_launch(bench, name, arguments.cores())),
        Work("cuda.bindings", lambda: bindings_launch(bench, name, arguments.bindings())),
        Work("CuPy, RawKernel", lambda: cupy_launch(bench, name, arguments.cupys())),
    ]


# ---- the launching libraries ----


def c_launch(bench: Bench, function: int, arguments: Sequence[Any], by: str) -> Timer:
    stream = bench.scene.stream
    return queued(bench.scene.floor.launch(function, int(stream.handle), arguments, by), stream.sync)


def named(arguments: Sequence[object]) -> tuple[str, Mapping[str, object]]:
    """Return the text of the arguments in a statement, and the values of the arguments."""
    names = {f"a{index}": value for index, value in enumerate(arguments)}
    return ", ".join(names), MappingProxyType(names)


def ours_launch(bench: Bench, name: str, arguments: Sequence[object]) -> Timer:
    written, names = named(arguments)
    return bench.timer(
        f"launch(s, config, kernel, {written})", launch=cuda_tma.launch, kernel=bench.kernel(name), **names
    )


def prepared_launch(bench: Bench, name: str, arguments: Sequence[object]) -> Timer:
    return bench.timer("prepared(s)", prepared=cuda_tma.prepare(bench.kernel(name), bench.config, *arguments))


def core_launch(bench: Bench, name: str, arguments: Sequence[object]) -> Timer:
    written, names = named(arguments)
    return bench.timer(f"launch(s, config, kernel, {written})", launch=core.launch, kernel=bench.kernel(name), **names)


def bindings_launch(bench: Bench, name: str, arguments: tuple[tuple, tuple]) -> Timer:
    config = driver.CUlaunchConfig()
    config.gridDimX = config.gridDimY = config.gridDimZ = 1
    config.blockDimX, config.blockDimY, config.blockDimZ = 32, 1, 1
    config.hStream = driver.CUstream(int(bench.scene.stream.handle))
    config.numAttrs = 0
    function = driver.CUfunction(int(bench.kernel(name).handle))
    require_success(driver.cuLaunchKernelEx(config, function, arguments, 0))
    (written, names), types = named(arguments[0]), arguments[1]
    statement = f"launch(native, function, (({written},), types), 0)"
    return bench.timer(
        statement, launch=driver.cuLaunchKernelEx, native=config, function=function, types=types, **names
    )


def cupy_launch(bench: Bench, name: str, arguments: Sequence[object]) -> Timer:
    import cupy

    stream = cupy.cuda.ExternalStream(int(bench.scene.stream.handle))
    stream.use()
    kernel = cupy_module(bytes(bench.cubin.code)).get_function(name)
    written, names = named(arguments)
    return bench.timer(f"kernel((1,), (32,), ({written},))", kernel=kernel, stream=stream, **names)


@functools.cache
def cupy_module(cubin: bytes) -> Any:
    import cupy

    file = Path(tempfile.mkdtemp(prefix="cupy-")) / "kernels.cubin"
    file.write_bytes(cubin)
    return cupy.RawModule(path=str(file))


def struct_scalar(raw: bytes) -> np.ndarray:
    """Return an array that CuPy passes by value, as it does with a NumPy array of size one of any dtype."""
    return np.frombuffer(raw, dtype=np.dtype((np.void, len(raw)))).reshape(())


def with_tensor(bench: Bench) -> Timer:
    return ours_launch(bench, "one_map", (bench.scene.descriptor(), bench.scene.tensors[0]))


def foreign_stream(bench: Bench) -> Timer:
    written, names = named((bench.scene.descriptor(), bench.scene.address))
    stream, kernel = ForeignStream(int(bench.scene.stream.handle)), bench.kernel("one_map")
    return bench.timer(
        f"launch(foreign, config, kernel, {written})", launch=cuda_tma.launch, foreign=stream, kernel=kernel, **names
    )


class ForeignStream:
    """A stream in the form that other libraries accept."""

    def __init__(self, handle: int):
        self._shown = 0, handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return self._shown


def triton(scene: Scene, with_descriptor: bool) -> Timer:
    from triton.tools.tensor_descriptor import TensorDescriptor

    from . import triton_kernel

    x, out = scene.tensors
    settle = scene.torch.cuda.synchronize
    if not with_descriptor:
        return queued(python("kernel[(1,)](out, num_warps=1)", kernel=triton_kernel.with_pointer, out=out), settle)
    descriptor = TensorDescriptor.from_tensor(x, list(BOXES[2]))
    kernel = triton_kernel.with_descriptor
    return queued(python("kernel[(1,)](d, out, num_warps=1)", kernel=kernel, d=descriptor, out=out), settle)
