"""Examples on the fake driver: tensors of the host, which it takes for its own, and kernels that do nothing."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from cuda import core

import cuda_tma
from benchmarks.kernels import example
from cuda_tma._read.dlpack import describe_tensor

from .compiled_kernels import compiled_kernel

__all__ = ["hosted_example"]


def hosted_example(name, driver, monkeypatch, source=None):
    """The example's module; with another `source` of its kernel, where one is given."""
    module = example(name)
    if source is not None:
        monkeypatch.setattr(module, "SOURCE", source)
    monkeypatch.setattr(module, "torch", SimpleNamespace(**{**vars(torch), **_FACTORIES}))
    fakes = {"Device": _Device, "compile": lambda *args, **asked: _Kernel(compiled_kernel(driver, *args, **asked))}
    fakes |= {"parameters_of": lambda kernel: cuda_tma.parameters_of(kernel.kernel)}
    fakes |= {door: _with_described(getattr(cuda_tma, door)) for door in ("create_tensor_map", "launch", "prepare")}
    fakes |= {"create_tensor_maps": lambda tensors, options: _Maps(tensors, options)}
    monkeypatch.setattr(module, "cuda_tma", SimpleNamespace(**{**vars(cuda_tma), **fakes}))
    # cuda.core asks a device about clusters, which is not there.
    monkeypatch.setattr(module, "LaunchConfig", lambda cluster=None, **fields: core.LaunchConfig(**fields))
    return module


def described(value):
    """A tensor as one of the device; anything else as it is."""
    if isinstance(value, _Kernel):
        return value.kernel
    if not isinstance(value, torch.Tensor):
        return value
    dtype = str(value.dtype).removeprefix("torch.")
    return describe_tensor(tuple(value.shape), value.stride(), dtype, value.data_ptr(), device_id=0)


def _with_described(door):
    return lambda *args, **options: door(*map(described, args), **options)


def _on_host(make):
    return lambda *args, device=None, **options: make(*args, **options)


_NAMES = ("empty", "full", "rand", "randint", "randn", "tensor", "zeros")
_FACTORIES = {name: _on_host(getattr(torch, name)) for name in _NAMES}


class _Device:
    """The device of the fake driver."""

    properties = SimpleNamespace(multiprocessor_count=2)

    def __init__(self):
        self.default_stream = core.Stream.from_handle(0x1000)

    def set_current(self):
        pass

    create_tensor_map = staticmethod(_with_described(cuda_tma.create_tensor_map))


class _Kernel:
    """What the examples ask of a kernel."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.occupancy = SimpleNamespace(max_active_blocks_per_multiprocessor=lambda threads, smem_bytes: 1)


class _Maps:
    """An array of maps, which are made, and its address after the upload."""

    def __init__(self, tensors, options):
        self.maps = cuda_tma.create_tensor_maps([*map(described, tensors)], options)

    def upload(self, stream):
        return 1 << 33
