"""cuda_tma: TMA tensor maps for cuda.core."""

from .enums import *  # noqa: F403
from .errors import *  # noqa: F403
from .params import *  # noqa: F403
