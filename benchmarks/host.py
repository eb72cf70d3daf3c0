"""Benchmarks that need no GPU: the rules, the codec, differences of maps, reads of tensors, and the emulator."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from cuda_tma import TensorMapOptions, TensorSpec, TiledParams, check, decode, diff, emulate, encode, params_of

from .comparison import Comparison, Goal, Work, compare, python


def unavailable() -> str:
    return ""


def machine() -> str:
    """Return a line with the processor, the operating system and the Python of this machine."""
    cpu = Path("/proc/cpuinfo")
    names = (
        [line.split(":", 1)[1].strip() for line in cpu.read_text().splitlines() if line.startswith("model name")]
        if cpu.exists()
        else []
    )
    processor = f"{names[0]}, {len(names)} cores" if names else platform.processor() or platform.machine()
    # The text after the first hyphen may contain the name of the person that built the Linux kernel.
    kernel = platform.release().partition("-")[0]
    return f"{processor}; {platform.system()} {kernel}; Python {platform.python_version()}"


def tables(repeats: int, runs: int) -> list[Comparison]:
    legal = ("All maps in this table are legal.",)
    knowledge = [work for rank in (2, 5) for work in knowledge_works(rank)]
    emulator = [emulator_work(), sweep_work()]
    return [
        compare("Without a GPU: rules, codec and diff", knowledge, repeats, notes=legal, unit="µs"),
        compare("Without a GPU: from a tensor to params", reading_works(), repeats, unit="µs"),
        compare("Without a GPU: the emulator", emulator, repeats, unit="µs"),
    ]


def work(name: str, run: Callable[[], object], goal_us: float = 0) -> Work:
    """Return a row that calls `run`, with the row's goal if it has one."""
    return Work(name, lambda: python("run()", run=run), Goal(plus_ns=1000 * goal_us) if goal_us else None)


def contiguous(rank: int) -> TiledParams:
    """Return the map of a float32 tensor of 64 x ... x 64, with boxes of ... x 2 x 8 x 32 and the 128-byte swizzle."""
    spec = TensorSpec((64,) * rank, "float32", address=1 << 32)
    return params_of(spec, box_dim=(2, 2, 2, 8, 32)[-rank:], swizzle="128B", l2_promotion="L2_128B")


def knowledge_works(rank: int) -> list[Work]:
    params = contiguous(rank)
    raw, other = encode(params), encode(replace(params, swizzle=0))
    goals_us = {"check": 20, "encode": 15, "decode": 15} if rank == 2 else {}
    runs = {
        "check": lambda: check(params),
        "encode": lambda: encode(params),
        "decode": lambda: decode(raw),
        "diff": lambda: diff(raw, other),
    }
    return [work(f"`{name}`, rank {rank}", run, goals_us.get(name, 0)) for name, run in runs.items()]


def reading_works() -> list[Work]:
    array = np.zeros((128, 128), np.float32)
    options = TensorMapOptions(box_dim=(32, 32), swizzle="128B")
    works = [
        work("`params_of` a NumPy array", lambda: params_of(array, options)),
        work("`TensorMapOptions`", lambda: TensorMapOptions(box_dim=(32, 32), swizzle="128B")),
    ]
    try:
        import torch
    except ImportError:
        return works
    tensor = torch.zeros(128, 128)
    return [work("`params_of` a torch tensor on the CPU", lambda: params_of(tensor, options)), *works]


def emulator_work() -> Work:
    params = params_of(TensorSpec((128, 128), "bfloat16"), box_dim=(64, 64), swizzle="128B")
    memory = np.zeros(128 * 256, np.uint8)
    name = "`emulate.load`, a 64 x 64 tile of bf16 with the 128-byte swizzle"
    return work(name, lambda: emulate.load(params, memory, (64, 32)), goal_us=200)


def sweep_work() -> Work:
    """Return the operation that loads every tile of a large matrix once."""
    size, rows, columns = 4096, 128, 32
    params = params_of(TensorSpec((size, size), "float32"), box_dim=(rows, columns))
    memory = np.zeros(4 * size * size, np.uint8)

    def sweep() -> int:
        starts = ((c, r) for r in range(0, size, rows) for c in range(0, size, columns))
        return sum(emulate.load(params, memory, start).tx_bytes for start in starts)

    return work(f"`emulate.load`, all {size} x {size} of fp32 in {rows} x {columns} tiles", sweep, goal_us=10e6)
