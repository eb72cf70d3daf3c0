"""The matrix products of cuBLAS that Triton offers to scripts as a reference, computed on the CPU.

torch computes the products, except those of 8-bit floating-point types. For these types, Triton requests fast
accumulation, in which tensor cores keep fewer bits of each sum than float32 has. The products of this module therefore
also keep fewer bits. The simulated tensor cores of compute capability 10.x keep the bits of f16
(``simulate/_tensor_memory/product.py``).
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ...simulate._matrix.adder import multiply_add
from ..errors import NotSimulated
from ..patches import Patches

__all__ = ["install"]

FloatArray = npt.NDArray[np.float64]
_M, _N, _K = 64, 256, 32  # _M, _N and _K are the extents of a wgmma instruction with 8-bit elements.


class CublasLt:
    """The products that replace those of ``triton._C.libtriton.nvidia.cublas.CublasLt``."""

    adds_narrow = True  # Sums of products of 8-bit floating-point types have fewer bits than f32.

    def __init__(self, workspace: Any):
        pass

    def matmul(self, a: Any, b: Any, c: Any) -> None:
        """Write ``a @ b.T`` to `c`."""
        self.gemm(a, b, c, c, 1.0, 0.0)

    def gemm(self, a: Any, b: Any, c: Any, d: Any, alpha: float, beta: float) -> None:
        """Write ``alpha * a @ b.T + beta * c`` to `d`."""
        product = alpha * _product(a, b, self.adds_narrow)
        d.copy_(product + beta * c.float() if beta else product)

    def __getattr__(self, name: str) -> Any:
        raise NotSimulated(
            f"CublasLt.{name}", ("the library contains only machine code"), "compare with torch's operators"
        )


class WideCublasLt(CublasLt):
    """The products of cuBLAS for compute capability 10.x."""

    adds_narrow = False

    def block_scaled_matmul_mxfp8(self, a: Any, b: Any, output: Any, a_scales: Any, b_scales: Any) -> None:
        """Write the product of e4m3 with scales of ue8m0 to `output`."""
        from ..torch.scaled_mm import scaled_product

        output.copy_(scaled_product(a, b, a_scales, b_scales, is_nvfp4=False))

    def block_scaled_matmul_nvfp4(self, a: Any, b: Any, output: Any, a_scales: Any, b_scales: Any) -> None:
        """Write the product of packed e2m1 with scales of e4m3 to `output`."""
        from ..torch.scaled_mm import scaled_product

        output.copy_(scaled_product(a, b, a_scales, b_scales, is_nvfp4=True))


def _product(a: Any, b: Any, adds_narrow: bool) -> Any:
    """Return ``a @ b.T`` in float32. Sums of e4m3 and e5m2 have the precision of tensor cores."""
    import torch

    names = {torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2"}
    if a.dtype not in names or b.dtype not in names:
        return a.float() @ b.float().T
    left, right = (each.cpu().float().double().numpy() for each in (a, b))
    names_of_both = (names[a.dtype], names[b.dtype]) if adds_narrow else ("f16", "f16")
    product = np.empty((len(left), len(right)), np.float64)
    for i in range(0, len(left), _M):
        for j in range(0, len(right), _N):
            product[i : i + _M, j : j + _N] = _tile(left[i : i + _M], right[j : j + _N], names_of_both)
    return torch.from_numpy(product).float().to(a.device)


def _tile(left: FloatArray, right: FloatArray, names: tuple[str, str]) -> FloatArray:
    """Return the product of at most `_M` by `_N` elements, with the results of the instructions added in order."""
    sums: Any = None
    for k in range(0, left.shape[1], _K):
        some = slice(k, k + _K)
        sums = multiply_add(left[None, :, some], right[None, :, some], sums, names, "f32")
    return cast(FloatArray, sums[0])


def install(patches: Patches, compute_capability: tuple[int, int]) -> None:
    """Replace the class of the products if this version of Triton has the class."""
    from triton._C.libtriton import nvidia

    library = getattr(nvidia, "cublas", None)
    if library is not None:
        patches.replace(library, "CublasLt", WideCublasLt if compute_capability[0] == 10 else CublasLt)
