"""The kernels of the comparison: kernels with bugs of public repositories, and one kernel with ten planted bugs."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[2]))

from cuda_tma import simulate
from tests.real_bugs import RealBug, real_bugs
from tests.simulate._sanitize._sanitizer import BUGS, SOURCE, line_of

FIXED = "mended"  # The word FIXED in a recording marks a fixed kernel.
ELEMENTS = 4096  # Each array has 4096 elements.
# An argument of a kernel is a map of the array "in" or "out", an array, or the number of tiles.
_ARGUMENTS = ("source", "target", "in", "out", "tiles")


@dataclass(frozen=True)
class Case:
    """A kernel before and after its fix, with the arguments of its launch.

    Attributes
    ----------
    name : str
    source, fixed : str
    kind : str
        The kind of the expected finding, or an empty string if the kernel is right.
    culprit : int
        The line of the expected finding, or 0 if the kernel is right.
    grid, block, cluster, tiles : int
    box : tuple of int
        The box of both maps, in tensor order.
    order : str
        The order of asynchronous copies on the simulator.
    arguments : tuple of str
        The argument of each parameter: ``source`` and ``target`` (maps of the arrays ``in`` and ``out``), an array
        (``in``, ``out`` or ``other``), or ``tiles``.
    """

    name: str
    source: str
    fixed: str
    kind: str
    culprit: int
    grid: int = 1
    block: int = 256
    cluster: int = 1
    tiles: int = 4
    box: tuple[int, ...] = (256,)
    order: str = "early"
    arguments: tuple[str, ...] = _ARGUMENTS

    def launch(self, is_fixed: bool) -> dict[str, Any]:
        """Return the input for a process that runs the case."""
        return {**asdict(self), "source": self.fixed if is_fixed else self.source, "elements": ELEMENTS}


def cases() -> list[Case]:
    """Return all cases, with the planted bugs first."""
    return [*_planted(), *map(_real, real_bugs())]


def _planted() -> list[Case]:
    arguments = ("source", "target", "other", "tiles")
    right = f"#define BUG 0\n#line 1\n{SOURCE}"
    made = [Case("V0 (nothing wrong)", right, right, "", 0, arguments=arguments)]
    for bug, kind, where, _, _ in BUGS:
        source = f"#define BUG {bug}\n#line 1\n{SOURCE}"
        made.append(Case(f"V{bug}", source, right, kind, line_of(where), arguments=arguments))
    return made


def _real(bug: RealBug) -> Case:
    launch = (bug.grid, bug.block, bug.cluster, bug.tiles, bug.box, bug.order)
    fixed = f"#define FIXED 1\n#line 1\n{bug.source}"
    return Case(bug.name, bug.source, fixed, bug.kind, bug.culprit, *launch)


def simulated(case: Case, gpu: simulate.Device | None = None) -> simulate.Report:
    """Run a case on the simulator, and return the report."""
    gpu = gpu or simulate.Device()
    arrays = {
        "in": np.arange(ELEMENTS, dtype=np.int32),
        **{name: np.zeros(ELEMENTS, np.int32) for name in ("out", "other")},
    }
    given: dict[str, Any] = {**arrays, "tiles": case.tiles}
    for name, of in (("source", "in"), ("target", "out")):
        given[name] = gpu.create_tensor_map(arrays[of].reshape(-1, *case.box[1:]), box_dim=case.box)
    config = simulate.Config(case.grid // case.cluster, case.block, case.cluster)
    arguments = [given[name] for name in case.arguments]
    return gpu.launch(config, gpu.compile(case.source, "kernel"), *arguments, order=case.order)
