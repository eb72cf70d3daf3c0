"""The kernels of ``examples/``, each beside its rival, which it is timed with and checked against.

An example that is timed has a function ``figures()`` that gives a tuple for each case and rival: the fields of
:class:`.figures.Figure` but for the kernel's name. ``roofline`` is the picture.
"""

from __future__ import annotations

import gc
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from .. import gpu
from ..gpu import machine
from .figures import Figure, Figures
from .roofline import draw

__all__ = ["draw", "machine", "tables", "unavailable"]

EXAMPLES = Path(__file__).parents[2] / "examples"
TABLES = {  # the title, what its speeds count, and the examples in it
    "Kernels that move data": (
        "each input read once and each output written once",
        ("copy_2d", "transpose", "gather_rows", "kv_tiles"),
    ),
    "Kernels that multiply matrices": (
        "its floating-point operations",
        ("gemm", "conv_im2col", "grouped_gemm"),
    ),
}
NOTE = (
    "Speeds count what the problem needs: {}. Both times are medians on the GPU's clock, of runs that took turns; what "
    "came out was checked in every element."
)


def unavailable() -> str:
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed: the examples take tensors and rivals from it"
    return gpu.unavailable()


def tables(repeats: int) -> list[Figures]:
    """What each example measures; how often is its own choice, and `repeats` is not used."""
    return [
        Figures(title, tuple(figure for name in names for figure in measured(name)), (NOTE.format(counted),))
        for title, (counted, names) in TABLES.items()
    ]


def measured(name: str) -> Iterator[Figure]:
    """An example's figures; one with the reason, if it cannot run or finds a wrong element."""
    try:
        for figure in example(name).figures():
            yield Figure(name, *figure)
    except Exception as error:
        yield Figure(name, error=(str(error).strip().splitlines() or [type(error).__name__])[0])
    finally:
        _free_memory()


def example(name: str) -> ModuleType:
    """The module of this name in ``examples/``, which is no package."""
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
