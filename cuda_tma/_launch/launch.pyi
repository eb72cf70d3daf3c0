from collections.abc import Mapping
from typing import Any, Protocol

from cuda.core import GraphBuilder, Kernel, LaunchConfig, Stream

class _CudaStream(Protocol):
    """A stream of torch, CuPy, or another library with the protocol ``__cuda_stream__``."""

    def __cuda_stream__(self) -> tuple[int, int]: ...

def launch(
    stream: Stream | GraphBuilder | _CudaStream,
    config: LaunchConfig | Mapping[str, Any],
    kernel: Kernel,
    *args: object,
) -> None: ...
