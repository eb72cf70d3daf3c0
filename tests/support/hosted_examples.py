"""The examples on the fake driver, which accepts host tensors as device tensors and does not run kernels."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from cuda import core

import cuda_tma
from benchmarks.kernels import example
from cuda_tma._make import device_memory
from cuda_tma._read.dlpack import describe_tensor
from tests.support.compiled_kernels import compiled_kernel


def hosted_example(name, driver, monkeypatch, source=None):
    """Return the module of an example. If `source` is given, replace the source of the example's kernel."""
    module = example(name)
    if source is not None:
        monkeypatch.setattr(module, "SOURCE", source)
    monkeypatch.setattr(module, "torch", SimpleNamespace(**{**vars(torch), **FACTORIES}))
    fakes = {"Device": _Device, "compile": lambda *args, **asked: _Kernel(compiled_kernel(driver, *args, **asked))}
    fakes |= {"parameters_of": lambda kernel: cuda_tma.parameters_of(kernel.kernel)}
    fakes |= {door: _with_described(getattr(cuda_tma, door)) for door in ("create_tensor_map", "launch", "prepare")}
    fakes |= {"create_tensor_maps": _create_tensor_maps}
    monkeypatch.setattr(module, "cuda_tma", SimpleNamespace(**{**vars(cuda_tma), **fakes}))
    monkeypatch.setattr(device_memory, "CoreDevice", _Memory)
    # LaunchConfig of cuda.core would query whether the device supports clusters, but these tests have no device.
    monkeypatch.setattr(module, "LaunchConfig", lambda cluster=None, **fields: core.LaunchConfig(**fields))
    return module


def described(value):
    """Return a tensor as a device tensor, and any other argument unchanged."""
    if isinstance(value, _Kernel):
        return value.kernel
    if isinstance(value, _Map):
        return value.descriptor
    if not isinstance(value, torch.Tensor):
        return value
    dtype = str(value.dtype).removeprefix("torch.")
    return describe_tensor(tuple(value.shape), value.stride(), dtype, value.data_ptr(), device_id=0)


def _with_described(door):
    return lambda *args, **options: door(*map(described, args), **options)


def _on_host(make):
    return lambda *args, device=None, **options: make(*args, **options)


_NAMES = ("empty", "full", "rand", "randint", "randn", "tensor", "zeros")
FACTORIES = {name: _on_host(getattr(torch, name)) for name in _NAMES}


def _create_tensor_maps(tensors, options):
    return cuda_tma.create_tensor_maps([*map(described, tensors)], options)


class _Memory:
    """A stand-in for cuda.core's device, which allocates the memory of an upload."""

    def __init__(self, device_id):
        self.memory_resource = SimpleNamespace(allocate=lambda size, stream: core.Buffer.from_handle(1 << 33, size))


class _Device:
    """A stand-in for the current device, on the fake driver."""

    properties = SimpleNamespace(multiprocessor_count=2)

    def __init__(self):
        self.default_stream = core.Stream.from_handle(0x1000)

    def set_current(self):
        pass

    @staticmethod
    def create_tensor_map(*args, **options):
        return _Map(_with_described(cuda_tma.create_tensor_map)(*args, **options))


class _Map:
    """A descriptor that accepts host tensors as device tensors."""

    def __init__(self, descriptor):
        self.descriptor = descriptor

    def replace_address(self, tensor):
        self.descriptor.replace_address(described(tensor))


class _Kernel:
    """A stand-in for a kernel, with the attributes that the examples use."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.occupancy = SimpleNamespace(max_active_blocks_per_multiprocessor=lambda threads, smem_bytes: 1)
