"""A driver of Triton whose device is the simulated GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton.backends.compiler import GPUTarget

from .launcher import WARP, launcher_of
from .lines import with_lines_of_calls

__all__ = ["Driver"]

_REGISTERS = 64  # The number of registers is always 64, because only ptxas computes the real number.


class Driver:
    """The methods of a driver that Triton calls, and the methods that scripts use.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Any):
        self._session = session
        self.utils = _Utils(session.device)
        self.launcher_cls = launcher_of(session)

    @staticmethod
    def is_active() -> bool:
        """Return True, because this driver is active."""
        return True

    def get_current_target(self) -> GPUTarget:
        """Return the compute capability of the session."""
        major, minor = self._session.device.compute_capability
        return GPUTarget("cuda", major * 10 + minor, WARP)

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        """Return the compute capability of the session."""
        return self._session.device.compute_capability

    def get_current_device(self) -> int:
        """Return 0, the number of the only device."""
        return 0

    def set_current_device(self, device: int) -> None:
        """Do nothing, because there is only one device."""

    def get_current_stream(self, device: int = 0) -> int:
        """Return the default stream."""
        return 0

    def get_active_torch_device(self) -> Any:
        """Return ``cuda:0``, the only device."""
        import torch

        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        """Return the module ``torch.cuda``."""
        import torch

        return torch.cuda

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Return the C++ type of an argument, as Triton's own driver does."""
        from triton.backends.nvidia import driver

        return driver.ty_to_cpp(ty)

    def assemble_tensormap_to_arg(self, tensormaps_info: Any, args: Any) -> Any:
        """Return the arguments unchanged."""
        return args

    def get_benchmarker(self) -> Callable[..., Any]:
        """Return Triton's `do_bench`, which an adapter has replaced."""
        from triton.testing import do_bench

        return do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        """Return an empty tensor, because the simulated GPU has no cache to clear."""
        import torch

        return torch.empty(0, dtype=torch.int, device="cuda")

    def clear_cache(self, cache: Any) -> None:
        """Do nothing, because the simulated GPU has no cache."""


class _Utils:
    """A replacement of Triton's compiled `cuda_utils`."""

    def __init__(self, device: Any):
        self._device = device

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, Any, int, int, int]:
        """Return a module, a function, its numbers of registers and spills, and the largest number of threads
        of a CTA."""
        ptx = kernel.decode() if isinstance(kernel, bytes) else kernel
        return object(), (name, with_lines_of_calls(ptx)), _REGISTERS, 0, 1024

    def unload_module(self, module: Any) -> None:
        """Do nothing, because the session keeps kernels."""

    def get_device_properties(self, device: int = 0) -> dict[str, int]:
        """Return the properties that Triton and its tutorials read."""
        major, _ = self._device.compute_capability
        return {
            "max_shared_mem": (99 if major == 12 else 227) << 10,
            "max_num_regs": 65536,
            "multiprocessor_count": self._device.multiprocessor_count,
            "warpSize": WARP,
            "sm_clock_rate": 1_000_000,
            "mem_clock_rate": 1_000_000,
            "mem_bus_width": 1024,
            "max_threads_per_sm": 1536 if major == 12 else 2048,
        }

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        """Return the compute capability of the session."""
        return self._device.compute_capability

    def get_current_device(self) -> int:
        """Return 0, the number of the only device."""
        return 0

    def set_current_device(self, device: int) -> None:
        """Do nothing, because there is only one device."""

    def get_default_stream(self, device: int = 0) -> int:
        """Return the default stream."""
        return 0

    def is_stream_capturing(self, stream: int) -> bool:
        """Return False, because the adapter does not support graphs."""
        return False

    def cuOccupancyMaxActiveClusters(self, *_: Any) -> int:
        """Return one cluster for each multiprocessor."""
        return self._device.multiprocessor_count

    def set_printf_fifo_size(self, size: int) -> None:
        """Do nothing, because the simulator does not limit the output of a launch in this way."""
