"""The functions and values that several tests of tensor map creation share."""

from __future__ import annotations

from cuda_tma import (
    TensorMapOptions,
)
from cuda_tma._make.encode import tiled_params
from cuda_tma._read.dlpack import describe_tensor


def params_of(shape, strides=None, dtype="float32", **options):
    return tiled_params(describe_tensor(shape, strides, dtype), TensorMapOptions(**options))
