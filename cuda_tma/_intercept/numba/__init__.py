"""numba-cuda: its kernels reach the driver library; this adapter lets them have the lines of the program.

A kernel on disk was compiled without lines, and perhaps to machine code: nothing is read from there.
"""

from __future__ import annotations

import warnings
from typing import Any

from ..patches import Patches

__all__ = ["install"]


def install() -> Patches:
    """Let every kernel be compiled, with line information; return what undoes that."""
    from numba.cuda.core.errors import NumbaDebugInfoWarning
    from numba.cuda.dispatcher import CUDADispatcher

    warnings.filterwarnings("ignore", category=NumbaDebugInfoWarning)  # the program has not asked for lines

    patches = Patches()
    begin = CUDADispatcher.__init__

    def begin_with_lines(self: Any, py_func: Any, targetoptions: Any, *arguments: Any, **keywords: Any) -> None:
        if not targetoptions.get("debug"):
            targetoptions = {**targetoptions, "lineinfo": True}
        begin(self, py_func, targetoptions, *arguments, **keywords)

    patches.replace(CUDADispatcher, "__init__", begin_with_lines)
    patches.replace(CUDADispatcher, "enable_caching", lambda self: None)
    return patches
