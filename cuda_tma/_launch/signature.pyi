from cuda.core import Kernel
from typing_extensions import disjoint_base

from .._read.weak_cache import Known
from .mangled import ParameterType

@disjoint_base
class Signature(Known):
    @property
    def name(self) -> str: ...
    @property
    def types(self) -> tuple[ParameterType, ...] | None: ...
    @property
    def dynamic_shared_bytes(self) -> int: ...

def types_of(kernel: Kernel) -> tuple[ParameterType, ...] | None: ...
def layout_of(kernel: Kernel) -> tuple[tuple[int, int], ...]: ...
