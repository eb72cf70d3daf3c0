"""CuPy: the CUDA runtime that its wheels contain gives way to the driver library's, and kernels keep their lines."""

from __future__ import annotations

import os
import sys

from ..startup.cuda_tma_redirect import redirect

__all__ = ["install"]

# Kernels on disk have no lines, and perhaps machine code. CuPy's parts on CUB contain machine code alone.
_ENVIRONMENT = {"CUPY_CACHE_IN_MEMORY": "1", "CUPY_ACCELERATORS": ""}


def install(name: str) -> None:
    """Redirect CuPy's module of this name, which has just been imported and before all that use it."""
    os.environ.update(_ENVIRONMENT)
    redirect(str(sys.modules[name].__file__))
