"""The fastest product ``out = a @ b`` among the algorithms that cuBLASLt proposes, as a `Run`.

``torch.matmul`` takes the first algorithm of a heuristic. This module times each of the first 16 algorithms, and the
fastest is the rival. The library cuBLASLt is the copy that torch loads. The constants are those of ``cublasLt.h``,
``cublas_api.h`` and ``library_types.h`` of CUDA 12 and 13. The objects of a problem are not freed until the process
ends.
"""

from __future__ import annotations

import ctypes
from functools import cache, partial
from typing import Any

from . import regimes

COUNT, TURNS = 16, 8
WORKSPACE_BYTES = 32 << 20
FLOAT, TYPES = 0, {"float32": 0, "float16": 2, "bfloat16": 14}  # FLOAT and TYPES contain values of cudaDataType.
COMPUTE_32F = 68  # COMPUTE_32F is a value of cublasComputeType_t.
TRANSA, TRANSB = 3, 4  # TRANSA and TRANSB are values of cublasLtMatmulDescAttributes_t.
MAX_WORKSPACE_BYTES = 1  # MAX_WORKSPACE_BYTES is a value of cublasLtMatmulPreferenceAttributes_t.


class Algorithm(ctypes.Structure):
    """The C structure cublasLtMatmulHeuristicResult_t, which begins with the algorithm."""

    _fields_ = (
        ("algo", ctypes.c_uint64 * 8),
        ("workspace_bytes", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


def best_of(a: Any, b: Any, out: Any, count: int = COUNT) -> regimes.Run:
    """Return a run of ``out = a @ b`` by the fastest of at most `count` algorithms.

    Parameters
    ----------
    a, b, out : torch.Tensor
        Matrices of shapes (M, K), (K, N) and (M, N). `a` and `b` have contiguous rows or columns, and `out` has
        contiguous rows.

    Raises
    ------
    RuntimeError
        If cuBLASLt has no algorithm for the product, or refuses a call.
    """
    product = Product(a, b, out)
    runs = [partial(product, algorithm) for algorithm in product.algorithms(count)]
    times = regimes.in_turns(runs, TURNS)
    return runs[min(range(len(runs)), key=times.__getitem__)]


class Product:
    """A problem in the form of cuBLASLt. The matrices of a problem are column-major, so cuBLASLt computes out.T = b.T @
    a.T.
    """

    def __init__(self, a: Any, b: Any, out: Any) -> None:
        if out.stride(1) != 1:
            raise ValueError(f"out has strides {out.stride()}: its rows must be contiguous")
        self.tensors = b, a, out
        self.operation = _made("cublasLtMatmulDescCreate", COMPUTE_32F, FLOAT)
        for attribute, tensor in ((TRANSA, b), (TRANSB, a)):
            # In cublasOperation_t, the value 0 means not transposed, and 1 means transposed.
            is_turned = ctypes.c_int(_by_rows(tensor) is not tensor)
            _call("cublasLtMatmulDescSetAttribute", self.operation, attribute, ctypes.byref(is_turned), _size(4))
        self.layouts = [_layout(tensor) for tensor in self.tensors]

    def algorithms(self, count: int) -> list[Algorithm]:
        preference, found = _made("cublasLtMatmulPreferenceCreate"), ctypes.c_int()
        most = ctypes.byref(_size(WORKSPACE_BYTES))
        _call("cublasLtMatmulPreferenceSetAttribute", preference, MAX_WORKSPACE_BYTES, most, _size(8))
        results = (Algorithm * count)()
        # The matrices C and D have the same layout, and cuBLASLt does not read C.
        layouts = [*self.layouts, self.layouts[-1]]
        request = self.operation, *layouts, preference, count, results, ctypes.byref(found)
        _call("cublasLtMatmulAlgoGetHeuristic", _handle(), *request)
        usable = [result for result in results[: found.value] if result.state == 0]
        if not usable:
            raise RuntimeError("cuBLASLt has no algorithm for this product")
        return usable

    def __call__(self, algorithm: Algorithm) -> None:
        import torch

        of_b, of_a, of_out = self.layouts
        b, a, out = (ctypes.c_void_p(tensor.data_ptr()) for tensor in self.tensors)
        one, zero = (ctypes.byref(ctypes.c_float(value)) for value in (1, 0))
        workspace = ctypes.c_void_p(_workspace().data_ptr()), _size(WORKSPACE_BYTES)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        operands = one, b, of_b, a, of_a, zero, out, of_out, out, of_out
        # A pointer to the structure is also a pointer to its first field, the algorithm.
        algo = ctypes.byref(algorithm)
        _call("cublasLtMatmul", _handle(), self.operation, *operands, algo, *workspace, stream)


_size = ctypes.c_size_t


def _by_rows(tensor: Any) -> Any:
    """Return the same memory as a matrix with contiguous rows, which is the tensor itself or its transpose."""
    if 1 not in tensor.stride():
        raise ValueError(f"strides {tensor.stride()}: neither rows nor columns are contiguous")
    return tensor if tensor.stride(1) == 1 else tensor.T


def _layout(tensor: Any) -> ctypes.c_void_p:
    rows = _by_rows(tensor)
    extents = (ctypes.c_uint64(extent) for extent in reversed(rows.shape))
    dtype = TYPES[str(tensor.dtype).removeprefix("torch.")]
    return _made("cublasLtMatrixLayoutCreate", dtype, *extents, ctypes.c_int64(rows.stride(0)))


def _made(name: str, *arguments: Any) -> ctypes.c_void_p:
    made = ctypes.c_void_p()
    _call(name, ctypes.byref(made), *arguments)
    return made


def _call(name: str, *arguments: Any) -> None:
    status = getattr(_library(), name)(*arguments)
    if status:
        raise RuntimeError(f"{name}: cublasStatus_t {status}")


@cache
def _library() -> ctypes.CDLL:
    import torch

    return ctypes.CDLL(f"libcublasLt.so.{torch.version.cuda.partition('.')[0]}")


@cache
def _handle() -> ctypes.c_void_p:
    return _made("cublasLtCreate")


@cache
def _workspace() -> Any:
    import torch

    return torch.empty(WORKSPACE_BYTES, device="cuda", dtype=torch.uint8)
