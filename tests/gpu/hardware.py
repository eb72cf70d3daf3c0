"""A GPU with two methods of the simulated device, for tests that run on both."""

from __future__ import annotations

import numpy as np
import torch
from cuda.core import LaunchConfig

import cuda_tma


class Hardware:
    """A GPU with the interface of :class:`cuda_tma.simulate.Device`, which reads and writes arrays in place."""

    def __init__(self):
        self.device = cuda_tma.Device()
        self.device.set_current()

    def compile(self, source, name):
        return cuda_tma.compile(source, name)

    def launch(self, config, kernel, *arguments, order=None, seed=0):
        """Run one launch to its end. The parameters `order` and `seed` apply only to the simulator."""
        there = [on_gpu(argument) if isinstance(argument, np.ndarray) else argument for argument in arguments]
        torch.cuda.synchronize()
        shape = LaunchConfig(grid=config.grid, cluster=config.cluster, block=config.block)
        cuda_tma.launch(self.device.default_stream, shape, kernel, *there)
        self.device.default_stream.sync()
        for argument, tensor in zip(arguments, there, strict=True):
            if isinstance(argument, np.ndarray):
                argument[...] = as_words(tensor).cpu().numpy().view(argument.dtype)
        return self

    def raise_for_errors(self):
        """Do nothing, because on a GPU the launch has already raised its errors."""


def on_gpu(array):
    if array.dtype == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).cuda().view(torch.bfloat16)
    return torch.from_numpy(array).cuda()


def as_words(tensor):
    """Return the elements as integers of the same size, because torch does not support bfloat16 arrays of NumPy."""
    return tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor
