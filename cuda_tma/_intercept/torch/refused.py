"""Features of torch that the simulated GPU does not support.

Each of these features raises an error that contains the name of the feature. Functions that torch would compile run
uncompiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..errors import NotSimulated
from ..patches import Patches

__all__ = ["install", "refuse_extensions"]

_GRAPH = "a graph launches kernels later, and the simulator runs each launch at once"
_EXTENSION = "its kernels are machine code, which the simulator does not run"


def install(patches: Patches, session: Any) -> None:
    """Refuse graphs and extensions. Run functions uncompiled that torch would compile."""
    for name in ("CUDAGraph", "graph", "make_graphed_callables", "graph_pool_handle", "MemPool", "use_mem_pool"):
        patches.replace(torch.cuda, name, _refused(f"torch.cuda.{name}", _GRAPH, "call the function without a graph"))
    patches.replace(
        torch.cuda,
        "_compile_kernel",
        _refused("torch.cuda._compile_kernel", "its launches are not intercepted", "use cuda_tma.compile and launch"),
    )
    patches.replace(torch, "compile", _as_written("torch.compile", session))
    patches.replace(torch.jit, "script", _as_written("torch.jit.script", session))
    patches.replace(torch, "autocast", _autocast(torch.autocast))
    patches.replace(torch.amp, "autocast", torch.autocast)
    patches.replace(torch.cuda.amp, "autocast", _cuda_autocast)


def _refused(feature: str, reason: str, remedy: str) -> type:
    def refuse(self: Any, *_: Any, **__: Any) -> None:
        raise NotSimulated(feature, reason, remedy)

    return type(feature.rpartition(".")[2], (), {"__init__": refuse})


def refuse_extensions(patches: Patches) -> None:
    """Refuse to build CUDA sources. Build an extension that has only C++ sources."""
    from torch.utils import cpp_extension

    inline, load = cpp_extension.load_inline, cpp_extension.load
    remedy = "run the kernel by cuda_tma.launch, Triton or TileLang"

    def load_inline(name: str, cpp_sources: Any, cuda_sources: Any = None, *rest: Any, **keywords: Any) -> Any:
        if cuda_sources:
            raise NotSimulated("torch.utils.cpp_extension.load_inline(cuda_sources=...)", _EXTENSION, remedy)
        return inline(name, cpp_sources, cuda_sources, *rest, **keywords)

    def load_files(name: str, sources: Any, *rest: Any, **keywords: Any) -> Any:
        names = [sources] if isinstance(sources, str) else sources
        if keywords.get("with_cuda") or any(str(each).endswith((".cu", ".cuh")) for each in names):
            raise NotSimulated("torch.utils.cpp_extension.load of CUDA sources", _EXTENSION, remedy)
        return load(name, sources, *rest, **keywords)

    patches.replace(cpp_extension, "load_inline", load_inline)
    patches.replace(cpp_extension, "load", load_files)
    patches.replace(
        cpp_extension,
        "CUDAExtension",
        _refused("torch.utils.cpp_extension.CUDAExtension", _EXTENSION, remedy),
    )


def _as_written(feature: str, session: Any) -> Callable[..., Any]:
    """Return the function uncompiled. Report a note that the sanitizer does not check the compiler's code."""

    def decorate(function: Any = None, *_: Any, **__: Any) -> Any:
        if function is None:
            return decorate
        session.note(f"{feature} does not compile here: the function runs as it is written")
        return function

    return decorate


def _autocast(own: Any) -> Any:
    """Return the autocast of the CPU, with the default type of the GPU's autocast."""

    class Autocast(own):
        def __init__(self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: Any = None):
            if device_type == "cuda":
                device_type, dtype = "cpu", dtype or torch.float16
            super().__init__(device_type, dtype, enabled, cache_enabled)

    return Autocast


def _cuda_autocast(enabled: bool = True, dtype: Any = torch.float16, cache_enabled: bool = True) -> Any:
    return torch.autocast("cuda", dtype, enabled, cache_enabled)
