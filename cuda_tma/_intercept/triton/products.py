"""The products of cuBLAS that Triton offers to scripts as a reference, computed by torch on the CPU."""

from __future__ import annotations

from typing import Any

from ..errors import NotSimulated
from ..patches import Patches

__all__ = ["install"]


class CublasLt:
    """In place of ``triton._C.libtriton.nvidia.cublas.CublasLt``: products that accumulate in float32."""

    def __init__(self, workspace: Any):
        pass

    def matmul(self, a: Any, b: Any, c: Any) -> None:
        """Write ``a @ b.T`` to `c`."""
        self.gemm(a, b, c, c, 1.0, 0.0)

    def gemm(self, a: Any, b: Any, c: Any, d: Any, alpha: float, beta: float) -> None:
        """Write ``alpha * a @ b.T + beta * c`` to `d`."""
        product = alpha * (a.float() @ b.float().T)
        d.copy_(product + beta * c.float() if beta else product)

    def __getattr__(self, name: str) -> Any:
        raise NotSimulated(f"CublasLt.{name}", "the library has machine code alone", "compare with torch's operators")


def install(patches: Patches) -> None:
    """Replace the class, if this Triton has it."""
    from triton._C.libtriton import nvidia

    library = getattr(nvidia, "cublas", None)
    if library is not None:
        patches.replace(library, "CublasLt", CublasLt)
