"""The kernels of tests/corpus, with the settings in their first lines, and their launches on the simulator."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from cuda_tma import simulate

FOLDER = Path(__file__).parents[1] / "corpus"
MARK = "// <-- here"


@dataclass(frozen=True)
class CorpusKernel:
    """A kernel file of the corpus.

    Attributes
    ----------
    path : pathlib.Path
    kinds : tuple of str
        The kinds of finding that fit the defect; empty for a right kernel.
    launch : dict
        Grid, block, cluster, dynamic shared memory and arguments, from the file.
    marked : frozenset of int
        The lines that a finding may contain.
    result : tuple of (int, str), optional
        An argument, and the NumPy expression that it equals after the launch.
    """

    path: Path
    kinds: tuple[str, ...]
    launch: dict[str, Any]
    marked: frozenset[int]
    result: tuple[int, str] | None

    @property
    def name(self) -> str:
        """The name of the kernel's file, with its folder."""
        return f"{self.path.parent.name}/{self.path.stem}"


def kernels() -> list[CorpusKernel]:
    """Return all kernels of both corpora."""
    return [_read(path) for path in sorted(FOLDER.glob("*/*.cu"))]


def _read(path: Path) -> CorpusKernel:
    lines = path.read_text().splitlines()
    verdict, launch = lines[0].removeprefix("// "), json.loads(lines[2].removeprefix("// launch: "))
    kinds = tuple(verdict.removeprefix("wrong: ").split(", ")) if verdict.startswith("wrong: ") else ()
    if not kinds and verdict != "right":
        raise ValueError(f"{path}: line 1 is neither '// wrong: kinds' nor '// right'")
    marked = frozenset(number for number, line in enumerate(lines, 1) if line.rstrip().endswith(MARK))
    result = re.fullmatch(r"// result: argument (\d+) equals (.+)", lines[3])
    return CorpusKernel(path, kinds, launch, marked, (int(result[1]), result[2]) if result else None)


def run(kernel: CorpusKernel, **settings: Any) -> tuple[simulate.Report, list[Any], list[Any]]:
    """Launch a kernel on the simulator. Return the report, and the arguments before and after the launch."""
    gpu = simulate.Device(**settings)
    compiled = gpu.compile(kernel.path, "kernel")
    before = [_value(given) for given in kernel.launch["arguments"]]
    after = [value.copy() if isinstance(value, np.ndarray) else value for value in before]
    arguments = [
        gpu.create_tensor_map(after[given["map"]], box_dim=tuple(given["box_dim"]), swizzle=given["swizzle"])
        if "map" in given
        else value
        for given, value in zip(kernel.launch["arguments"], after, strict=True)
    ]
    return gpu.launch(_config(kernel.launch), compiled, *arguments), before, after


def _config(launch: dict[str, Any]) -> simulate.Config:
    cluster = tuple(launch["cluster"]) if launch["cluster"] else None
    return simulate.Config(tuple(launch["grid"]), tuple(launch["block"]), cluster, launch["shmem_size"])


def _value(given: dict[str, Any]) -> Any:
    if "map" in given:
        return None
    dtype = np.dtype(getattr(ml_dtypes, given["dtype"], given["dtype"]))
    if "scalar" in given:
        return dtype.type(given["scalar"]).item()
    if "zeros" in given:
        return np.zeros(given["zeros"], dtype)
    if "arange" in given:
        return np.arange(np.prod(given["arange"])).reshape(given["arange"]).astype(dtype)
    return np.random.default_rng(7).integers(0, 8, given["random"]).astype(dtype)
