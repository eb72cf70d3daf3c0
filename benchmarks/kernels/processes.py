"""Processes that each measure some examples, in sequence on each GPU, and at the same time on all GPUs.

Each GPU has its own clock and power. Other GPUs therefore do not affect a time that a GPU's own clock measures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from .figures import Figure

PER_RUN_S = 240


def in_processes(names: Sequence[str], runs: int, options: Sequence[str] = ()) -> list[list[Figure]]:
    """Return the figures of each of `runs` processes."""
    gpus = visible_gpus() or [""]

    def on_a_gpu(number: int) -> list[list[Figure]]:
        return [in_a_process(names, options, gpus[number]) for _ in range(number, runs, len(gpus))]

    with ThreadPoolExecutor(len(gpus)) as threads:
        return [figures for of_gpu in threads.map(on_a_gpu, range(len(gpus))) for figures in of_gpu]


def in_a_process(names: Sequence[str], options: Sequence[str] = (), gpu: str = "") -> list[Figure]:
    """Return the figures of one process, and the reason for each example without figures.

    The process sees the GPU in ``CUDA_VISIBLE_DEVICES``, or the GPUs of this process.
    """
    command = [sys.executable, "-m", "benchmarks.kernels", *options, *names]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": gpu} if gpu else None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PER_RUN_S, env=environment)
        lines, reason = done.stdout, f"exit status {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1]}"
    except subprocess.TimeoutExpired as error:
        lines, reason = (error.stdout or b"").decode(), f"no end within {PER_RUN_S} s"
    figures = [Figure.of(json.loads(line)) for line in lines.splitlines() if line.startswith("{")]
    seen = {figure.kernel for figure in figures}
    return [*figures, *(Figure(name, error=reason) for name in names if name not in seen)]


def visible_gpus() -> list[str]:
    """Return the names of the GPUs in ``CUDA_VISIBLE_DEVICES``.

    Without torch, which counts the GPUs, return an empty list.
    """
    if (named := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [name for name in named.split(",") if name]
    try:
        import torch
    except ModuleNotFoundError:
        return []
    return [str(number) for number in range(torch.cuda.device_count())]
