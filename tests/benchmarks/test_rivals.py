"""Tests of the libraries that the benchmarks compare with, such as cuBLAS, without a GPU."""

import pytest

from benchmarks import kernels
from benchmarks.kernels import cublaslt, regimes

# ---- the fastest algorithm of cuBLASLt ----


class CublasLt:
    """A stand-in for cuBLASLt that records its calls, and fails at a chosen call."""

    def __init__(self, failing="", found=3):
        self.calls, self.failing, self.found = [], failing, found

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append((name, arguments))
            if name == "cublasLtMatmulAlgoGetHeuristic":
                arguments[-1]._obj.value = self.found
                for number in range(self.found):
                    arguments[-2][number].algo[0], arguments[-2][number].state = number, number == 1
            return 15 if name == self.failing else 0

        return call

    def values(self, name):
        """Return the arguments that the call passes by value, each as its name and its numbers."""
        return [
            [getattr(a, "value", a) for a in given if not hasattr(a, "_obj")] for of, given in self.calls if of == name
        ]


@pytest.fixture
def product(monkeypatch):
    torch = pytest.importorskip("torch")

    def product(library, b=None, **changes):
        monkeypatch.setattr(cublaslt, "_library", lambda: library)
        monkeypatch.setattr(cublaslt, "_workspace", lambda: torch.empty(8))
        monkeypatch.setattr(torch.cuda, "current_stream", lambda: type("Stream", (), {"cuda_stream": 7}))
        cublaslt._handle.cache_clear()
        a, out = (torch.zeros(shape, dtype=torch.bfloat16) for shape in ((8, 64), (8, 32)))
        return {"a": a, "b": torch.zeros(32, 64, dtype=torch.bfloat16).T if b is None else b, "out": out, **changes}

    yield product
    cublaslt._handle.cache_clear()


def test_rows_are_columns_of_the_transposed(product):
    """The call of cuBLASLt computes out.T = b.T @ a.T. In column-major order, b is a transposed operand, and a is an
    operand that is not transposed."""
    library = CublasLt()
    operands = product(library)
    cublaslt.Product(**operands)
    assert library.values("cublasLtMatrixLayoutCreate") == [[14, 64, 32, 64], [14, 64, 8, 64], [14, 32, 8, 32]]
    turned = [given[2]._obj.value for name, given in library.calls if name == "cublasLtMatmulDescSetAttribute"]
    assert library.values("cublasLtMatmulDescSetAttribute") == [[None, 3, 4], [None, 4, 4]] and turned == [1, 0]
    cublaslt.Product(**product(library, b=operands["b"].contiguous()))
    assert library.values("cublasLtMatrixLayoutCreate")[3] == [14, 32, 64, 32]


def test_the_fastest_algorithm_is_chosen(product, monkeypatch):
    library = CublasLt()
    monkeypatch.setattr(
        regimes, "in_turns", lambda runs, turns: [run() or 5.0 - number for number, run in enumerate(runs)]
    )
    run = cublaslt.best_of(**product(library))
    products = [given[-4]._obj.algo[0] for name, given in library.calls if name == "cublasLtMatmul"]
    assert products == [0, 2]  # The library refuses algorithm 1.
    run()
    assert library.calls[-1][1][-4]._obj.algo[0] == 2 and library.calls[-1][1][-1].value == 7


def test_refusals_of_cublaslt_are_reported(product):
    with pytest.raises(RuntimeError, match="cublasLtMatrixLayoutCreate: cublasStatus_t 15"):
        cublaslt.Product(**product(CublasLt("cublasLtMatrixLayoutCreate")))
    with pytest.raises(RuntimeError, match="has no algorithm"):
        cublaslt.best_of(**product(CublasLt(found=0)))
    operands = product(CublasLt())
    with pytest.raises(ValueError, match="rows must be contiguous"):
        cublaslt.Product(**{**operands, "out": operands["out"].T})
    with pytest.raises(ValueError, match="neither rows nor columns"):
        cublaslt.Product(**{**operands, "a": operands["a"][:, ::2]})


def test_an_example_has_the_rivals_of_the_benchmark(monkeypatch):
    module = type("Module", (), {"RIVALS": {"its own": print}})
    monkeypatch.setattr(kernels, "example", lambda name: module)
    assert [*kernels._beside_more("gemm").RIVALS] == ["its own", "cuBLASLt, best of 16"]
