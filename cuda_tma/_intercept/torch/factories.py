"""The functions of torch that create tensors. A tensor of ``device="cuda"`` is in this machine's memory, and has the
GPU's mark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _device

from ..patches import Patches
from .marks import is_cuda_device, mark, mark_all, on_gpu

__all__ = ["install"]

_LIKE = ("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like")
# The functions in _ALIASES may return a tensor that shares the memory of the argument.
_ALIASES = ("as_tensor", "asarray")


def install(patches: Patches) -> None:
    """Replace the factories of torch, ``torch.Generator``, ``torch.load``, and the default device."""
    constructors = _device._device_constructors()
    for owner in (torch, torch.fft, torch.sparse, torch.nested):
        for name, own in [*vars(owner).items()]:
            if callable(own) and _is_in(own, constructors):
                patches.replace(owner, name, _factory(own, name))
    for name in _LIKE:
        patches.replace(torch, name, _like(getattr(torch, name), name))
    patches.replace(_device.DeviceContext, "__torch_function__", _in_context)
    patches.replace(torch, "Generator", _Generator)
    patches.replace(torch, "load", _load(torch.load))


def _is_in(function: Any, functions: Any) -> bool:
    try:
        return function in functions
    except TypeError:  # A device that Python cannot hash raises TypeError.
        return False


def _factory(own: Callable[..., Any], name: str) -> Callable[..., Any]:
    def factory(*arguments: Any, device: Any = None, **keywords: Any) -> Any:
        if device is None:
            return own(*arguments, **keywords)
        if is_cuda_device(device):
            keywords.pop("pin_memory", None)
            return _on_gpu(own(*arguments, device="cpu", **keywords), name in _ALIASES)
        if name == "asarray" or torch.device(device).type != "cpu":
            return own(*arguments, device=device, **keywords)
        is_pinned = keywords.pop("pin_memory", False)
        made = own(*arguments, device=device, **keywords)
        if name in _ALIASES:
            return made.cpu()
        return mark(made, False).pin_memory() if is_pinned else mark(made, False)

    factory.__name__ = factory.__qualname__ = name
    factory.__doc__ = own.__doc__
    return factory


def _on_gpu(made: Any, may_be_alias: bool) -> Any:
    if may_be_alias and not on_gpu(made):
        made = made.clone()
    return mark(made)


def _like(own: Callable[..., Any], name: str) -> Callable[..., Any]:
    def like(tensor: Any, *arguments: Any, device: Any = None, **keywords: Any) -> Any:
        to_gpu = on_gpu(tensor) if device is None else is_cuda_device(device)
        if device is not None and torch.device(device).type not in ("cpu", "cuda"):
            return own(tensor, *arguments, device=device, **keywords)
        keywords.pop("pin_memory", None)
        made = own(tensor, *arguments, **keywords)
        return made if to_gpu is None else mark(made, to_gpu)

    like.__name__ = like.__qualname__ = name
    like.__doc__ = own.__doc__
    return like


def _in_context(context: Any, function: Any, types: Any, arguments: tuple = (), keywords: dict | None = None) -> Any:
    """Replace ``DeviceContext.__torch_function__`` for ``torch.set_default_device`` and ``with torch.device``."""
    given = dict(keywords or {})
    if given.get("device") is not None or not _is_in(function, _device._device_constructors()):
        return function(*arguments, **given)
    if not is_cuda_device(context.device):
        return function(*arguments, **{**given, "device": context.device})
    name = getattr(function, "__name__", "")
    return _on_gpu(function(*arguments, **{**given, "device": "cpu"}), name in _ALIASES)


_Own: Any = torch._C.Generator
_OwnType: Any = type(_Own)


class _GeneratorType(_OwnType):
    """A metaclass that also accepts torch's own generators as instances."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _Own)


class _Generator(_Own, metaclass=_GeneratorType):
    """A generator that runs on the CPU, and that reports the device from the script."""

    _is_gpu: bool

    def __new__(cls, device: Any = "cpu") -> Any:
        is_gpu = is_cuda_device(device)
        made = super().__new__(cls, "cpu" if is_gpu else device)
        made._is_gpu = is_gpu
        return made

    def __init__(self, device: Any = "cpu"):
        pass

    @property
    def device(self) -> Any:
        """Return the device that the script passed."""
        return torch.device("cuda", 0) if self._is_gpu else super().device


def _load(own: Callable[..., Any]) -> Callable[..., Any]:
    def load(*arguments: Any, map_location: Any = None, **keywords: Any) -> Any:
        if not isinstance(map_location, (str, torch.device)) or not is_cuda_device(map_location):
            return own(*arguments, map_location=map_location, **keywords)
        loaded = own(*arguments, map_location="cpu", **keywords)
        mark_all([loaded])
        return loaded

    return load
