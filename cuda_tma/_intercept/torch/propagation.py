"""The propagation of marks. The result of an operator is on the GPU if one of its arguments is on the GPU."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import function as autograd
from torch.overrides import TorchFunctionMode

from ..patches import Patches
from .accumulation import accumulated
from .marks import mark, on_gpu, tensors_in
from .scaled_mm import is_scaled, scaled_mm

__all__ = ["Propagation", "install"]


class Propagation(TorchFunctionMode):
    """A mode of torch that marks the results of operators. The operators run on the CPU."""

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Run an operator of torch, and mark the tensors that the operator created."""
        keywords = kwargs or {}
        result = scaled_mm(*args, **keywords) if is_scaled(func, args) else accumulated(func, args, keywords)
        if result is None or isinstance(result, (int, float, str, torch.Size, torch.dtype, torch.device)):
            return result
        fresh = [tensor for tensor in tensors_in(result) if on_gpu(tensor) is None]
        if fresh and _has_gpu((args, keywords)):
            given = {_storage(tensor) for tensor in tensors_in([args, keywords])}
            for tensor in fresh:
                if _storage(tensor) not in given:
                    mark(tensor)
        return result


def _has_gpu(arguments: Any) -> bool:
    return any(on_gpu(tensor) for tensor in tensors_in(arguments))


def _storage(tensor: Any) -> int:
    try:
        with torch._C.DisableTorchFunction():
            return tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        return 0


def install(patches: Patches) -> None:
    """Enter the mode in this thread, in each thread that starts later, and in users' backward functions."""
    Propagation().__enter__()
    patches.replace(threading.Thread, "start", _start(threading.Thread.start))
    for name in ("apply", "apply_boxed"):
        if hasattr(autograd.BackwardCFunction, name):
            patches.replace(autograd.BackwardCFunction, name, _backward(getattr(autograd.BackwardCFunction, name)))
    own: Any = torch.autograd.Function.apply
    patches.replace(torch.autograd.Function, "apply", classmethod(_forward(own.__func__)))


def _start(own: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(own)
    def start(thread: threading.Thread) -> None:
        run = thread.run

        def run_with_marks() -> None:
            with Propagation():
                run()

        thread.run = run_with_marks  # type: ignore[method-assign]
        own(thread)

    return start


def _forward(own: Callable[..., Any]) -> Callable[..., Any]:
    """Mark the results of ``Function.apply``, which torch does not treat as an operator. Store the device for the
    gradients.
    """

    @functools.wraps(own)
    def apply(cls: Any, *arguments: Any, **keywords: Any) -> Any:
        result = own(cls, *arguments, **keywords)
        if _has_gpu(arguments):
            for tensor in tensors_in(result):
                if on_gpu(tensor) is None:
                    mark(tensor)
                if tensor.grad_fn is not None:
                    tensor.grad_fn._cuda_tma_is_on_gpu = True
        return result

    return apply


def _backward(own: Callable[..., Any]) -> Callable[..., Any]:
    """Mark the gradients, which come from the autograd engine without a mark. Within an operator, the mode is off."""

    @functools.wraps(own)
    def apply(node: Any, *gradients: Any) -> Any:
        with Propagation():
            if getattr(node, "_cuda_tma_is_on_gpu", False):
                for tensor in tensors_in(list(gradients)):
                    if on_gpu(tensor) is None:
                        mark(tensor)
            return own(node, *gradients)

    return apply
