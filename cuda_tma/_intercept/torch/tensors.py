"""The methods and properties of tensors that depend on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..patches import Patches
from .marks import GPU, MARK, is_cuda_device, mark, on_gpu

__all__ = ["install"]

_TYPES = {f"torch.cuda.{name}": f"torch.{name}" for name in vars(torch.cuda) if name.endswith("Tensor")}
_Base = torch._C.TensorBase
_PINNED = "_cuda_tma_is_pinned"  # The attribute _PINNED marks a storage as pinned memory.


def install(patches: Patches, address: Callable[[Any], int]) -> None:
    """Make tensors report the marks of the simulated GPU.

    Parameters
    ----------
    patches : Patches
    address : callable
        The function that returns the GPU's address of a tensor's first element.
    """
    replaced: dict[str, Any] = {
        "device": property(_device),
        "is_cuda": property(lambda tensor: _device(tensor).type == "cuda"),
        "is_cpu": property(lambda tensor: _device(tensor).type == "cpu"),
        "get_device": lambda tensor: 0 if on_gpu(tensor) else _Base.get_device(tensor),
        "to": _to,
        "cuda": _cuda,
        "cpu": _cpu,
        "type": _type,
        "pin_memory": lambda tensor, device=None: _pinned(tensor),
        "is_pinned": lambda tensor, device=None: _is_pinned(tensor),
        "record_stream": lambda tensor, stream: None,
        "data_ptr": lambda tensor: _data_ptr(tensor, address),
        "numpy": _numpy,
        "__dlpack_device__": _dlpack_device,
        "share_memory_": _share_memory,
    }
    for name, value in replaced.items():
        if callable(value):
            setattr(value, "__name__", name)  # noqa: B010 (for mypy, a lambda has no __name__)
        patches.replace(torch.Tensor, name, value)
    for name in ("new_empty", "new_zeros", "new_ones", "new_full", "new_tensor", "new_empty_strided"):
        patches.replace(torch.Tensor, name, _new(name))
    patches.replace(torch.UntypedStorage, "cpu", lambda storage: _moved_storage(storage, False))
    patches.replace(
        torch.UntypedStorage, "cuda", lambda storage, device=None, non_blocking=False: _moved_storage(storage, True)
    )


def _moved_storage(storage: Any, to_gpu: bool) -> Any:
    """Return a storage on a device. Return the same storage if it is on the device, or else a copy."""
    if bool(getattr(storage, MARK, False)) == to_gpu:
        return storage
    moved = storage.clone()
    setattr(moved, MARK, to_gpu)
    return moved


def _device(tensor: Any) -> torch.device:
    if on_gpu(tensor):
        return GPU
    with torch._C.DisableTorchFunction():
        return _Base.device.__get__(tensor)


def _moved(tensor: Any, to_gpu: bool, **keywords: Any) -> Any:
    """Return a tensor on a device. The result is the same tensor if nothing changes, or else a copy."""
    if bool(on_gpu(tensor)) == to_gpu:
        return _Base.to(tensor, **keywords) if keywords else tensor
    keywords["copy"] = True
    moved = _Base.to(tensor, **keywords)
    return mark(moved.contiguous() if moved is tensor else moved, to_gpu)


def _to(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
    """Convert a tensor as ``Tensor.to`` does, in each form of its arguments: a device, a type, both, or another
    tensor."""
    if (arguments and isinstance(arguments[0], torch.Tensor)) or "other" in keywords:
        other = keywords.pop("other") if "other" in keywords else arguments[0]
        rest = arguments if arguments and arguments[0] is not other else arguments[1:]
        return _to(tensor, other.device, other.dtype, *rest, **keywords)
    given = [*arguments]
    device = keywords.pop("device", None)
    if given and (given[0] is None or isinstance(given[0], (str, int, torch.device))):
        device = given.pop(0)
    names = (
        ("dtype", "non_blocking", "copy") if not given or not isinstance(given[0], bool) else ("non_blocking", "copy")
    )
    keywords.update(zip(names, given, strict=False))
    if keywords.get("dtype", ...) is None:
        del keywords["dtype"]
    if device is None:
        return _Base.to(tensor, **keywords) if keywords else tensor
    if torch.device(device).type not in ("cpu", "cuda"):
        return _Base.to(tensor, device, **keywords)
    keywords.pop("non_blocking", None)
    return _moved(tensor, is_cuda_device(device), **keywords)


def _cuda(tensor: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
    if device is not None:
        is_cuda_device(device)
    return _moved(tensor, True, **({} if memory_format is None else {"memory_format": memory_format}))


def _cpu(tensor: Any, memory_format: Any = None) -> Any:
    return _moved(tensor, False, **({} if memory_format is None else {"memory_format": memory_format}))


def _type(tensor: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    if dtype is None:
        name = _Base.type(tensor)
        return name.replace("torch.", "torch.cuda.", 1) if on_gpu(tensor) and name not in _TYPES else name
    name = dtype if isinstance(dtype, str) else f"{getattr(dtype, '__module__', '')}.{getattr(dtype, '__name__', '')}"
    if name in _TYPES:
        return _moved(_Base.type(tensor, _TYPES[name]), True)
    return _Base.type(tensor, dtype)


def _pinned(tensor: Any) -> Any:
    """Return a copy of a tensor whose storage has the mark of page-locked memory, so that a kernel may access it."""
    copied = _Base.clone(tensor)
    mark(copied, False)
    setattr(copied.untyped_storage(), _PINNED, True)
    return copied


def _is_pinned(tensor: Any) -> bool:
    return getattr(tensor.untyped_storage(), _PINNED, False)


def _data_ptr(tensor: Any, address: Callable[[Any], int]) -> int:
    if not on_gpu(tensor) or not tensor.numel():
        return _Base.data_ptr(tensor)
    with torch._C.DisableTorchFunction():
        return address(tensor)


def _numpy(tensor: Any, *, force: bool = False) -> Any:
    if on_gpu(tensor) and not force:
        raise TypeError(
            "can't convert cuda:0 device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first."
        )
    return _Base.numpy(tensor, force=force)


def _dlpack_device(tensor: Any) -> tuple[Any, int]:
    from torch.utils.dlpack import DLDeviceType

    return (DLDeviceType.kDLCPU, 0)


def _share_memory(tensor: Any) -> Any:
    return tensor if on_gpu(tensor) else tensor._typed_storage()._share_memory_() and tensor


def _new(name: str) -> Callable[..., Any]:
    own = getattr(_Base, name)

    def new(tensor: Any, *arguments: Any, device: Any = None, **keywords: Any) -> Any:
        to_gpu = bool(on_gpu(tensor)) if device is None else is_cuda_device(device)
        if device is not None and not to_gpu and torch.device(device).type != "cpu":
            keywords["device"] = device
        keywords.pop("pin_memory", None)
        return mark(own(tensor, *arguments, **keywords), to_gpu)

    new.__name__ = name
    return new
