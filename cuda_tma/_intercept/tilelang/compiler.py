"""The NVRTC backend of TileLang, which compiles to PTX and loads the host code with the session's driver."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from cuda.pathfinder import find_nvidia_header_directory
from tilelang.jit.adapter.nvrtc import adapter, libgen, wrapper

from ..errors import NotSimulated
from ..patches import Patches
from . import host

__all__ = ["install"]

_KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\(")
_DRIVER = "cuda.bindings.driver"
_TOOLKIT = Path("/usr/local/cuda")  # The installers of CUDA create the link /usr/local/cuda.
# TileLang writes std::numeric_limits<half_t>. CUTLASS specializes std::numeric_limits for nvcc, but a template of its
# own for NVRTC.
_LIMITS = """\
namespace cutlass { namespace platform { template <class T> struct numeric_limits; } }
namespace std { template <class T> struct numeric_limits : cutlass::platform::numeric_limits<T> {}; }
"""


def install(patches: Patches, compute_capability: tuple[int, int]) -> None:
    """Select the NVRTC backend for every kernel. Replace the backend's compiler, loader and driver."""
    owner = _owner_of_backends()
    patches.replace(owner, "resolve_execution_backend", _chosen(owner.resolve_execution_backend))
    patches.replace(libgen, "compile_cuda", _compiled(libgen.compile_cuda, compute_capability))
    patches.replace(libgen, "cuda", host)
    patches.replace(adapter, "cuda", host)
    patches.replace(libgen.NVRTCLibraryGenerator, "load_lib", _load)
    patches.replace(
        wrapper.TLNVRTCSourceWrapper,
        "create_dispatch_func",
        _with_clusters(wrapper.TLNVRTCSourceWrapper.create_dispatch_func),
    )
    forward = adapter.NVRTCKernelAdapter._forward_from_prebuild_lib
    patches.replace(adapter.NVRTCKernelAdapter, "_forward_from_prebuild_lib", _marked(forward))


def _owner_of_backends() -> Any:
    """Return the class or the module that chooses the backend of a kernel."""
    with contextlib.suppress(ImportError):  # TileLang contains BackendModule since version 0.1.14.
        from tilelang.backend.module import BackendModule

        return BackendModule
    with contextlib.suppress(ImportError):  # The import succeeds in TileLang 0.1.12 and 0.1.13.
        from tilelang.backend import execution_backend

        return execution_backend
    from tilelang.jit import execution_backend as earlier

    return earlier


def _chosen(own: Callable[..., Any]) -> Callable[..., Any]:
    # The replaced callable is a method or a function, so a first argument `self` is optional.
    def resolve(*arguments: Any) -> Any:
        *module, requested, target = arguments
        if target.kind.name != "cuda":
            return own(*arguments)
        if str(requested).lower() == "cutedsl":
            raise NotSimulated(
                "execution_backend='cutedsl'", ("it does not generate CUDA C++"), "use execution_backend='auto'"
            )
        return own(*module, "nvrtc", target)

    return resolve


def _file(code: str) -> str:
    found = _KERNEL.findall(code)
    return f"{found[-1] if found else 'tilelang_kernel'}.cu"


def _compiled(own: Callable[..., bytes], compute_capability: tuple[int, int]) -> Callable[..., bytes]:
    major, minor = compute_capability

    def compile_cuda(code: str, target_format: str = "ptx", options: Any = None, **keywords: Any) -> bytes:
        given = [options] if isinstance(options, str) else [*(options or ())]
        numbered = f'{_LIMITS}#line 1 "{_file(code)}"\n{code}'
        keywords.update(verbose=True, arch=major * 10 + minor, options=[*given, *_includes(), "-lineinfo"])
        return own(numbered, target_format="ptx", **keywords)

    return compile_cuda


def _includes() -> list[str]:
    """Return compiler options for the folders of CUDA's headers, which are from wheels or from a toolkit."""
    found = [folder for name in ("cudart", "cccl") if (folder := find_nvidia_header_directory(name))]
    toolkit = () if found else (_TOOLKIT / "include", _TOOLKIT / "include" / "cccl")
    return [f"-I{folder}" for folder in (*found, *filter(Path.is_dir, toolkit))]


def _with_clusters(own: Callable[..., str]) -> Callable[..., str]:
    """Keep the launch attributes that TileLang's host code for NVRTC omits."""

    def create_dispatch_func(source: Any, code: str, functions: dict[str, Any]) -> str:
        clusters = {
            name: tuple(int(extent) for extent in dims)
            for name in functions
            if (dims := getattr(source, "cluster_dims", {}).get(name))
        }
        cooperative = [name for name in functions if getattr(source, "use_cooperative_groups", {}).get(name)]
        host_code = own(source, code, functions)
        return f"{host_code}\n_clusters = {clusters!r}\n_cooperative = {cooperative!r}\n_code = {code!r}\n"

    return create_dispatch_func


def _load(generator: Any, lib_path: str | None = None) -> None:
    """Load the host code of a kernel, in place of ``NVRTCLibraryGenerator.load_lib``."""
    path = generator.libpath = lib_path or generator.libpath
    generator.pypath = path.replace(".cubin", ".py")
    text = Path(generator.pypath).read_text(encoding="utf-8").replace(_DRIVER, host.__name__)
    module = ModuleType("kernel")
    # The angle brackets mark the file name of generated code, so that findings do not refer to this code.
    exec(compile(text, f"<{generator.pypath}>", "exec"), vars(module))
    ptx = Path(path).read_bytes().rstrip(b"\0").decode()
    known = vars(module)
    generator.pymodule = module
    code = known["_code"]
    generator.culib = host.Library(ptx, code, _file(code), known["_clusters"], frozenset(known["_cooperative"]))


def _marked(own: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a tensor of unknown device as a tensor of the GPU."""

    def forward(kernel: Any, *arguments: Any, **keywords: Any) -> Any:
        from ..torch.marks import mark_all

        mark_all(arguments)
        return own(kernel, *arguments, **keywords)

    return forward
