"""Where an element of a box lies in shared memory: :mod:`cuda_tma.smem`, by the name that it had first."""

from .smem import *  # noqa: F403
from .smem import __all__ as __all__
