"""The adapter of CuPy.

The driver library's CUDA runtime replaces the runtime of CuPy's wheels, and kernels keep their line information.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from ..errors import NotSimulated
from ..startup.cuda_tma_redirect import redirect

__all__ = ["install", "refuse_sorts"]

# CuPy's kernels on disk have no line information, and may be machine code. The parts of CuPy that use CUB contain only
# machine code.
_ENVIRONMENT = {"CUPY_CACHE_IN_MEMORY": "1", "CUPY_ACCELERATORS": ""}


def install(name: str) -> None:
    """Redirect a CuPy module that was just imported, before any other module uses it."""
    os.environ.update(_ENVIRONMENT)
    redirect(str(sys.modules[name].__file__))


def refuse_sorts(name: str) -> None:
    """Refuse the functions of CuPy's Thrust module, which was just imported."""
    for each in ("sort", "argsort", "lexsort"):
        setattr(sys.modules[name], each, _refused(each))


def _refused(name: str) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        raise NotSimulated(
            f"cupy.{name}", "its kernels in Thrust are machine code", f"use numpy.{name} with the array of cupy.asnumpy"
        )

    return refuse
