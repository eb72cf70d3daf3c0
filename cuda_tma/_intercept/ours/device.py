"""The class ``cuda_tma.Device`` for the simulated GPU, with its streams and its memory."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Buffer", "Stream", "devices"]


class _Capability(NamedTuple):
    major: int
    minor: int


class Stream:
    """A stream on which each launch is complete when the call returns."""

    handle = 0
    is_nonblocking = False

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, 0)

    def sync(self) -> None:
        """Return at once, because each launch is complete."""

    def close(self) -> None:
        """Do nothing, because the stream has no resources."""

    def wait(self, event_or_stream: Any) -> None:
        """Return at once, because each event is complete."""

    def record(self, event: Any = None, options: Any = None) -> Any:
        """Return the given event, which is already complete."""
        return SimpleNamespace(sync=lambda: None, is_done=True) if event is None else event


class Buffer:
    """Memory of the simulated GPU, which is a NumPy array of bytes of this machine.

    Parameters
    ----------
    data : numpy.ndarray of uint8
    address : int
        The address of the first byte on the simulated GPU.
    """

    def __init__(self, data: np.ndarray, address: int):
        self._data, self.handle, self.size = data, address, data.size

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._data.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._data.__dlpack_device__()

    def close(self, stream: Any = None) -> None:
        """Do nothing, because the memory is freed together with the object."""


class _Device:
    """The simulated GPU, with the attributes of ``cuda.core.Device`` that scripts use."""

    device_id = 0
    default_stream = Stream()
    _session: Any
    _create_tensor_map: Callable[..., Any]

    def __init__(self, device_id: int | None = None):
        if device_id:
            raise ValueError(f"device_id={device_id}, but cuda-tma simulates only one GPU; pass device_id=0")

    @classmethod
    def get_all_devices(cls) -> tuple[Any, ...]:
        """Return a tuple that contains the only device."""
        return (cls(),)

    def set_current(self, ctx: Any = None) -> None:
        """Do nothing, because there is only one device."""

    def create_stream(self, obj: Any = None, options: Any = None) -> Stream:
        """Return a stream of the simulated GPU."""
        return Stream()

    def allocate(self, size: int, *, stream: Any = None) -> Buffer:
        """Return memory of the simulated GPU that contains zeros."""
        data = np.zeros(size, np.uint8)
        return Buffer(data, self._session.device.address(data))

    def sync(self) -> None:
        """Return at once, because each launch is complete."""

    def create_tensor_map(self, tensor: Any, options: Any = None, **keywords: Any) -> Any:
        """Return a tensor map that describes an array."""
        return self._create_tensor_map(tensor, options, **keywords)


def devices(session: Any, create_tensor_map: Callable[..., Any]) -> type:
    """Return the class that replaces ``cuda_tma.Device``."""
    major, minor = session.device.compute_capability
    known = {
        "_session": session,
        "_create_tensor_map": staticmethod(create_tensor_map),
        "compute_capability": _Capability(major, minor),
        "arch": f"{major}{minor}",
        "name": f"simulated GPU of compute capability {major}.{minor}",
        "properties": SimpleNamespace(multiprocessor_count=session.device.multiprocessor_count, warp_size=32),
    }
    return type("Device", (_Device,), known)
