"""Tests of the matrix products that Triton's scripts take from cuBLAS as a reference."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")


@pytest.mark.parametrize("shape", [(16, 16, 32), (130, 520, 96), (512, 512, 64)])
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_a_product_of_fp8_may_have_any_shape(shape, beta):
    """The factors are small integers, so that every data type holds their sums. A product needs more than one
    instruction."""
    from cuda_tma._intercept.triton.products import CublasLt

    m, n, k = shape
    random = torch.Generator().manual_seed(1)
    a, b = (torch.randint(-2, 3, (rows, k), generator=random).to(torch.float8_e4m3fn) for rows in (m, n))
    c = torch.randint(-8, 9, (m, n), generator=random).to(torch.float16)
    d = torch.empty(m, n, dtype=torch.float16)
    CublasLt(None).gemm(a, b, c, d, 1.0, beta)
    assert torch.equal(d.double(), a.double() @ b.double().T + beta * c.double())
