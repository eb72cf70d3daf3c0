"""The time of ``cuda_tma.compile`` in a new process.

The first process compiles, and later processes load from disk. The time excludes imports and the device's context.
Without a GPU, no kernel is loaded, and the measurement ends when the machine code exists.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import cuda_tma
from cuda_tma._command import info
from cuda_tma._compile.kept import kept_or_compiled
from cuda_tma._compile.nvrtc import request, run

from . import nvrtc
from .comparison import Comparison, Goal, Timer, Work, compare

MOST_REPEATS = 15
GOAL_MS = 5
ROOT = Path(__file__).parent.parent
PROCESS = """
import sys, time
from benchmarks import start
call = start.prepared(*sys.argv[1:])
begun = time.perf_counter_ns()
call()
print(time.perf_counter_ns() - begun)
"""


def unavailable() -> str:
    return nvrtc.unavailable()


def machine() -> str:
    names = ", ".join(device["name"] for device in info.facts()["devices"][:1]) or "no GPU"
    return f"{names}; {nvrtc.machine()}"


def tables(repeats: int, runs: int) -> list[Comparison]:
    has_gpu = bool(info.facts()["devices"])
    title = f"`compile` in a new process, {'to a kernel' if has_gpu else 'to machine code alone'}"
    note = (
        f"The benchmark compiles a tiled load with `<cuda_tma/tile.cuh>`{'' if has_gpu else f', for {nvrtc.TARGET}'}."
    )
    with tempfile.TemporaryDirectory() as folder:
        return [compare(title, works(folder, has_gpu), min(repeats, MOST_REPEATS), notes=(note,), unit="ms")]


def works(folder: str, has_gpu: bool) -> list[Work]:
    return [
        Work("compiled", partial(timer, folder, "anew", has_gpu)),
        Work("from disk", partial(timer, folder, "kept", has_gpu), Goal(plus_ns=GOAL_MS * 1e6), is_ours=True),
    ]


def timer(folder: str, way: str, has_gpu: bool) -> Timer:
    """Return a timer of processes, each of which prints the time of its call. The first process stores the kernel on
    disk.
    """
    environment = {**os.environ, "CUDA_TMA_CACHE_DIR": folder, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, "-c", PROCESS, way, "gpu" if has_gpu else ""]

    def run() -> int:
        ran = subprocess.run(command, env=environment, capture_output=True, text=True)
        if ran.returncode:
            raise RuntimeError(ran.stderr.strip().splitlines()[-1])
        return int(ran.stdout)

    run()
    return lambda calls: sum(run() for _ in range(calls)) / calls


def prepared(way: str, gpu: str) -> Callable[[], object]:
    """Prepare the timed call in a process of the timer."""
    if gpu:
        cuda_tma.Device().set_current()
        return partial(cuda_tma.compile, nvrtc.TYPED_LOAD, "kernel", cache=way == "kept")
    make = kept_or_compiled if way == "kept" else run
    return lambda: make(request(nvrtc.TYPED_LOAD, "kernel", target=nvrtc.TARGET))
