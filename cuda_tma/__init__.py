"""cuda_tma: TMA tensor maps for cuda.core."""

from ._kernel_arg import launch
from ._tensor_map import TensorMapDescriptor
from .device import Device
from .enums import *  # noqa: F403
from .errors import *  # noqa: F403
from .options import *  # noqa: F403
from .params import *  # noqa: F403
from .view import *  # noqa: F403
