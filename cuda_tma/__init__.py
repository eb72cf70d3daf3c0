"""cuda_tma: TMA tensor maps for cuda.core. These are the public names.

Those of cuda.core that scripts on tensor maps import beside its own are here too, as cuda.core has them.
"""

from cuda.core import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Buffer,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    Event,
    EventOptions,
    Kernel,
    LaunchConfig,
    Linker,
    LinkerOptions,
    ObjectCode,
    Program,
    ProgramOptions,
    Stream,
    StreamOptions,
)

from . import emulate, graph
from ._compile_kernel import compile
from ._convolution import Convolution
from ._device import Device
from ._errors import CompileError, TensorMapError, TensorMapFault
from ._include_path import include_path
from ._launch.launch import launch
from ._launch.prepared import PreparedLaunch, prepare
from ._make.array import TensorMapArray, create_tensor_maps
from ._make.create import create_tensor_map
from ._map_type import MapPointer, MapType
from ._options import (
    TensorMapDescriptorOptions,
    TensorMapIm2colOptions,
    TensorMapIm2colWideOptions,
    TensorMapOptions,
)
from ._params_of import TensorSpec, params_of
from ._show import html as html
from ._suggest import Suggestion, suggest
from ._tensor_map import TensorMapDescriptor
from ._version import __version__
from ._view import StridedMemoryView
from ._watchdog.deadlines import arm_watchdog, synchronize
from .barrier import Barrier, decode_barrier, encode_barrier
from .codec import FieldDifference, decode, diff, encode
from .enums import (
    TensorMapAllocationClass,
    TensorMapDataType,
    TensorMapIm2ColWideMode,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
)
from .hang import BarrierWait, Hang, KernelHang, MbarrierWait, Waiter
from .kernel_parameters import KernelParameter, KernelParameters, parameters_of
from .params import Im2colParams, Im2colWideParams, TiledParams
from .rules import Violation, check

__all__ = [
    "LEGACY_DEFAULT_STREAM",
    "PER_THREAD_DEFAULT_STREAM",
    "Barrier",
    "BarrierWait",
    "Buffer",
    "CompileError",
    "Convolution",
    "Device",
    "DeviceMemoryResource",
    "DeviceMemoryResourceOptions",
    "Event",
    "EventOptions",
    "FieldDifference",
    "Hang",
    "Im2colParams",
    "Im2colWideParams",
    "Kernel",
    "KernelHang",
    "KernelParameter",
    "KernelParameters",
    "LaunchConfig",
    "Linker",
    "LinkerOptions",
    "MapPointer",
    "MapType",
    "MbarrierWait",
    "ObjectCode",
    "PreparedLaunch",
    "Program",
    "ProgramOptions",
    "Stream",
    "StreamOptions",
    "StridedMemoryView",
    "Suggestion",
    "TensorMapAllocationClass",
    "TensorMapArray",
    "TensorMapDataType",
    "TensorMapDescriptor",
    "TensorMapDescriptorOptions",
    "TensorMapError",
    "TensorMapFault",
    "TensorMapIm2ColWideMode",
    "TensorMapIm2colOptions",
    "TensorMapIm2colWideOptions",
    "TensorMapInterleave",
    "TensorMapL2Promotion",
    "TensorMapOOBFill",
    "TensorMapOptions",
    "TensorMapSwizzle",
    "TensorSpec",
    "TiledParams",
    "Violation",
    "Waiter",
    "__version__",
    "arm_watchdog",
    "check",
    "compile",
    "create_tensor_map",
    "create_tensor_maps",
    "decode",
    "decode_barrier",
    "diff",
    "emulate",
    "encode",
    "encode_barrier",
    "graph",
    "include_path",
    "launch",
    "parameters_of",
    "params_of",
    "prepare",
    "suggest",
    "synchronize",
]
