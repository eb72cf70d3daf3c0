"""cuda_tma: TMA tensor maps for cuda.core."""

from . import emulate
from ._kernel_arg import launch
from ._tensor_map import TensorMapDescriptor
from .codec import decode, encode
from .device import Device
from .enums import *  # noqa: F403
from .errors import *  # noqa: F403
from .include_path import include_path
from .options import *  # noqa: F403
from .params import *  # noqa: F403
from .rules import Violation, check
from .view import *  # noqa: F403
