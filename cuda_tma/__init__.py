"""TMA tensor maps for cuda.core.

``__all__`` contains the most common names. The public modules contain the other names.

Python imports the modules and cuda.core only on first use of an attribute, so that ``import cuda_tma`` is fast.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from ._compile_kernel import compile
from ._convolution import Convolution
from ._device import Device
from ._errors import CompileError, TensorMapError, TensorMapFault
from ._include_path import include_path
from ._launch.launch import launch
from ._launch.prepared import PreparedLaunch, prepare
from ._make.array import TensorMapArray, create_tensor_maps
from ._make.create import create_tensor_map
from ._options import TensorMapIm2colOptions, TensorMapIm2colWideOptions, TensorMapOptions
from ._params_of import TensorSpec, params_of
from ._suggest import Suggestion, suggest
from ._tensor_map import TensorMapDescriptor
from ._version import __version__
from ._view import StridedMemoryView
from ._watchdog.deadlines import arm_watchdog, synchronize
from .codec import decode, encode
from .enums import TensorMapDataType, TensorMapSwizzle
from .hang import KernelHang
from .kernel_parameters import parameters_of
from .rules import check

__all__ = [
    "CompileError",
    "Convolution",
    "Device",
    "KernelHang",
    "PreparedLaunch",
    "StridedMemoryView",
    "Suggestion",
    "TensorMapArray",
    "TensorMapDataType",
    "TensorMapDescriptor",
    "TensorMapError",
    "TensorMapFault",
    "TensorMapIm2colOptions",
    "TensorMapIm2colWideOptions",
    "TensorMapOptions",
    "TensorMapSwizzle",
    "TensorSpec",
    "__version__",
    "arm_watchdog",
    "check",
    "compile",
    "create_tensor_map",
    "create_tensor_maps",
    "decode",
    "encode",
    "include_path",
    "launch",
    "parameters_of",
    "params_of",
    "prepare",
    "suggest",
    "synchronize",
]

_MODULES = [
    "barrier",
    "codec",
    "emulate",
    "enums",
    "graph",
    "hang",
    "kernel_parameters",
    "layouts",
    "params",
    "plot",
    "rules",
    "simulate",
    "smem",
    "testing",
    "torch",
]
# Programs may import the names in _ELSEWHERE from cuda_tma, although other modules define the names.
_ELSEWHERE = {
    "cuda_tma.codec": ("diff",),
    "cuda_tma.enums": ("TensorMapIm2ColWideMode", "TensorMapInterleave", "TensorMapL2Promotion", "TensorMapOOBFill"),
    "cuda_tma.params": ("Im2colParams", "Im2colWideParams", "TiledParams"),
    "cuda.core": (
        "LEGACY_DEFAULT_STREAM",
        "PER_THREAD_DEFAULT_STREAM",
        "Buffer",
        "DeviceMemoryResource",
        "DeviceMemoryResourceOptions",
        "Event",
        "EventOptions",
        "Kernel",
        "LaunchConfig",
        "Linker",
        "LinkerOptions",
        "ObjectCode",
        "Program",
        "ProgramOptions",
        "Stream",
        "StreamOptions",
    ),
}
_HOMES = {name: module for module, names in _ELSEWHERE.items() for name in names}


def __getattr__(name: str) -> _Any:
    # Programs that use cuda.core import the options under the name TensorMapDescriptorOptions.
    if name == "TensorMapDescriptorOptions":
        return TensorMapOptions
    if name in _HOMES:
        return getattr(_import_module(_HOMES[name]), name)
    if name in _MODULES:
        try:
            return _import_module(f"cuda_tma.{name}")
        except ModuleNotFoundError as error:
            raise AttributeError(f"cuda_tma.{name} needs {error.name}, which is not installed") from error
    raise AttributeError(f"module 'cuda_tma' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES, "__doc__", "__file__", "__name__", "__path__"])
