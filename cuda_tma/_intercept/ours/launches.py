"""Kernels, launches and tensor maps of cuda_tma on the simulated GPU of a session."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ...simulate._config import Config
from ...simulate._kernel import Kernel
from ...simulate._tensor_map import TensorMap

__all__ = ["Launches", "Prepared"]


class Launches:
    """The functions that replace those of cuda_tma below the command.

    Parameters
    ----------
    session : Session
    """

    # The class Config replaces LaunchConfig of cuda.core, because LaunchConfig asks the driver whether the GPU supports
    # clusters.
    config = Config

    def __init__(self, session: Any):
        self._session = session

    def compile(
        self,
        source: str | os.PathLike[str],
        name: str,
        *,
        defines: Mapping[str, object] | None = None,
        options: Sequence[str] | None = None,
        constants: Mapping[str, str] | None = None,
        cache: bool = True,
        logs: Any = None,
        watchdog_ms: int | None = None,
    ) -> Kernel:
        """Compile a kernel for the simulated GPU, as :func:`cuda_tma.compile` does for a device."""
        known = {"defines": defines, "options": options, "constants": constants}
        kernel: Kernel = self._session.device.compile(source, name, **known)
        self._session.keep(kernel)
        return kernel

    def launch(self, stream: Any, config: Any, kernel: Any, *arguments: Any) -> None:
        """Run a launch as :func:`cuda_tma.launch` does."""
        if not isinstance(kernel, Kernel):
            raise TypeError(
                f"the kernel is a {type(kernel).__name__}; in a program under cuda-tma sanitize, pass the result of "
                "cuda_tma.compile"
            )
        config = Config.of(config)
        self._session.launch(kernel.name, kernel.ptx, kernel.name, config, arguments, runtime="cuda_tma")

    def prepare(self, kernel: Any, config: Any, *arguments: Any) -> Prepared:
        """Return a launch that runs when it is called, as :func:`cuda_tma.prepare` does."""
        return Prepared(self, kernel, config, [*arguments])

    def create_tensor_map(self, tensor: Any, options: Any = None, **keywords: Any) -> TensorMap:
        """Return a tensor map of an array, as :func:`cuda_tma.create_tensor_map` does."""
        return self._session.device.create_tensor_map(tensor, options, **keywords)

    def create_tensor_maps(self, tensors: Sequence[Any], options: Any = None, **keywords: Any) -> list[TensorMap]:
        """Return a tensor map for each of several arrays."""
        return [self.create_tensor_map(tensor, options, **keywords) for tensor in tensors]


class Prepared:
    """A kernel with its configuration and its arguments.

    Parameters
    ----------
    launches : Launches
    kernel : Kernel
    config : Config
    arguments : list
        One argument for each parameter of the kernel. The program may replace each argument.
    """

    def __init__(self, launches: Launches, kernel: Any, config: Any, arguments: list[Any]):
        self._launches, self.kernel, self.config, self._arguments = launches, kernel, config, arguments

    def __len__(self) -> int:
        return len(self._arguments)

    def __getitem__(self, index: int) -> Any:
        return self._arguments[index]

    def __setitem__(self, index: int, value: Any) -> None:
        self._arguments[index] = value

    def __call__(self, stream: Any) -> None:
        self._launches.launch(stream, self.config, self.kernel, *self._arguments)
