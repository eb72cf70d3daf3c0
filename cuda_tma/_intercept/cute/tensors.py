"""Torch tensors as arguments of CuTe DSL and of TVM FFI, which read their address from DLPack.

The adapter replaces this address by the address on the GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

__all__ = ["TorchOfTvm", "with_gpu_address"]

_CUDA = 2  # _CUDA is the value of kDLCUDA in DLPack.
_NAME = b"dltensor"


class _Start(ctypes.Structure):
    """The first fields of the structure DLManagedTensor."""

    _fields_ = (("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32))


class _OnGpu:
    """A tensor whose DLPack object has the address and the device of the GPU."""

    def __init__(self, tensor: Any):
        self._tensor = tensor

    def __getattr__(self, name: str) -> Any:
        if name == "__dlpack_c_exchange_api__":  # A function in C, which takes only tensors of torch.
            raise AttributeError(name)
        return getattr(self._tensor, name)

    def __dlpack__(self, stream: int | None = None) -> Any:
        return _capsule(self._tensor)


class TorchOfTvm:
    """A replacement of the module torch in TVM FFI's module of arguments.

    The DLPack object of a tensor has the address of the GPU.
    """

    def __init__(self, torch: Any):
        self._torch = torch
        self.utils = SimpleNamespace(dlpack=SimpleNamespace(to_dlpack=_argument))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._torch, name)


def _capsule(tensor: Any) -> Any:
    """Return the DLPack object of a tensor, with the address and the device of the GPU."""
    capsule = tensor.__dlpack__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    start = _Start.from_address(pointer_of(capsule, _NAME) or 0)
    start.data, start.device_type, start.device_id = tensor.data_ptr(), _CUDA, 0
    return capsule


def _argument(tensor: Any) -> Any:
    return _capsule(tensor) if tensor.is_cuda and tensor.numel() else tensor.__dlpack__()


def with_gpu_address(begin: Callable[..., None]) -> Callable[..., None]:
    """Return the constructor of CuTe DSL's tensors that also accepts tensors with the mark of torch's adapter."""

    def begin_on_gpu(self: Any, tensor: Any, *arguments: Any, **keywords: Any) -> None:
        is_marked = type(tensor).__module__.partition(".")[0] == "torch" and tensor.is_cuda and tensor.numel()
        begin(self, _OnGpu(tensor) if is_marked else tensor, *arguments, **keywords)

    return begin_on_gpu
