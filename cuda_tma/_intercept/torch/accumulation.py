"""Sums and products of 16-bit tensors, which are accumulated in float32 as on a GPU.

Some operators of torch for the CPU accumulate in 16 bits. With sums in 16 bits, the gradients of `layer_norm` differ
from those of CUDA by ten times the rounding error. A script that compares a right kernel with torch would therefore
report an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .marks import on_gpu, tensors_in

__all__ = ["accumulated"]

_HALVES = (torch.float16, torch.bfloat16)
_NAMES = frozenset(
    {
        *("sum", "nansum", "mean", "nanmean", "var", "std", "var_mean", "std_mean", "prod", "cumsum", "cumprod"),
        *("logsumexp", "norm", "vector_norm", "matrix_norm", "softmax", "log_softmax", "softmin"),
        *("layer_norm", "rms_norm", "group_norm", "instance_norm", "batch_norm", "avg_pool2d"),
        *("matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "mv", "dot", "vdot", "inner", "addmm", "addmv", "addbmm"),
        *("baddbmm", "einsum", "tensordot", "linear", "bilinear", "scaled_dot_product_attention"),
        *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
        *("cross_entropy", "nll_loss", "kl_div", "mse_loss", "l1_loss", "smooth_l1_loss", "cosine_similarity"),
    }
)


def accumulated(function: Callable[..., Any], arguments: tuple, keywords: dict[str, Any]) -> Any:
    """Run an operator of torch.

    Use float32 if the operator accumulates, and if all its tensors are on the GPU and have the same 16-bit type.
    """
    half = _half(function, arguments, keywords)
    if half is None or keywords.get("out") is not None:
        return function(*arguments, **keywords)
    result = function(*_cast(arguments, half, torch.float32), **_cast(keywords, half, torch.float32))
    return result if keywords.get("dtype") is not None else _cast(result, torch.float32, half)


def _half(function: Any, arguments: tuple, keywords: dict[str, Any]) -> Any:
    if getattr(function, "__name__", "") not in _NAMES:
        return None
    given = [tensor for tensor in tensors_in([arguments, keywords]) if tensor.is_floating_point()]
    types = {tensor.dtype for tensor in given}
    if len(types) != 1 or not types <= {*_HALVES} or not any(map(on_gpu, given)):
        return None
    return types.pop()


def _cast(value: Any, from_type: Any, to_type: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(to_type) if value.dtype is from_type else value
    if isinstance(value, dict):
        return {name: _cast(each, from_type, to_type) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        cast = [_cast(each, from_type, to_type) for each in value]
        return (
            type(value)(cast)
            if type(value) in (list, tuple)
            else type(value)(*cast)
            if hasattr(value, "_fields")
            else value
        )
    return value
