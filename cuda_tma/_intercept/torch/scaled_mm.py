"""Products with block scales on the CPU, for ``torch._scaled_mm``, which torch has only for GPUs, and for cuBLAS.

The scales of 128 rows and four blocks of K occupy 512 bytes: the four bytes of row r begin at byte 16 * (r % 32) + 4 *
(r // 32). Source: cuBLAS, "1D Block Scaling Factors Layout".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ...simulate._matrix.padded import decoded_packed
from ...simulate._tensor_memory.scales import scale_numbers

__all__ = ["is_scaled", "scaled_mm", "scaled_product"]

FloatArray = npt.NDArray[np.float64]
_PACKED = getattr(torch, "float4_e2m1fn_x2", None)
_TYPES = {torch.float8_e4m3fn, torch.float8_e5m2, _PACKED}
_SCALES = {getattr(torch, "float8_e8m0fnu", None), torch.float8_e4m3fn}


def is_scaled(function: Callable[..., Any], arguments: tuple) -> bool:
    """Return whether a call multiplies matrices that have a scale for each block of K."""
    if getattr(function, "__name__", "") != "_scaled_mm" or len(arguments) < 4:
        return False
    a, b, a_scales, b_scales = arguments[:4]
    return {a.dtype, b.dtype} <= _TYPES and {a_scales.dtype, b_scales.dtype} <= _SCALES


def scaled_mm(
    a: Any,
    b: Any,
    a_scales: Any,
    b_scales: Any,
    bias: Any = None,
    scale_result: Any = None,
    out_dtype: Any = None,
    **_: Any,
) -> Any:
    """Return the product of A, [rows, K], and B, [K, columns], plus a bias, in the given type (default: the type of A).

    Packed elements of e2m1 have one e4m3 scale for every 16 elements; other elements have one ue8m0 scale for every 32.
    """
    product = scaled_product(a, b.t(), a_scales, b_scales, a.dtype is _PACKED)
    product = product if bias is None else product + bias.float()
    return product.to(out_dtype or a.dtype)


def scaled_product(a: Any, b: Any, a_scales: Any, b_scales: Any, is_nvfp4: bool) -> Any:
    """Return the product of A, [rows, K], and the transpose of B, [columns, K], as a tensor of float32.

    Parameters
    ----------
    a, b : torch.Tensor
        Tensors of an 8-bit type, or bytes with two elements of e2m1.
    a_scales, b_scales : torch.Tensor
        The scales in the layout of cuBLAS.
    is_nvfp4 : bool
        Whether the factors are e2m1 with a scale of e4m3 for each 16 elements; otherwise a scale of ue8m0 has 32.
    """
    block, type_ = (16, "ue4m3") if is_nvfp4 else (32, "ue8m0")
    scaled = []
    for factor, scales in ((a, a_scales), (b, b_scales)):
        numbers = decoded_packed(_bytes(factor)) if is_nvfp4 else factor.cpu().float().double().numpy()
        rows, columns = numbers.shape
        found = _in_rows(_bytes(scales), rows, -(-columns // block), type_)
        scaled.append(numbers * np.repeat(found, block, axis=1)[:, :columns])
    return torch.from_numpy(scaled[0] @ scaled[1].T).float()


def _in_rows(codes: npt.NDArray[np.uint8], rows: int, columns: int, type_: str) -> FloatArray:
    """Return scales, [rows, columns], from their bytes in the layout of cuBLAS, which pads rows and columns."""
    blocks = codes.reshape(-(-rows // 128), -(-columns // 4), 32, 4, 4)
    padded = blocks.transpose(0, 3, 2, 1, 4).reshape(blocks.shape[0] * 128, -1)
    return scale_numbers(padded[:rows, :columns], type_)


def _bytes(tensor: Any) -> npt.NDArray[np.uint8]:
    found: npt.NDArray[np.uint8] = tensor.cpu().contiguous().view(torch.uint8).numpy()
    return found
