"""Tests on the simulator with the kernels of the GPU tests of matrix products."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from tests.evaluation._wgmma_model import encoded
from tests.gpu.product_kernels import SOURCE, Form, mma_name, plain_name, wgmma_name

GPU = simulate.Device()
DTYPES = {"bf16": "u2", "f16": "u2", "tf32": "u4", "e4m3": "u1", "e5m2": "u1", "s8": "u1", "u8": "u1"}
SUMS = {"float": np.float32, "int": np.int32, "unsigned": np.float16}
# The word 0x42004200 contains the f16 value 3.0 twice.
STARTS = {"float": 3.0, "int": 2**31 - 1 - 10**5, "unsigned": 0x42004200}
BF16 = Form("bf16", "bf16", "float")
# Each row contains the form, the extent N, whether A is in registers, and whether the product negates A and B. The
# values of N include the least and the greatest value.
WGMMA = [
    (BF16, 8, False, True),
    (BF16, 256, False, False),
    (Form("tf32", "tf32", "float"), 24, True, False),
    (Form("f16", "f16", "unsigned"), 48, True, True),
    (Form("e4m3", "e5m2", "float"), 40, True, True),
    (Form("e5m2", "e4m3", "unsigned"), 16, False, False),
    (Form("u8", "s8", "int"), 24, True, False),
    (Form("s8", "s8", "int", satfinite=True), 32, False, False),
]
MMA = [BF16, Form("tf32", "tf32", "float"), Form("e4m3", "e5m2", "unsigned"), Form("u8", "u8", "int", satfinite=True)]


def integers(element: str, shape: tuple[int, int], most: int) -> np.ndarray:
    low, high = {"s8": (-128, 127), "u8": (0, 255)}.get(element, (-most, most))
    return np.random.default_rng(1).integers(low, high + 1, shape)


def operands(form: Form, columns: int) -> tuple[np.ndarray, np.ndarray]:
    k = 128 // np.dtype(DTYPES[form.a]).itemsize
    a, b = (
        integers(t, (rows, k), 2 if form.held == "unsigned" else 4) for t, rows in ((form.a, 64), (form.b, columns))
    )
    return (a.clip(0), b.clip(0)) if form.satfinite else (a, b)


def expected(form: Form, a: np.ndarray, b: np.ndarray, sign: int = 1) -> np.ndarray:
    if form.held != "int":
        return 3 + sign * (a @ b.T)
    whole = STARTS["int"] + a @ b.T
    return np.clip(whole, -(2**31), 2**31 - 1) if form.satfinite else whole.astype(np.int32)


def bits(element: str, matrix: np.ndarray) -> np.ndarray:
    return encoded(element, matrix).astype(DTYPES[element])


def run(name: str, tiles: list[np.ndarray], out: np.ndarray, *start: float, shmem_size: int = 0) -> np.ndarray:
    maps = [GPU.create_tensor_map(tile.view(np.uint8), box_dim=(len(tile), 128), swizzle="128B") for tile in tiles]
    config = simulate.Config(grid=1, block=128, shmem_size=shmem_size)
    report = GPU.launch(config, GPU.compile(SOURCE, name), *maps, *start, out)
    assert report.errors == ()
    return out


@pytest.mark.parametrize("case", WGMMA, ids=lambda case: f"{case[0]}-{case[1]}{'-rs' * case[2]}{'-negated' * case[3]}")
def test_wgmma(case):
    form, n, _, negated = case
    a, b = operands(form, n)
    out = np.full((64, n), -1, SUMS[form.held])
    tiles = [bits(form.a, a), bits(form.b, b)]
    found = run(wgmma_name(*case), tiles, out, STARTS[form.held], shmem_size=(64 + n) * 128)
    assert np.array_equal(found, expected(form, a, b, -1 if negated else 1))


@pytest.mark.parametrize("form", MMA, ids=str)
def test_mma(form):
    a, b = operands(form, 64)
    out = np.full((64, 16), -1, SUMS[form.held])
    found = run(mma_name(form), [bits(form.a, a), bits(form.b, b)], out, STARTS[form.held])
    assert np.array_equal(found, expected(form, a, b[:16]))


def test_mma_of_transposed_tiles():
    a, b = operands(BF16, 64)
    tiles = [np.ascontiguousarray(bits("bf16", each).T) for each in (a, b)]
    found = run(mma_name(BF16, "MN"), tiles, np.full((64, 16), np.nan, np.float32), 3.0)
    assert np.array_equal(found, expected(BF16, a, b[:16]))


@pytest.mark.parametrize("majors", [("K", "MN"), ("MN", "K")], ids="-".join)
def test_wgmma_without_a_swizzle(majors):
    a, b = integers("bf16", (64, 32), 8), integers("bf16", (96, 32), 8)
    stored = [bits("bf16", each if major == "K" else each.T) for each, major in zip((a, b), majors, strict=True)]
    maps = [GPU.create_tensor_map(np.ascontiguousarray(each), box_dim=(each.shape[0], 8)) for each in stored]
    out = np.full((64, 96), np.nan, np.float32)
    config = simulate.Config(grid=1, block=128, shmem_size=(64 + 96) * 64)
    assert GPU.launch(config, GPU.compile(SOURCE, plain_name(*majors)), *maps, out).errors == ()
    assert np.array_equal(out, a @ b.T)


def test_wgmma_of_typed_tiles():
    """In the test, arrays are the arguments for typed maps, and the operands A and B consist of several boxes."""
    a, b = (integers("f16", shape, 8).astype(np.float16) for shape in ((64, 128), (128, 128)))
    out = np.full((64, 128), np.nan, np.float32)
    config = simulate.Config(grid=1, block=128, shmem_size=(64 + 128) * 256)
    assert GPU.launch(config, GPU.compile(SOURCE, "typed_product<128>"), a, b, out).errors == ()
    assert np.array_equal(out, a.astype(float) @ b.astype(float))
