"""Kernels of Triton for sm_100 whose products have block scales: mxfp8, mxfp4, nvfp4, and mixed types.

``python triton_scaled.py CASE`` launches a kernel and compares its result with NumPy's. Without a name, the script
lists the cases.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
import triton
import triton.language as tl

DEVICE = "cuda"
NUMBERS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
FOUR_BITS = np.concatenate([NUMBERS, -NUMBERS])
FLOAT8 = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


@triton.jit
def scaled(
    a,
    a_scales,
    b,
    b_scales,
    c,
    N,
    K: tl.constexpr,
    A_TYPE: tl.constexpr,
    B_TYPE: tl.constexpr,
    A_PACK: tl.constexpr,
    B_PACK: tl.constexpr,
    BLOCK: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    STAGES: tl.constexpr,
):
    row = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    column = tl.program_id(1) * BN + tl.arange(0, BN)[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, num_stages=STAGES):
        block = k // BLOCK + tl.arange(0, BK // BLOCK)[None, :]
        left = tl.load(a + row * (K // A_PACK) + k // A_PACK + tl.arange(0, BK // A_PACK)[None, :])
        right = tl.load(b + column * (K // B_PACK) + k // B_PACK + tl.arange(0, BK // B_PACK)[None, :])
        of_left = tl.load(a_scales + row * (K // BLOCK) + block)
        of_right = tl.load(b_scales + column * (K // BLOCK) + block)
        acc = tl.dot_scaled(left, of_left, A_TYPE, right.T, of_right, B_TYPE, acc)
    tl.store(c + row * N + tl.program_id(1) * BN + tl.arange(0, BN)[None, :], acc)


def factor(rows: int, K: int, type_: str, seed: int) -> tuple[torch.Tensor, np.ndarray, int]:
    """Return a factor, its numbers, and the elements in each byte."""
    random = np.random.default_rng(seed)
    if type_ == "e2m1":
        packed = random.integers(0, 256, (rows, K // 2), np.uint8)
        return torch.from_numpy(packed), FOUR_BITS[np.stack([packed & 15, packed >> 4], -1)].reshape(rows, K), 2
    numbers = random.integers(-4, 5, (rows, K)).astype(np.float64)
    return torch.from_numpy(numbers).to(FLOAT8[type_]), numbers, 1


def scales(rows: int, columns: int, is_nvfp4: bool, seed: int) -> tuple[torch.Tensor, np.ndarray]:
    """Return scales whose products with small numbers are exact in f32."""
    random = np.random.default_rng(seed)
    if is_nvfp4:
        numbers = random.integers(1, 8, (rows, columns)) / 4
        return torch.from_numpy(numbers).to(torch.float8_e4m3fn), numbers
    codes = random.integers(125, 129, (rows, columns), np.uint8)
    return torch.from_numpy(codes), 2.0 ** (codes.astype(np.float64) - 127)


def run(a_type, b_type, M=128, N=128, K=256, block=(128, 128, 128), is_nvfp4=False, stages=1, **options):
    size = 16 if is_nvfp4 else 32
    (a, left, a_pack), (b, right, b_pack) = factor(M, K, a_type, 0), factor(N, K, b_type, 1)
    (of_a, of_left), (of_b, of_right) = (scales(rows, K // size, is_nvfp4, rows) for rows in (M, N))
    c = torch.empty((M, N), dtype=torch.float32, device=DEVICE)
    given = [each.to(DEVICE) for each in (a, of_a, b, of_b)]
    grid = M // block[0], N // block[1]
    scaled[grid](*given, c, N, K, a_type, b_type, a_pack, b_pack, size, *block, stages, **options)
    expected = (left * np.repeat(of_left, size, 1)) @ (right * np.repeat(of_right, size, 1)).T
    off = np.abs(c.cpu().double().numpy() - expected).max()
    print(f"largest difference {off:.3g}, bound 0")
    if off != 0:
        sys.exit("the result differs from NumPy's")


CASES = {
    "mxfp8": lambda: run("e4m3", "e4m3"),
    "mxfp8-e5m2": lambda: run("e5m2", "e4m3"),
    "mxfp8-n64": lambda: run("e4m3", "e4m3", N=64, block=(128, 64, 128)),
    "mxfp8-8-warps": lambda: run("e4m3", "e4m3", num_warps=8),
    "mxfp4": lambda: run("e2m1", "e2m1"),
    "mxfp4-n256": lambda: run("e2m1", "e2m1", N=256, block=(128, 256, 128)),
    "nvfp4": lambda: run("e2m1", "e2m1", is_nvfp4=True),
    "nvfp4-stages": lambda: run("e2m1", "e2m1", K=512, is_nvfp4=True, stages=3),
    "nvfp4-tiles": lambda: run("e2m1", "e2m1", M=256, N=256, is_nvfp4=True),
    "e4m3-e2m1": lambda: run("e4m3", "e2m1"),
    "e2m1-e5m2": lambda: run("e2m1", "e5m2"),
}

if __name__ == "__main__":
    if len(sys.argv) < 2:
        print("\n".join(CASES))
    for name in sys.argv[1:]:
        CASES[name]()
