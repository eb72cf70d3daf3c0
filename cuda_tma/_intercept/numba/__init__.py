"""The adapter of numba-cuda: its kernels use the driver library, and this adapter adds the lines of the program.

A kernel on disk has no line information, and may be machine code, so numba-cuda reads no kernel from disk.
"""

from __future__ import annotations

import warnings
from typing import Any

from ..patches import Patches

__all__ = ["install"]


def install() -> Patches:
    """Make numba-cuda compile every kernel with line information, and return the patches that undo this."""
    from numba.cuda.core.errors import NumbaDebugInfoWarning
    from numba.cuda.dispatcher import CUDADispatcher

    warnings.filterwarnings("ignore", category=NumbaDebugInfoWarning)  # the program has not requested line information

    patches = Patches()
    begin = CUDADispatcher.__init__

    def begin_with_lines(self: Any, py_func: Any, targetoptions: Any, *arguments: Any, **keywords: Any) -> None:
        if not targetoptions.get("debug"):
            targetoptions = {**targetoptions, "lineinfo": True}
        begin(self, py_func, targetoptions, *arguments, **keywords)

    patches.replace(CUDADispatcher, "__init__", begin_with_lines)
    patches.replace(CUDADispatcher, "enable_caching", lambda self: None)
    return patches
