"""The adapter of numba-cuda, whose kernels use the driver library. The adapter adds line information to the kernels.

A kernel on disk has no line information, and may be machine code. With the adapter, numba-cuda therefore does not read
kernels from disk.
"""

from __future__ import annotations

import warnings
from typing import Any

from ..patches import Patches

__all__ = ["install"]

# _ERROR and _WARNING are behaviors of module flags in LLVM (LLVM Language Reference, "Module Flags Metadata").
_ERROR, _WARNING = 1, 2


def install() -> Patches:
    """Make numba-cuda compile every kernel with line information. Return the patches that undo the change."""
    from numba.cuda.core.errors import NumbaDebugInfoWarning
    from numba.cuda.debuginfo import DIBuilder
    from numba.cuda.dispatcher import CUDADispatcher

    # The adapter adds line information, which the program has not requested.
    warnings.filterwarnings("ignore", category=NumbaDebugInfoWarning)

    patches = Patches()
    begin = CUDADispatcher.__init__

    def begin_with_lines(self: Any, py_func: Any, targetoptions: Any, *arguments: Any, **keywords: Any) -> None:
        if not targetoptions.get("debug"):
            targetoptions = {**targetoptions, "lineinfo": True}
        begin(self, py_func, targetoptions, *arguments, **keywords)

    set_flags = DIBuilder._set_module_flags

    def set_flags_of_nvvm(self: Any) -> None:
        """Let NVVM link kernels and C++ that both have line information.

        NVVM refuses inputs whose module flags have different behaviors.
        """
        constant = self._const_int
        self._const_int = lambda value, bits=32: constant(_ERROR if value == _WARNING else value, bits)
        set_flags(self)
        del self._const_int

    patches.replace(DIBuilder, "_set_module_flags", set_flags_of_nvvm)
    patches.replace(CUDADispatcher, "__init__", begin_with_lines)
    patches.replace(CUDADispatcher, "enable_caching", lambda self: None)
    return patches
