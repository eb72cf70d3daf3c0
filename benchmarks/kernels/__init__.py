"""The kernels of ``examples/``, each beside its rivals, in several processes one after the other.

An example that is timed has a generator ``cases(sizes)``, described in ``examples/_example.py``: it checks what the
timed launches left, in every element, when it is asked for the next case. ``regimes`` says how they are timed,
``figures`` what comes of it, and ``roofline`` is the picture.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import gpu
from ..gpu import machine
from . import regimes
from .figures import Figure, Figures, together
from .roofline import draw

__all__ = ["draw", "machine", "tables", "unavailable"]

EXAMPLES = Path(__file__).parents[2] / "examples"
TABLES = {  # the title, what its speeds count, and the examples in it
    "Kernels that move data": (
        "each input read once and each output written once",
        ("copy_2d", "transpose", "gather_rows", "kv_tiles"),
    ),
    "Kernels that multiply matrices": (
        "its floating-point operations. Burst: 8 launches after a pause of 0.25 s; sustained: after half a second of "
        "the same work in turns, when the power that the GPU may draw sets its clock. `grouped_gemm` is given the "
        "routing on the host: making its maps and its schedule is left out, and torch._grouped_mm is given the "
        "routing on the device",
        ("gemm", "conv_im2col", "grouped_gemm"),
    ),
    "Attention": (
        "the products of queries with the keys that they see, and of weights with values; timed as products of "
        "matrices are; 16384 tokens, and heads of 2048 elements in all",
        ("attention",),
    ),
}
NOTE = (
    "Speeds count what the problem needs: {}. All times are medians on the GPU's clock, of runs that took turns; what "
    "the timed launches left was checked in every element. Speeds and the ratio are the medians of {} processes, "
    "beside the ratio's least and greatest."
)
PER_RUN_S = 240


def unavailable() -> str:
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed: the examples take tensors and rivals from it"
    return gpu.unavailable()


def tables(repeats: int, runs: int) -> list[Figures]:
    """What the examples measure in so many processes; `regimes` says how often in each."""
    names = [name for _, of_table in TABLES.values() for name in of_table]
    figures = together([in_a_process(names) for _ in range(runs)])
    return [
        Figures(title, tuple(f for f in figures if f.kernel in of_table), (NOTE.format(counted, runs),))
        for title, (counted, of_table) in TABLES.items()
    ]


def in_a_process(names: Sequence[str], options: Sequence[str] = ()) -> list[Figure]:
    """The figures of one process; of an example that it did not come to, why."""
    command = [sys.executable, "-m", "benchmarks.kernels", *options, *names]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PER_RUN_S)
        lines, reason = done.stdout, f"exit status {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1]}"
    except subprocess.TimeoutExpired as error:
        lines, reason = (error.stdout or b"").decode(), f"no end within {PER_RUN_S} s"
    figures = [Figure.of(json.loads(line)) for line in lines.splitlines() if line.startswith("{")]
    seen = {figure.kernel for figure in figures}
    return [*figures, *(Figure(name, error=reason) for name in names if name not in seen)]


def measured(name: str, load: Callable[[str], Any] | None = None) -> Iterator[Figure]:
    """An example's figures, each after its check; one with the reason, if it cannot run or leaves a wrong element.

    `load` gives what has its cases, by its name; :func:`example` if not given.
    """
    try:
        module = (load or example)(name)
        timed: list[Figure] = []
        for case in module.cases(module.LARGE):
            yield from timed  # they have been checked: the example went on
            timed = timings(name, *case)
        yield from timed
    except Exception as error:
        yield Figure(name, error=(str(error).strip().splitlines() or [type(error).__name__])[0])
    finally:
        _free_memory()


def timings(
    name: str, case: str, ours: regimes.Run, rivals: dict[str, regimes.Run], flops: int, moved_bytes: int
) -> list[Figure]:
    """A figure of each regime and rival."""
    runs = [ours, *rivals.values()]
    found = []
    for regime in (regimes.sustained, regimes.burst) if flops else (regimes.in_turns,):
        with regimes.Watch() as watch:
            ours_ms, *rivals_ms = regime(runs)
        state = regime.__name__.replace("_", " "), flops, moved_bytes, (watch.clock_mhz,), (watch.power_w,)
        found += [
            Figure(name, case, rival, (ours_ms,), (rival_ms,), *state)
            for rival, rival_ms in zip(rivals, rivals_ms, strict=True)
        ]
    return found


def example(name: str) -> ModuleType:
    """The module of this name in ``examples/``, which is no package: its modules import `_example` by name."""
    if str(EXAMPLES) not in sys.path:
        sys.path.append(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _free_memory() -> None:
    """Give gigabytes back, so that the next example finds the GPU as it would alone."""
    import torch

    gc.collect()
    torch.cuda.empty_cache()
