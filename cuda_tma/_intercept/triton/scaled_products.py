"""The products of cuBLAS with block scales that Triton offers to scripts as a reference, computed on the CPU.

The scales of 128 rows and four blocks of K are 512 bytes: row r has four adjacent bytes, from byte 16 * (r % 32) + 4 *
(r // 32) on. Source: cuBLAS, "1D Block Scaling Factors Layout".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...simulate._matrix.padded import decoded_packed
from ...simulate._tensor_memory.scales import scale_numbers

__all__ = ["multiply_mxfp8", "multiply_nvfp4"]

FloatArray = npt.NDArray[np.float64]


def multiply_mxfp8(a: Any, b: Any, output: Any, a_scales: Any, b_scales: Any) -> None:
    """Write the product of e4m3 with scales of ue8m0, each of 32 elements along K, to `output`."""
    factors = [each.cpu().float().double().numpy() for each in (a, b)]
    _write(factors, (a_scales, b_scales), 32, "ue8m0", output)


def multiply_nvfp4(a: Any, b: Any, output: Any, a_scales: Any, b_scales: Any) -> None:
    """Write the product of packed e2m1 with scales of e4m3, each of 16 elements along K, to `output`."""
    factors = [decoded_packed(_bytes(each)) for each in (a, b)]
    _write(factors, (a_scales, b_scales), 16, "ue4m3", output)


def _write(factors: list[FloatArray], scales: tuple[Any, Any], block: int, type_: str, output: Any) -> None:
    import torch

    left, right = (
        factor * np.repeat(_in_rows(_bytes(each), factor.shape[1] // block, type_), block, axis=1)
        for factor, each in zip(factors, scales, strict=True)
    )
    output.copy_(torch.from_numpy(left @ right.T).float())


def _in_rows(codes: npt.NDArray[np.uint8], columns: int, type_: str) -> FloatArray:
    """Return scales, [rows, columns], from their bytes in the layout of cuBLAS."""
    blocks = codes.reshape(-1, columns // 4, 32, 4, 4)  # [128 rows, 4 columns, row, 32 rows, column]
    return scale_numbers(blocks.transpose(0, 3, 2, 1, 4).reshape(-1, columns), type_)


def _bytes(tensor: Any) -> npt.NDArray[np.uint8]:
    import torch

    found: npt.NDArray[np.uint8] = tensor.cpu().contiguous().view(torch.uint8).numpy()
    return found
