"""The marks of the tensors that are on the simulated GPU.

The data of every tensor is in this machine's memory. A mark belongs to the storage of a tensor, so that all views of
the tensor share the mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

__all__ = ["GPU", "MARK", "is_cuda_device", "mark", "mark_all", "on_gpu", "tensors_in"]

GPU = torch.device("cuda", 0)
MARK = "_cuda_tma_is_on_gpu"  # The attribute MARK marks a storage as memory of the simulated GPU.
_untyped_storage = torch._C.TensorBase.untyped_storage


def is_cuda_device(device: Any) -> bool:
    """Return whether a device argument of a script refers to the GPU.

    Raises
    ------
    RuntimeError
        If the device is a GPU other than the first GPU. The text is that of CUDA.
    """
    if isinstance(device, torch.device):
        kind: str = device.type
        index: int | None = device.index
    elif isinstance(device, str):
        kind, _, number = device.partition(":")
        index = int(number) if number.isdigit() else None
    elif isinstance(device, int) and not isinstance(device, bool):
        kind, index = "cuda", device
    else:
        return False
    if kind == "cuda" and (index or 0) > 0:
        raise RuntimeError(
            f"CUDA error: invalid device ordinal: cuda:{index}, because cuda-tma simulates only one GPU; use cuda:0"
        )
    return kind == "cuda"


def on_gpu(tensor: Any) -> bool | None:
    """Return whether a tensor is on the GPU, or None if that is unknown. An unknown tensor counts as a tensor of the
    CPU.
    """
    try:
        with torch._C.DisableTorchFunction():
            storage = _untyped_storage(tensor)
    except (NotImplementedError, RuntimeError):  # Sparse tensors, and tensors of some subclasses, have no storage.
        return None
    return getattr(storage, MARK, None)


def mark(tensor: Any, is_gpu: bool = True) -> Any:
    """Mark a tensor, and thereby all views of the tensor. Return the tensor."""
    for part in _dense_parts(tensor):
        with torch._C.DisableTorchFunction():
            setattr(_untyped_storage(part), MARK, is_gpu)
    return tensor


def _dense_parts(tensor: Any) -> Iterator[Any]:
    if tensor.layout is torch.strided and tensor.device.type != "meta":
        yield tensor


def tensors_in(value: Any) -> Iterator[Any]:
    """Yield the tensors in an argument or a result, which is a tensor, or a list, tuple or mapping of tensors."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for element in value:
            yield from tensors_in(element)
    elif isinstance(value, dict):
        for element in value.values():
            yield from tensors_in(element)


def mark_all(values: Iterable[Any]) -> None:
    """Mark each unmarked tensor as a tensor of the GPU."""
    for tensor in tensors_in(list(values)):
        if on_gpu(tensor) is None:
            mark(tensor)
