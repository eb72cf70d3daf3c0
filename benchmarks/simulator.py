"""The simulator's speed: kernels on this machine's processor, in thread instructions per second.

An instruction that 256 threads execute together counts 256 times. A product of matrices (wgmma) counts once for each of
its 128 threads: 262,144 multiplications, so that a GEMM's rate is that of its products.
"""

from __future__ import annotations

import gzip
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np

from cuda_tma import simulate
from cuda_tma._command import demo

from .comparison import Comparison, Goal, Row
from .host import machine

__all__ = ["machine", "tables", "unavailable"]

SAMPLES = 3  # samples of each kernel, which takes seconds
SMALL_SECONDS, LARGE_SECONDS = 2, 60  # time limits of a GEMM of 256 and of 1024
RATE = 10e6  # instructions per second that a GEMM must reach; unsuccessful polls do not count
_FOLDER = Path(__file__).parent
Launch = Callable[[], simulate.Report]

SAXPY = """
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""


def unavailable() -> str:
    try:
        saxpy()
    except (ImportError, RuntimeError) as error:
        return str(error)
    return ""


def tables(repeats: int, runs: int) -> list[Comparison]:
    """Take few samples of each, because a launch takes milliseconds to seconds and no goal is close."""
    notes = (
        f"{SAMPLES} launches of each, without compilation. In parentheses: millions of thread instructions, and "
        "their number per second of wall-clock time and of processor time.",
        "A launch checks synchronization by default; the names of rows without that check contain the option.",
        "Matrix products equal those of an H200's tensor cores bit for bit.",
    )
    rows = [_measured(name, launch, seconds) for name, launch, seconds in kernels()]
    return [Comparison("The simulator", rows, notes=notes, unit="ms")]


def kernels() -> Iterator[tuple[str, Launch, float | None]]:
    """Yield name, launch and the maximum seconds: None for the limit by RATE, 0 for any."""
    yield "saxpy of 10^6", saxpy(), 0
    yield "blur of `cuda-tma demo`", blur(), 0
    for size, seconds in ((256, SMALL_SECONDS), (1024, LARGE_SECONDS)):
        name = f"`examples/gemm.py`, {size}^3, clusters of 2"
        yield name, gemm(size), seconds
        yield f"{name}, `Device(sanitize=False)`", gemm(size, sanitize=False), None
    yield "Triton's GEMM (`benchmarks/triton`), 512^3", triton_gemm(512), 0


def _measured(name: str, launch: Launch, seconds: float | None) -> Row:
    samples, busy, report = [], [], launch()
    for _ in range(SAMPLES):
        start, start_busy = time.perf_counter_ns(), time.process_time_ns()
        report = launch()
        samples.append(float(time.perf_counter_ns() - start))
        busy.append(float(time.process_time_ns() - start_busy))
    report.raise_for_errors()
    count = report.thread_instructions
    rates = [count / 1e6 / (sorted(each)[SAMPLES // 2] / 1e9) for each in (samples, busy)]
    allowed = count / RATE if seconds is None else seconds
    goal = Goal(plus_ns=1e9 * allowed) if allowed else None
    name = f"{name} ({count / 1e6:.3g} M, {rates[0]:.3g} M/s, {rates[1]:.3g} M/s)"
    return Row(name, tuple(samples), goal, is_ours=True)


def saxpy(size: int = 10**6) -> Launch:
    gpu = simulate.Device()
    kernel = gpu.compile(SAXPY, "saxpy")
    x, y = np.arange(size, dtype=np.float32), np.ones(size, np.float32)
    return lambda: gpu.launch(simulate.Config(-(-size // 256), 256), kernel, 2.0, x, y, size)


def blur() -> Launch:
    gpu, kernel = demo.simulated_kernel()
    before = demo.generated_picture()
    after = np.zeros_like(before)
    grid = (before.shape[2] // demo.TILE, before.shape[1] // demo.TILE, 1)
    return lambda: gpu.launch(simulate.Config(grid, 256), kernel, before, after)


def gemm(size: int, sanitize: bool = True) -> Launch:
    """Launch as `examples/gemm.py` does, on as many clusters as there are tiles, four at most."""
    source = _example("gemm").SOURCE
    gpu = simulate.Device(sanitize=sanitize)
    constants = {"cluster": "CLUSTER", "threads": "(CONSUMERS + 1) * 128"}
    kernel = gpu.compile(source, "gemm", constants=constants)
    cluster, threads = (kernel.parameters.constants[name] for name in constants)
    (tile_m, tile_k), (share_n, _) = (kernel.parameters[name].map_type.tile_dim for name in ("a_map", "b_map"))
    down, across, deep = size // (tile_m * cluster), size // (share_n * cluster), size // tile_k
    dtype = kernel.parameters["a_map"].map_type.data_type.name.lower()
    a, b, c = (_normal(size, dtype, seed) for seed in range(3))
    config = simulate.Config(min(4, down * across) * cluster, threads)
    return lambda: gpu.launch(config, kernel, a, b, c, down, across, deep)


def triton_gemm(size: int, sanitize: bool = True, product: np.ndarray | None = None) -> Launch:
    """Launch a GEMM as Triton compiles it: its launcher appends sizes and strides to each tensor map."""
    gpu = simulate.Device((9, 0), sanitize=sanitize)
    kernel = gpu.load(gzip.decompress((_FOLDER / "triton" / "gemm.ptx.gz").read_bytes()).decode(), "gemm")
    a, b = (_normal(size, "float16", seed) for seed in range(2))
    arrays = a, b, np.zeros((size, size), np.float16) if product is None else product
    maps = [gpu.create_tensor_map(array, box_dim=(128, 64), swizzle="128B") for array in arrays]
    descriptors = [argument for each in maps for argument in (each, size, size, size, 1)]
    config = simulate.Config((size // 128) ** 2, 128, shmem_size=98328)
    return lambda: gpu.launch(config, kernel, *descriptors, size, size, size, 0, 0)


def _normal(size: int, dtype: str, seed: int) -> np.ndarray:
    import ml_dtypes

    drawn = np.random.default_rng(seed).standard_normal((size, size))
    return drawn.astype(getattr(ml_dtypes, dtype, dtype))


def _example(name: str) -> ModuleType:
    folder = str(_FOLDER.parent / "examples")
    sys.path.insert(0, folder)
    try:
        return __import__(name)
    finally:
        sys.path.remove(folder)
