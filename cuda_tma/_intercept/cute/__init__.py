"""The adapter of CuTe DSL.

The compiled host function runs unchanged, and the simulator runs the PTX of its machine code.

The host function calls a CUDA runtime inside CuTe DSL's library, and the driver library replaces that runtime. The
compiler of CuTe DSL embeds machine code, and can write the code and its PTX to files.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterator
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..driver import keep
from ..patches import Patches
from ..startup.cuda_tma_redirect import DRIVER, redirect
from .tensors import TorchOfTvm, with_gpu_address

__all__ = ["install", "set_environment"]

# The disk cache is disabled, because CuTe DSL stores programs on disk as machine code.
_ENVIRONMENT = {"CUTE_DSL_DISABLE_FILE_CACHING": "1", "CUTE_DSL_LINEINFO": "1"}
_NAMED = re.compile(r"dump-(cubin|ptx)-path='?([^\s'}]+)")


def set_environment() -> None:
    """Set environment variables that CuTe DSL reads at its import, for line information, and for no disk cache."""
    os.environ.update(_ENVIRONMENT)


def install() -> Patches:
    """Redirect the library of CuTe DSL, keep the PTX of each compilation, and return the patches."""
    from cutlass.base_dsl.dsl import BaseDSL
    from cutlass.base_dsl.env_manager import get_prefix_dsl_libs
    from cutlass.cute import runtime

    for path in (get_prefix_dsl_libs("CUTE_DSL") or "").split(os.pathsep):
        if os.path.isfile(path):
            ctypes.CDLL(path)
            redirect(path)
    _initialize()
    patches = Patches()
    patches.replace(runtime._Tensor, "__init__", with_gpu_address(runtime._Tensor.__init__))
    patches.replace(BaseDSL, "_compile_or_jit_module", _keeping(BaseDSL._compile_or_jit_module))
    _give_tvm_tensors(patches)
    return patches


def _give_tvm_tensors(patches: Patches) -> None:
    """Make TVM FFI read torch's tensors by Python code, which passes the address on the GPU.

    CuTe DSL uses TVM FFI on request.
    """
    try:
        from tvm_ffi import core
    except ImportError:
        return
    if getattr(core, "torch", None) is not None:
        os.environ["TVM_FFI_SKIP_DLPACK_C_EXCHANGE_API"] = "1"
        patches.replace(core, "torch", TorchOfTvm(core.torch))


def _initialize() -> None:
    """Initialize the driver, and make the primary context current, as torch does with its first tensor on a GPU.

    Programs of CuTe DSL query attributes and occupancy from the driver (``cutlass.utils.HardwareInfo``), which requires
    a context.
    """
    driver, context = ctypes.CDLL(DRIVER), ctypes.c_void_p()
    if driver.cuInit(0) == 0 and driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0:
        driver.cuCtxSetCurrent(context)


def _keeping(compile_module: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that compiles as the original function does, and keeps the PTX of the machine code."""

    def compile_or_jit_module(self: Any, module: Any, pipeline: str, *arguments: Any, **keywords: Any) -> Any:
        with TemporaryDirectory(prefix="cuda-tma-cute-") as folder:
            pipeline = _with_files(pipeline, folder)
            compiled = compile_module(self, module, pipeline, *arguments, **keywords)
            for code, ptx in _written(pipeline):
                keep(code.read_bytes(), ptx.read_text("utf-8", "replace"))
        return compiled

    return compile_or_jit_module


def _with_files(pipeline: str, folder: str) -> str:
    """Make a pipeline write machine code and PTX, into a folder or to the path that the program gives."""
    if not pipeline.endswith("})"):
        return pipeline
    base, named = os.path.join(folder, "code"), dict(_NAMED.findall(pipeline))
    missing = "".join(f" dump-{kind}-path={base}" for kind in ("cubin", "ptx") if kind not in named)
    return pipeline.removesuffix("})") + missing + "})"


def _written(pipeline: str) -> Iterator[tuple[Path, Path]]:
    """Yield each file of machine code that a pipeline wrote, with the file of its PTX."""
    named = dict(_NAMED.findall(pipeline))
    if named.keys() < {"cubin", "ptx"}:
        return
    code = Path(named["cubin"])
    for path in code.parent.glob(f"{escape(code.name)}*.cubin"):
        ptx = Path(named["ptx"] + path.name.removeprefix(code.name)).with_suffix(".ptx")
        if ptx.exists():
            yield path, ptx
