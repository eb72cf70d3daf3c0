from cuda.core import LEGACY_DEFAULT_STREAM as LEGACY_DEFAULT_STREAM
from cuda.core import PER_THREAD_DEFAULT_STREAM as PER_THREAD_DEFAULT_STREAM
from cuda.core import Buffer as Buffer
from cuda.core import DeviceMemoryResource as DeviceMemoryResource
from cuda.core import DeviceMemoryResourceOptions as DeviceMemoryResourceOptions
from cuda.core import Event as Event
from cuda.core import EventOptions as EventOptions
from cuda.core import Kernel as Kernel
from cuda.core import LaunchConfig as LaunchConfig
from cuda.core import Linker as Linker
from cuda.core import LinkerOptions as LinkerOptions
from cuda.core import ObjectCode as ObjectCode
from cuda.core import Program as Program
from cuda.core import ProgramOptions as ProgramOptions
from cuda.core import Stream as Stream
from cuda.core import StreamOptions as StreamOptions

from . import barrier as barrier
from . import codec as codec
from . import emulate as emulate
from . import enums as enums
from . import graph as graph
from . import hang as hang
from . import kernel_parameters as kernel_parameters
from . import layouts as layouts
from . import params as params
from . import plot as plot
from . import rules as rules
from . import simulate as simulate
from . import smem as smem
from . import testing as testing
from . import torch as torch
from ._compile_kernel import compile as compile
from ._convolution import Convolution as Convolution
from ._device import Device as Device
from ._errors import CompileError as CompileError
from ._errors import TensorMapError as TensorMapError
from ._errors import TensorMapFault as TensorMapFault
from ._include_path import include_path as include_path
from ._launch.launch import launch as launch
from ._launch.prepared import PreparedLaunch as PreparedLaunch
from ._launch.prepared import prepare as prepare
from ._make.array import TensorMapArray as TensorMapArray
from ._make.array import create_tensor_maps as create_tensor_maps
from ._make.create import create_tensor_map as create_tensor_map
from ._options import TensorMapIm2colOptions as TensorMapIm2colOptions
from ._options import TensorMapIm2colWideOptions as TensorMapIm2colWideOptions
from ._options import TensorMapOptions as TensorMapOptions
from ._params_of import TensorSpec as TensorSpec
from ._params_of import params_of as params_of
from ._suggest import Suggestion as Suggestion
from ._suggest import suggest as suggest
from ._tensor_map import TensorMapDescriptor as TensorMapDescriptor
from ._version import __version__ as __version__
from ._view import StridedMemoryView as StridedMemoryView
from ._watchdog.deadlines import arm_watchdog as arm_watchdog
from ._watchdog.deadlines import synchronize as synchronize
from .codec import decode as decode
from .codec import diff as diff
from .codec import encode as encode
from .enums import TensorMapDataType as TensorMapDataType
from .enums import TensorMapIm2ColWideMode as TensorMapIm2ColWideMode
from .enums import TensorMapInterleave as TensorMapInterleave
from .enums import TensorMapL2Promotion as TensorMapL2Promotion
from .enums import TensorMapOOBFill as TensorMapOOBFill
from .enums import TensorMapSwizzle as TensorMapSwizzle
from .hang import KernelHang as KernelHang
from .kernel_parameters import parameters_of as parameters_of
from .params import Im2colParams as Im2colParams
from .params import Im2colWideParams as Im2colWideParams
from .params import TiledParams as TiledParams
from .rules import check as check

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

TensorMapDescriptorOptions = TensorMapOptions
