"""A simulator that runs the PTX of kernels in NumPy, without a GPU; :mod:`cuda_tma.emulate` emulates its TMA unit.

>>> import numpy as np
>>> from cuda_tma import simulate
>>> gpu = simulate.Device(compute_capability=(9, 0))
>>> kernel = gpu.compile('extern "C" __global__ void fill(float* out) { out[threadIdx.x] = 1.5f; }', "fill")
>>> out = np.zeros(3, np.float32)
>>> gpu.launch(simulate.Config(grid=1, block=3), kernel, out).errors
()
>>> out
array([1.5, 1.5, 1.5], dtype=float32)
"""

from .._show.timeline import Timeline
from ._config import Config
from ._device.device import Device
from ._errors import ParseError, TimeLimitReached, UnsupportedInstruction
from ._findings import KINDS, Finding
from ._kernel import Kernel
from ._ptx import Place
from ._report import Report, SimulationError
from ._suppression import Suppression, read_suppressions
from ._tensor_map import TensorMap
from ._watch import Difference, Watched, watch

__all__ = [
    "KINDS",
    "Config",
    "Device",
    "Difference",
    "Finding",
    "Kernel",
    "ParseError",
    "Place",
    "Report",
    "SimulationError",
    "Suppression",
    "TensorMap",
    "TimeLimitReached",
    "Timeline",
    "UnsupportedInstruction",
    "Watched",
    "read_suppressions",
    "watch",
]


def __dir__() -> list[str]:
    return [*__all__, "fixture", "__doc__", "__file__", "__name__", "__path__"]
