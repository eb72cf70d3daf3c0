"""The kernels of ``examples/``, which are compared with their rivals in several processes.

A timed example has a generator ``cases(sizes)``, which ``examples/_example.py`` describes. When the caller requests the
next case, the generator checks every element of the results of the timed launches. The module ``regimes`` contains the
ways of timing, ``families`` the kernels, ``processes`` the runs, ``figures`` the results, and ``chart`` the picture.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import gpu
from ..gpu import machine
from . import cublaslt, regimes
from .chart import draw
from .families import FAMILIES, Family
from .figures import Figure, Figures, summary, together
from .processes import in_processes

__all__ = ["FAMILIES", "beside_recorded", "draw", "machine", "tables", "unavailable"]

EXAMPLES = Path(__file__).parents[2] / "examples"
CUBLASLT = {"cuBLASLt, best of 16": cublaslt.best_of}


def by_triton(tokens: Any, weights: Any, ends: Any) -> regimes.Run:
    from . import triton_experts

    return triton_experts.of_experts(tokens, weights, ends)


# BESIDE contains rivals that need a preparation before the measured call.
BESIDE: dict[str, dict[str, Callable[..., regimes.Run]]] = {
    "gemm": CUBLASLT,
    "gemm_every_shape": CUBLASLT,
    "grouped_gemm": {"Triton": by_triton} if importlib.util.find_spec("triton") else {},
}
NOTE = (
    "Speeds are computed from the necessary work: {}. All times are medians of alternating runs on the GPU's clock. "
    "Each example checked every element of the results of the timed launches. Speeds and ratios are medians of {} "
    "processes; the table also shows the ratio's least and greatest value. When a launch begins, L2 contains {}."
)


def unavailable() -> str:
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed: the examples take tensors and rivals from it"
    return gpu.unavailable()


def tables(repeats: int, runs: int, families: Sequence[str] = tuple(FAMILIES)) -> list[Figures]:
    """Measure the examples of these families in `runs` processes. The module `regimes` defines the repetitions in each
    process.
    """
    return [_table(family, runs) for family in map(FAMILIES.__getitem__, families)]


def beside_recorded(tables: Sequence[Figures], path: Path) -> list[Figures]:
    """Return these tables, together with those of other families in a file of figures, in the order of families."""
    recorded = json.loads(path.read_text())["tables"] if path.exists() else []
    before = [Figures(**{**table, "figures": [Figure.of(values) for values in table["figures"]]}) for table in recorded]
    by_title = {table.title: table for table in (*before, *tables)}
    return [by_title[family.title] for family in FAMILIES.values() if family.title in by_title]


def _table(family: Family, runs: int) -> Figures:
    figures = together(in_processes(family.examples, runs))
    note = NOTE.format(family.counts, runs, family.warm)
    return Figures(family.title, tuple(figures), (*summary(figures), note))


def measured(name: str, load: Callable[[str], Any] | None = None) -> Iterator[Figure]:
    """Yield the figures of an example, each after its check.

    If the example cannot run, or computes a wrong element, yield the reason.

    `load` returns the module with the cases of a name. The default is :func:`example`, with the rivals of `BESIDE`.
    """
    try:
        module = (load or _beside_more)(name)
        timed: list[Figure] = []
        for case in module.cases(module.LARGE):
            yield from timed  # The example checks its results before it yields the next case.
            timed = timings(name, *case)
        yield from timed
    except Exception as error:
        yield Figure(name, error=(str(error).strip().splitlines() or [type(error).__name__])[0])
    finally:
        _free_memory()


def timings(
    name: str, case: str, ours: regimes.Run, rivals: dict[str, regimes.Run], flops: int, moved_bytes: int
) -> list[Figure]:
    """Return a figure for each regime and each rival."""
    runs = [ours, *rivals.values()]
    found = []
    for regime in (regimes.sustained, regimes.burst) if flops else (regimes.in_turns,):
        with regimes.Watch() as watch:
            ours_ms, *rivals_ms = regime(runs)
        state = (watch.clock_mhz,), (watch.power_w,), (watch.temperature_c,)
        work = regime.__name__.replace("_", " "), flops, moved_bytes
        found += [
            Figure(name, case, rival, (ours_ms,), (rival_ms,), *work, *state)
            for rival, rival_ms in zip(rivals, rivals_ms, strict=True)
        ]
    return found


def example(name: str) -> ModuleType:
    """Return the module with this name in ``examples/``. The folder is not a package, so its modules import `_example`
    by name.
    """
    if str(EXAMPLES) not in sys.path:
        sys.path.append(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _beside_more(name: str) -> ModuleType:
    module = example(name)
    if name in BESIDE:
        module.RIVALS.update(BESIDE[name])
    return module


def _free_memory() -> None:
    """Free gigabytes of GPU memory for the next example."""
    import torch

    gc.collect()
    torch.cuda.empty_cache()
