"""Tests of the matrix products that Triton's scripts take from cuBLAS as a reference."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")


@pytest.mark.parametrize("shape", [(16, 16, 32), (130, 520, 96), (512, 512, 64)])
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_a_product_of_fp8_may_have_any_shape(shape, beta):
    """The matrices contain small integers, so that every data type represents the sums exactly. The simulation of each
    matrix product needs more than one instruction."""
    from cuda_tma._intercept.triton.products import CublasLt

    m, n, k = shape
    random = torch.Generator().manual_seed(1)
    a, b = (torch.randint(-2, 3, (rows, k), generator=random).to(torch.float8_e4m3fn) for rows in (m, n))
    c = torch.randint(-8, 9, (m, n), generator=random).to(torch.float16)
    d = torch.empty(m, n, dtype=torch.float16)
    CublasLt(None).gemm(a, b, c, d, 1.0, beta)
    assert torch.equal(d.double(), a.double() @ b.double().T + beta * c.double())


def test_sums_of_fp8_have_the_bits_of_the_device():
    """In an fp8 product, a term of 2**-14 of the sum is lost on compute capability 9.0, but not on 10.0."""
    from cuda_tma._intercept.triton.products import CublasLt, WideCublasLt

    a = torch.zeros(1, 32)
    a[0, 0], a[0, 1] = 128.0, 2.0**-7
    one, d = torch.ones(1, 32).to(torch.float8_e4m3fn), torch.empty(1, 1)
    for library, expected in ((CublasLt, 128.0), (WideCublasLt, 128.0 + 2.0**-7)):
        library(None).matmul(a.to(torch.float8_e4m3fn), one, d)
        assert d.item() == expected


def in_blocks(scales):
    """Return the scales of a [rows, columns] array as a flat array in the layout of cuBLAS."""
    rows, columns = scales.shape
    return scales.reshape(rows // 128, 4, 32, columns // 4, 4).permute(0, 3, 2, 1, 4).flatten()


def test_products_with_block_scales():
    """The factors and the scales are small powers of two, whose products float16 represents exactly."""
    from cuda_tma._intercept.triton.products import WideCublasLt

    random, library = torch.Generator().manual_seed(1), WideCublasLt(None)
    a, b = (torch.randint(-2, 3, (rows, 256), generator=random).to(torch.float8_e4m3fn) for rows in (128, 256))
    codes = [torch.randint(125, 130, (rows, 8), generator=random).to(torch.uint8) for rows in (128, 256)]
    d = torch.empty(128, 256, dtype=torch.float32)
    library.block_scaled_matmul_mxfp8(a, b, d, *map(in_blocks, codes))
    left, right = (
        each.double() * 2.0 ** (scale.double() - 127).repeat_interleave(32, 1)
        for each, scale in zip((a, b), codes, strict=True)
    )
    assert torch.equal(d.double(), left @ right.T)

    packed = [torch.full((rows, 32), 0x42, dtype=torch.uint8) for rows in (128, 256)]  # 1 and 2
    scales = [torch.rand(rows, 4, generator=random).to(torch.float8_e4m3fn) for rows in (128, 256)]
    library.block_scaled_matmul_nvfp4(*packed, d, *map(in_blocks, scales))
    left, right = (each.float().double() for each in scales)
    assert torch.allclose(d.double(), left @ right.T * 40, rtol=1e-6)


def test_the_scaled_product_of_torch():
    """The layout of block scales pads the rows to a multiple of 128, and the scales along K to a multiple of 4."""
    from cuda_tma._intercept.torch.scaled_mm import is_scaled, scaled_mm

    a, b = (torch.full((rows, 64), value).to(torch.float8_e4m3fn) for rows, value in ((96, 2.0), (32, 0.5)))
    scales = [torch.full((512,), code, dtype=torch.uint8).view(torch.float8_e8m0fnu) for code in (128, 129)]
    given = a, b.t(), *scales
    assert is_scaled(torch._scaled_mm, given)
    assert not is_scaled(torch.matmul, given)
    assert not is_scaled(torch._scaled_mm, (a, b.t(), torch.ones(()), torch.ones(())))
    found = scaled_mm(*given, out_dtype=torch.float32)
    assert torch.equal(found, torch.full((96, 32), 64 * 8.0))
