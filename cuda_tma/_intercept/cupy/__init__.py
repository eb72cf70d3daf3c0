"""The adapter of CuPy. The driver library's CUDA runtime replaces the runtime of CuPy's wheels, and kernels keep their
lines.
"""

from __future__ import annotations

import os
import sys

from ..startup.cuda_tma_redirect import redirect

__all__ = ["install"]

# Kernels on disk have no line information, and may be machine code. The CUB parts of CuPy contain only machine code.
_ENVIRONMENT = {"CUPY_CACHE_IN_MEMORY": "1", "CUPY_ACCELERATORS": ""}


def install(name: str) -> None:
    """Redirect a CuPy module that was just imported, before any other module uses it."""
    os.environ.update(_ENVIRONMENT)
    redirect(str(sys.modules[name].__file__))
