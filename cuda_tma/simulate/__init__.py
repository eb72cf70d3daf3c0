"""Kernels without a GPU: their PTX, run in NumPy, with :mod:`cuda_tma.emulate` as the TMA unit.

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
from ._watch import Difference, Watched, watch
from .config import Config
from .device import Device
from .errors import ParseError, TimeLimitReached, UnsupportedInstruction
from .findings import KINDS, Finding, Report, SimulationError
from .kernel import Kernel
from .suppression import Suppression, read_suppressions
from .tensor_map import TensorMap

__all__ = [
    "KINDS",
    "Config",
    "Device",
    "Difference",
    "Finding",
    "Kernel",
    "ParseError",
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
