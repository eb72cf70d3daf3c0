from collections.abc import Mapping
from typing import Any, Protocol

from cuda.core import GraphBuilder, Kernel, LaunchConfig, Stream
from typing_extensions import disjoint_base

class _CudaStream(Protocol):
    """A foreign stream: torch's, CuPy's, or anything else with the protocol."""

    def __cuda_stream__(self) -> tuple[int, int]: ...

def launch(
    stream: Stream | GraphBuilder | _CudaStream,
    config: LaunchConfig | Mapping[str, Any],
    kernel: Kernel,
    *args: object,
) -> None: ...

@disjoint_base
class PreparedLaunch:
    def __init__(self, kernel: Kernel, config: LaunchConfig | Mapping[str, Any], *args: object) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...
    def __setitem__(self, index: int, value: object, /) -> None: ...
    def __call__(self, stream: Stream | GraphBuilder | _CudaStream) -> None: ...

def prepare(kernel: Kernel, config: LaunchConfig | Mapping[str, Any], *args: object) -> PreparedLaunch: ...
