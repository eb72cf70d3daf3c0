"""The suite of torch operators: the cost of a call in eager mode, compared with an operator by hand and with the sum of
its parts, and the time of the kernel in a CUDA graph.

An operator by hand consists of torch's `define` and `impl`, and a function that allocates the output, gets the current
stream and launches the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import cuda_tma

from . import gpu
from .comparison import Comparison, Goal, Timer, Work, compare, python, queued

__all__ = ["machine", "tables", "unavailable"]

EMPTY = "torch: define and impl of an empty function"
ALLOCATION = "torch.empty_like"
LAUNCH = "cuda_tma.launch, on a known stream"
HAND = "operator by hand"
HAND_INTO = "operator by hand, into a given tensor"
OURS = "cuda_tma.torch.operator"
OURS_INTO = "cuda_tma.torch.operator, into a given tensor"
BARE, IN_GRAPH = "cuda_tma.launch", "the operator"
LAUNCHES = 10  # in a graph
LARGE = (2048, 2048)
SOURCE = """
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using Window = Tile<FLOAT32, Box<32, 32>>;
extern "C" __global__ void copy(const __grid_constant__ TiledMap<Window> x, const __grid_constant__ TiledMap<Window> y,
                                float factor) {
    __shared__ Window tile;
    __shared__ Barrier full;
    const Coordinates at{int(32 * blockIdx.x), int(32 * blockIdx.y)};
    if (threadIdx.x) return;
    full.init(1);
    fence_barrier_init();
    full.arrive_expect_tx(tile);
    load(tile, x, full, at);
    full.wait(0);
    store(y, at, tile);
    commit_group();
    wait_group<0>();
}
"""
CALLS = (
    "Each call launches one block with two typed maps and a number, on torch's current stream. After every 200 calls, "
    "the benchmark waits for the GPU; the time does not include this wait. The operators by hand get torch's current "
    "stream, as an operator must; the row of the launch does not. The version of a given tensor increases in both."
)
GRAPH = f"Each graph copies {LARGE[0]} x {LARGE[1]} float32 elements {LAUNCHES} times; the times are those of one copy."

machine = gpu.machine


def unavailable() -> str:
    return gpu.unavailable() or ("" if find_spec("torch") else "torch is not installed")


def tables(repeats: int, runs: int) -> list[Comparison]:
    return [calls(Bench(), repeats), in_graphs(Bench(LARGE), repeats)]


class Bench:
    """The tensors, the kernel and the operators that the rows share.

    Parameters
    ----------
    shape : tuple of int
    device : str
    simulator : simulate.Device or None
    """

    def __init__(self, shape: tuple[int, int] = (32, 32), device: str = "cuda", simulator: Any = None):
        import torch

        from cuda_tma.torch import like, operator

        self.torch = torch
        if simulator is None:
            cuda_tma.Device(0).set_current()
        self.x, self.y = (torch.zeros(shape, device=device) for _ in range(2))
        self.config = cuda_tma.LaunchConfig(grid=(shape[1] // 32, shape[0] // 32), block=32)
        self.kernel = (simulator or cuda_tma).compile(SOURCE, "copy")
        self.stream = torch.cuda.current_stream() if device == "cuda" else None
        named = {"config": self.config, "simulator": simulator}
        self.ours = operator("cuda_tma_benchmarks::ours", _kernel, outputs={"y": like("x")}, **named)
        self.ours_into = operator("cuda_tma_benchmarks::ours_into", _kernel, mutates_args=["y"], **named)
        self.by_hand(device.upper())

    def by_hand(self, key: str) -> None:
        """Define operators as a user does without the package."""
        torch, config, kernel, kept = self.torch, self.config, self.kernel, self.torch.empty_like(self.x)
        stream, launch = torch.cuda.current_stream, cuda_tma.launch
        increment_version = torch.autograd.graph.increment_version

        def hand(x: Any, factor: float) -> Any:
            y = torch.empty_like(x)
            launch(stream(), config, kernel, x, y, factor)
            return y

        def into(x: Any, y: Any, factor: float) -> None:
            increment_version(y)
            launch(stream(), config, kernel, x, y, factor)

        self.library = torch.library.Library("cuda_tma_by_hand", "FRAGMENT")
        for name, function in {"empty": lambda x, factor: kept, "hand": hand}.items():
            self.library.define(f"{name}(Tensor x, float factor) -> Tensor")
            self.library.impl(name, function, key)
        self.library.define("into(Tensor x, Tensor(a!) y, float factor) -> ()")
        self.library.impl("into", into, key)
        operators = torch.ops.cuda_tma_by_hand
        self.empty, self.hand, self.into = (getattr(operators, each).default for each in ("empty", "hand", "into"))

    def timer(self, statement: str) -> Timer:
        names = {each: getattr(self, each) for each in ("x", "y", "config", "kernel", "stream", "torch")}
        operators = {each: getattr(self, each) for each in ("ours", "ours_into", "empty", "hand", "into")}
        settle = self.torch.cuda.synchronize
        return queued(python(statement, **names, **operators, launch=cuda_tma.launch), settle)


def _kernel(compile: Callable[..., Any]) -> Any:
    return compile(SOURCE, "copy")


def calls(bench: Bench, repeats: int) -> Comparison:
    statements = {
        EMPTY: "empty(x, 2.0)",
        ALLOCATION: "torch.empty_like(x)",
        LAUNCH: "launch(stream, config, kernel, x, y, 2.0)",
        HAND: "hand(x, 2.0)",
        OURS: "ours(x, 2.0)",
        HAND_INTO: "into(x, y, 2.0)",
        OURS_INTO: "ours_into(x, y, 2.0)",
    }
    goals = {OURS: Goal(1.1, floor=(HAND,), paired=True), OURS_INTO: Goal(1.1, floor=(HAND_INTO,), paired=True)}
    works = [
        Work(name, partial(bench.timer, statement), goals.get(name), name in goals)
        for name, statement in statements.items()
    ]
    return compare("Torch operator: a call in eager mode", works, repeats, (EMPTY, ALLOCATION, LAUNCH), [CALLS], "µs")


def in_graphs(bench: Bench, repeats: int) -> Comparison:
    def bare() -> None:
        cuda_tma.launch(bench.torch.cuda.current_stream(), bench.config, bench.kernel, bench.x, bench.y, 2.0)

    works = [
        Work(BARE, lambda: replays(bench.torch, bare)),
        Work(
            IN_GRAPH,
            lambda: replays(bench.torch, lambda: bench.ours_into(bench.x, bench.y, 2.0)),
            Goal(1.01, paired=True),
            True,
        ),
    ]
    return compare("Torch operator: in a CUDA graph", works, repeats, (BARE,), [GRAPH], "µs")


def replays(torch: Any, call: Callable[[], object]) -> Timer:
    """Return a timer of replays of a graph that makes a call :data:`LAUNCHES` times, for the time of one call."""
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        call()
    side.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            call()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def timer(calls: int) -> float:
        begin.record()
        for _ in range(calls):
            graph.replay()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e6 / calls / LAUNCHES

    return timer
