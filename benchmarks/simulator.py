"""The speed of the simulator, which runs kernels on this machine's processor, in thread instructions per second.

An instruction that 256 threads execute together counts 256 times. A matrix product (wgmma) of 262,144 multiplications
counts once for each of its 128 threads, so the rate of a GEMM is the rate of its products.
"""

from __future__ import annotations

import gzip
import lzma
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np

from cuda_tma import simulate
from cuda_tma._command import demo

from .comparison import Comparison, Goal, Row
from .host import machine

__all__ = ["machine", "tables", "unavailable"]

SAMPLES = 3  # The benchmark takes only three samples of each kernel, because a sample takes seconds.
SMALL_SECONDS, LARGE_SECONDS = 2, 60  # The time limits in seconds are for the matrix products of sizes 256 and 1024.
RATE = 10e6  # The simulator must execute RATE instructions of a GEMM per second, without unsuccessful polls.
TRITON_RATE = 12e6
LOOP_RATE = 1 / 3e-6  # LOOP_RATE is the required number of instructions per second for a kernel with one thread.
SCHEDULES, MOST_TIMES = 4, 4.2  # All schedules together may take at most MOST_TIMES times the time of one schedule.
LOAD_SECONDS, SECOND_LOAD_SECONDS = 1.5, 0.2
MOST_MEGABYTES = 300
_FOLDER = Path(__file__).parent
Launch = Callable[[], simulate.Report]

SAXPY = """
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""

LOOP = """
extern "C" __global__ void loop(unsigned* out, const unsigned* in, int turns) {
    __shared__ volatile unsigned ring[64];
    if (threadIdx.x != 0) return;
    unsigned x = 1;
    for (int i = 0; i < turns; ++i) {
        x = x * 1664525u + in[i & 63];
        ring[i & 63] = x;
        x ^= ring[(x ^ i) & 1 ? i & 63 : 0];
    }
    *out = x;
}
"""
# In the kernel, each thread accesses single bytes, and each warp of 8 CTAs arrives at 16 mbarriers.
EXCHANGE = r"""
extern "C" __global__ void __cluster_dims__(8) exchange(unsigned* out) {
    extern __shared__ __align__(8) unsigned char bytes[];
    __shared__ unsigned long long full[16];
    const unsigned barriers = (unsigned)__cvta_generic_to_shared(full), size = 200000;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 16; ++i)
            asm volatile("mbarrier.init.shared.b64 [%0], 96;" :: "r"(barriers + 8 * i) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    for (unsigned i = threadIdx.x; i < size; i += blockDim.x) bytes[i] = i;
    __syncthreads();
    unsigned sum = 0;
    for (unsigned i = threadIdx.x; i < size; i += blockDim.x) sum += bytes[(i + 7) % size];
    for (unsigned stage = 0; stage < 16; ++stage) {
        const unsigned mine = barriers + 8 * stage;
        if (threadIdx.x % 32 == 0)
            for (unsigned rank = 0; rank < 8; ++rank)
                asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;"
                             "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }"
                             :: "r"(mine), "r"(rank) : "memory");
        asm volatile("{ .reg .pred done; WAIT:"
                     "mbarrier.try_wait.parity.acquire.cluster.shared.b64 done, [%0], 0; @!done bra WAIT; }"
                     :: "r"(mine) : "memory");
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
"""


class Limit(NamedTuple):
    """The limit of a launch: the largest number of seconds, or the smallest number of thread instructions per second.

    The value 0 disables a limit.
    """

    seconds: float = 0
    rate: float = 0


def unavailable() -> str:
    try:
        saxpy()
    except (ImportError, RuntimeError) as error:
        return str(error)
    return ""


def tables(repeats: int, runs: int) -> list[Comparison]:
    """Take few samples of each kernel, because a launch takes milliseconds to seconds, and the times are not close to
    their goals.
    """
    notes = (
        f"{SAMPLES} launches of each, without compilation. In parentheses: millions of thread instructions, and "
        "their number per second of wall-clock time and of processor time.",
        "A launch checks synchronization by default; the names of rows without that check contain the option.",
        "Matrix products equal those of an H200's tensor cores bit for bit.",
    )
    rows = [_measured(*each) for each in kernels()]
    return [
        Comparison("The simulator", rows, notes=notes, unit="ms"),
        _schedules(),
        _loads(),
        _memory(),
    ]


def kernels() -> Iterator[tuple[str, Launch, Limit]]:
    """Yield the name, the launch and the limit of each kernel."""
    yield "saxpy of 10^6", saxpy(), Limit()
    yield "blur of `cuda-tma demo`", blur(), Limit()
    for size, seconds in ((256, SMALL_SECONDS), (1024, LARGE_SECONDS)):
        name = f"`examples/gemm.py`, {size}^3, clusters of 2"
        yield name, gemm(size), Limit(seconds)
        yield f"{name}, `Device(sanitize=False)`", gemm(size, sanitize=False), Limit(rate=RATE)
    yield "Triton's GEMM (`benchmarks/triton`), 512^3", triton_gemm(512), Limit(rate=TRITON_RATE)
    yield "a loop by one thread", loop(), Limit(rate=LOOP_RATE)


def _measured(name: str, launch: Launch, limit: Limit) -> Row:
    report = launch()
    samples, busy = _times(launch)
    report.raise_for_errors()
    count = report.thread_instructions
    rates = [count / 1e6 / (sorted(each)[SAMPLES // 2] / 1e9) for each in (samples, busy)]
    allowed = count / limit.rate if limit.rate else limit.seconds
    goal = Goal(plus_ns=1e9 * allowed) if allowed else None
    name = f"{name} ({count / 1e6:.3g} M, {rates[0]:.3g} M/s, {rates[1]:.3g} M/s)"
    return Row(name, tuple(samples), goal, is_ours=True)


def _times(work: Callable[[], object], samples: int = SAMPLES) -> tuple[list[float], list[float]]:
    """Return the nanoseconds of wall-clock time and of processor time."""
    wall, busy = [], []
    for _ in range(samples):
        start, start_busy = time.perf_counter_ns(), time.process_time_ns()
        work()
        wall.append(float(time.perf_counter_ns() - start))
        busy.append(float(time.process_time_ns() - start_busy))
    return wall, busy


def _schedules() -> Comparison:
    """Compare the time of several schedules with the time of one schedule."""
    rows = []
    for number, goal in ((1, None), (SCHEDULES, Goal(MOST_TIMES))):
        launch = triton_gemm(512, schedules=number)
        launch()
        rows.append(Row(f"Device(schedules={number})", tuple(_times(launch)[0]), goal, is_ours=number > 1))
    notes = ("Triton's GEMM, 512^3: the floor is one schedule.",)
    return Comparison("Schedules", rows, floor=(rows[0].name,), notes=notes, unit="ms")


def _loads() -> Comparison:
    """Load one kernel of a long PTX text as a new process would, and then load the kernel from the disk."""
    load, walls = grouped_gemm(), []
    with _own_cache():
        load()
        second = _times(load)[0]
    for _ in range(SAMPLES):
        with _own_cache():
            walls += _times(load, 1)[0]
    rows = [
        Row("the first load", tuple(walls), Goal(plus_ns=1e9 * LOAD_SECONDS), is_ours=True),
        Row("the second load", tuple(second), Goal(plus_ns=1e9 * SECOND_LOAD_SECONDS), is_ours=True),
    ]
    notes = ("One of two kernels of CUTLASS's example 57 (`benchmarks/cutlass`); the second load reads the disk.",)
    return Comparison("PTX of 2.7 MB", rows, notes=notes, unit="ms")


@contextmanager
def _own_cache() -> Iterator[None]:
    """Use an empty folder as the disk cache during the block."""
    before = {**os.environ}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CUDA_TMA_CACHE_DIR"] = folder
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _memory() -> Comparison:
    """Measure the memory of a process that launches a cluster of 8 CTAs with 200 KB each."""
    ptx, peaks = simulate.Device().compile(EXCHANGE, "exchange").ptx, []
    command = [sys.executable, "-c", "from benchmarks import simulator; simulator.print_peak_of_cluster()"]

    def run() -> None:
        peaks.append(subprocess.run(command, input=ptx, check=True, capture_output=True, text=True).stdout.strip())

    wall, _ = _times(run)
    name = f"a cluster of 8 CTAs with 200 KB each ({', '.join(peaks)} MB, ≤ {MOST_MEGABYTES} MB)"
    return Comparison("Memory of a process", [Row(name, tuple(wall), is_ours=True)], unit="ms")


def print_peak_of_cluster() -> None:
    """Run the PTX from standard input. Print the largest memory of this process in megabytes, on Linux."""
    gpu = simulate.Device()
    kernel, out = gpu.load(sys.stdin.read(), "exchange"), np.zeros(8 * 384, np.uint32)
    gpu.launch(simulate.Config(1, 384, cluster=8, shmem_size=200_000), kernel, out).raise_for_errors()
    (peak,) = (line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    print(int(peak) >> 10)


def loop(turns: int = 5000) -> Launch:
    gpu = simulate.Device()
    kernel = gpu.compile(LOOP, "loop")
    out, given = np.zeros(1, np.uint32), np.arange(64, dtype=np.uint32)
    return lambda: gpu.launch(simulate.Config(1, 32), kernel, out, given, turns)


def grouped_gemm() -> Callable[[], simulate.Kernel]:
    """Load one kernel of CUTLASS's example 57."""
    ptx = lzma.decompress((_FOLDER / "cutlass" / "grouped_gemm.ptx.xz").read_bytes()).decode()
    entry = re.findall(r"\.entry (\w*GroupProblemShape\w*)", ptx)[0]
    return lambda: simulate.Device((9, 0)).load(ptx, entry)


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
    """Launch the kernel of `examples/gemm.py` as the example does, with a cluster for each tile, and at most four
    clusters.
    """
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


def triton_gemm(size: int, sanitize: bool = True, product: np.ndarray | None = None, schedules: int = 1) -> Launch:
    """Launch a GEMM as Triton compiles it. Triton's launcher appends sizes and strides to each tensor map."""
    gpu = simulate.Device((9, 0), sanitize=sanitize, schedules=schedules)
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
