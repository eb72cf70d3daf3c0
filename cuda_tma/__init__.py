"""cuda_tma: TMA tensor maps for cuda.core."""

from . import emulate
from ._array import TensorMapArray, create_tensor_maps
from ._launch import PreparedLaunch, launch, prepare
from ._tensor_map import TensorMapDescriptor, create_tensor_map
from .codec import decode, encode
from .device import Device
from .diff import FieldDifference, diff
from .enums import *  # noqa: F403
from .errors import *  # noqa: F403
from .include_path import include_path
from .options import *  # noqa: F403
from .params import *  # noqa: F403
from .rules import Violation, check
from .suggest import Suggestion, suggest
from .view import *  # noqa: F403
