"""The products of cuBLAS that Triton offers to scripts as a reference, computed on the CPU.

torch computes them, but for 8-bit floating types: Triton asks cuBLAS for fast accumulation, in which tensor cores keep
fewer bits of each sum than float32 has. A comparison with such a kernel holds if the reference does the same.
"""

from __future__ import annotations

from typing import Any

from ...simulate._matrix.adder import multiply_add
from ..errors import NotSimulated
from ..patches import Patches

__all__ = ["install"]

_K = 32  # of one instruction, in elements of 8 bits


class CublasLt:
    """Products in place of those of ``triton._C.libtriton.nvidia.cublas.CublasLt``."""

    def __init__(self, workspace: Any):
        pass

    def matmul(self, a: Any, b: Any, c: Any) -> None:
        """Write ``a @ b.T`` to `c`."""
        self.gemm(a, b, c, c, 1.0, 0.0)

    def gemm(self, a: Any, b: Any, c: Any, d: Any, alpha: float, beta: float) -> None:
        """Write ``alpha * a @ b.T + beta * c`` to `d`."""
        product = alpha * _product(a, b)
        d.copy_(product + beta * c.float() if beta else product)

    def __getattr__(self, name: str) -> Any:
        raise NotSimulated(f"CublasLt.{name}", "the library has machine code alone", "compare with torch's operators")


def _product(a: Any, b: Any) -> Any:
    """Return ``a @ b.T`` in float32, of e4m3 and e5m2 as tensor cores add it."""
    import torch

    names = {torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2"}
    if a.dtype not in names or b.dtype not in names:
        return a.float() @ b.float().T
    left, right = (each.cpu().float().double().numpy()[None] for each in (a, b))
    sums: Any = None
    for k in range(0, left.shape[2], _K):
        some = slice(k, k + _K)
        sums = multiply_add(left[..., some], right[..., some], sums, (names[a.dtype], names[b.dtype]), "f32")
    return torch.from_numpy(sums[0]).float().to(a.device)


def install(patches: Patches) -> None:
    """Replace the class, if this Triton has it."""
    from triton._C.libtriton import nvidia

    library = getattr(nvidia, "cublas", None)
    if library is not None:
        patches.replace(library, "CublasLt", CublasLt)
