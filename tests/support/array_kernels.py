"""Kernels of four threads that write to arrays, and arrays as their arguments."""

from __future__ import annotations

import numpy as np

from cuda_tma.simulate import Config

SOURCE = r"""
extern "C" __global__ void put(float* out) { out[threadIdx.x] = threadIdx.x + 1; }
extern "C" __global__ void add(const float* in, float* out) { out[threadIdx.x] += in[threadIdx.x]; }
__device__ float* kept;
extern "C" __global__ void keep(float* out) { kept = out; }
extern "C" __global__ void put_kept(const float* in) { kept[threadIdx.x] = in[threadIdx.x] + 5; }
"""
FOUR = Config(1, 4)
ONE_TO_FOUR = [1.0, 2.0, 3.0, 4.0]


class Exporter:
    """An array library that supports only DLPack."""

    def __init__(self, array, *, versioned=False):
        self.array, self._versioned = array, versioned

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords) if self._versioned else self.array.__dlpack__()

    def __dlpack_device__(self):
        return 1, 0


def zeros(count):
    return np.zeros(count, np.float32)
