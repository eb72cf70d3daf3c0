"""Launches of one kernel with equal arguments by two functions, cuda_tma.launch on the fake driver and the simulator's
launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from cuda import core

import cuda_tma
from cuda_tma import simulate
from cuda_tma._compile.compiled import Compiled, remember
from cuda_tma._compile.nvrtc import request, run
from tests.support.fake_driver import FakeDriver
from tests.support.launching import HANDLES, ForeignStream

CONFIG = {"grid": 1, "block": 32}
Outcome = tuple[type[Exception], str] | None  # An outcome is None if the door accepted the launch.
HEADER = """struct __half { unsigned short bits; };  // named as in the toolkit
struct Pair { int a; double b; };
struct Complex { float re, im; };
"""
MAP_HEADER = "#include <cuda_tma/tile.cuh>\nusing namespace cuda_tma;\n"


@dataclass
class Doors:
    """The two launch functions of one test."""

    driver: FakeDriver
    gpu: simulate.Device

    def refusals(
        self, parameters: str, *arguments: Any, config: Any = CONFIG, attribute: str = ""
    ) -> tuple[Outcome, Outcome]:
        """Return the error of each launch function. A callable argument receives the function's create_tensor_map, and
        makes a tensor map."""
        compiled = _compiled(parameters, attribute)
        simulated = self.gpu.compile(_source(parameters, attribute), "k")
        handle = next(HANDLES)
        self.driver.kernels[handle] = (compiled.lowered_name, [each.size_bytes for each in simulated.parameters])
        kernel = core.Kernel.from_handle(handle)
        remember(kernel, compiled)
        given = _made(arguments, cuda_tma.create_tensor_map), _made(arguments, self.gpu.create_tensor_map)
        launched = _outcome(lambda: cuda_tma.launch(ForeignStream(), config, kernel, *given[0]))
        return launched, _outcome(lambda: self.gpu.launch(config, simulated, *given[1]))


def _made(arguments: tuple[Any, ...], make: Callable[..., Any]) -> list[Any]:
    return [each(make) if callable(each) else each for each in arguments]


def _outcome(launch: Callable[[], object]) -> Outcome:
    try:
        launch()
    except Exception as error:
        return type(error), str(error)
    return None


def _source(parameters: str, attribute: str) -> str:
    header = HEADER + (MAP_HEADER if "Map" in parameters else "")
    return f'{header}extern "C" __global__ void {attribute} k({parameters}) {{}}'


@cache
def _compiled(parameters: str, attribute: str) -> Compiled:
    return run(request(_source(parameters, attribute), "k", target="compute_90a"))
