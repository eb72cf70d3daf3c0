"""The objects that the rows share: a device, a stream, tensors, views, descriptors and the C baseline. Each object is
made at its first use, so that a missing library affects only the rows that use the library.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from cuda import core
from cuda.core.utils import StridedMemoryView as CoreView

import cuda_tma

from .floor import Floor, map_copy

SHAPES = {2: (1024, 1024), 5: (4, 4, 4, 128, 128)}  # SHAPES maps a rank to the shape of a float32 tensor.
BOXES = {2: (64, 64), 5: (1, 1, 1, 64, 64)}
NBYTES = 4 << 20


class Scene:
    """The objects on device 0 in its primary context, which torch, CuPy and Triton also use."""

    def __init__(self) -> None:
        self.device = cuda_tma.Device(0)
        self.device.set_current()
        self.stream = self.device.create_stream()
        self.memory = [self.device.allocate(NBYTES, stream=self.stream) for _ in range(4)]
        self.stream.sync()
        self.address = int(self.memory[1].handle)

    @cached_property
    def floor(self) -> Floor:
        return Floor()

    @cached_property
    def torch(self) -> Any:
        import torch

        return torch

    @cached_property
    def tensors(self) -> list[Any]:
        """Return two torch tensors."""
        return [self.torch.zeros(SHAPES[2], device="cuda:0") for _ in range(2)]

    @cached_property
    def bfloat16_tensors(self) -> list[Any]:
        """Return the same tensors with a data type that has no negative views."""
        return [tensor.bfloat16() for tensor in self.tensors]

    def options(self, rank: int = 2) -> cuda_tma.TensorMapOptions:
        return cuda_tma.TensorMapOptions(box_dim=BOXES[rank])

    def core_options(self) -> Any:
        return core.TensorMapDescriptorOptions(box_dim=BOXES[2])

    def view(self, rank: int = 2, memory: int = 0) -> cuda_tma.StridedMemoryView:
        dtype = np.dtype(np.float32)
        return cuda_tma.StridedMemoryView.from_buffer(self.memory[memory], SHAPES[rank], dtype=dtype)

    def core_view(self, rank: int = 2, memory: int = 0) -> CoreView:
        return CoreView.from_buffer(self.memory[memory], SHAPES[rank], dtype=np.dtype(np.float32))

    def descriptor(self, rank: int = 2, memory: int = 0) -> cuda_tma.TensorMapDescriptor:
        return cuda_tma.create_tensor_map(self.view(rank, memory), self.options(rank))

    def core_descriptor(self, memory: int = 0) -> Any:
        return self.core_view(2, memory).as_tensor_map(options=self.core_options())

    def raw_map(self, memory: int = 0) -> Any:
        """Return the 128 bytes of a descriptor at an aligned address, for C."""
        return map_copy(bytes(self.descriptor(2, memory)))
