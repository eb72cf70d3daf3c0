"""Kernels of Triton for sm_120: products of scaled factors, and products and attention of 16 and 8 bits.

``python triton_kernels.py CASE`` launches a kernel and compares its result with NumPy's. Without a name, the script
lists the cases. Run the script by ``../sm100_corpus/run_corpus.py --target sm_120``.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
import triton
import triton.language as tl

DEVICE = "cuda"
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
FLOAT8 = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


@triton.jit
def scaled_product(
    a, a_scales, b, b_scales, c, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, A_TYPE: tl.constexpr, B_TYPE: tl.constexpr,
    A_EACH: tl.constexpr, B_EACH: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    a_k, b_k, group = tl.arange(0, BK // A_EACH), tl.arange(0, BK // B_EACH), tl.arange(0, BK // GROUP)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(a + rows[:, None] * (K // A_EACH) + k * (BK // A_EACH) + a_k[None, :])
        y = tl.load(b + columns[None, :] * (K // B_EACH) + k * (BK // B_EACH) + b_k[:, None])
        x_scales = tl.load(a_scales + rows[:, None] * (K // GROUP) + k * (BK // GROUP) + group[None, :])
        y_scales = tl.load(b_scales + columns[:, None] * (K // GROUP) + k * (BK // GROUP) + group[None, :])
        acc = tl.dot_scaled(x, x_scales, A_TYPE, y, y_scales, B_TYPE, acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc)


@triton.jit
def product(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SUM: tl.constexpr):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    at = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), SUM)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(a + rows[:, None] * K + k * BK + at[None, :])
        y = tl.load(b + columns[None, :] * K + k * BK + at[:, None])
        acc = tl.dot(x, y, acc, out_dtype=SUM)
    tl.store(c + rows[:, None] * N + columns[None, :], acc)


def small(seed: int, shape: tuple[int, int], dtype: torch.dtype) -> torch.Tensor:
    """Return small integers, which every type represents exactly."""
    found = np.random.default_rng(seed).integers(-4, 5, shape)
    return torch.from_numpy(found.astype(np.float32)).to(dtype).to(DEVICE)


def wide(tensor: torch.Tensor) -> np.ndarray:
    return tensor.cpu().to(torch.float64).numpy()


def operand(seed: int, shape: tuple[int, int], type_: str) -> tuple[torch.Tensor, np.ndarray, int]:
    """Return an operand, its numbers, and the number of elements in each byte."""
    if type_ != "e2m1":
        found = small(seed, shape, FLOAT8[type_])
        return found, wide(found), 1
    codes = np.random.default_rng(seed).integers(0, 16, shape, np.uint8)
    numbers = np.where(codes & 8, -1, 1) * E2M1[codes & 7]
    return torch.from_numpy(codes[:, ::2] | codes[:, 1::2] << 4).to(DEVICE), numbers, 2


def scales(seed: int, shape: tuple[int, int], group: int) -> tuple[torch.Tensor, np.ndarray]:
    """Return scales of ue8m0 for groups of 32 elements, or of e4m3 for groups of 16, and their numbers."""
    if group == 16:
        found = small(seed, shape, torch.float32).abs().add(1).to(torch.float8_e4m3fn)
        return found, wide(found)
    codes = np.random.default_rng(seed).integers(124, 131, shape, np.uint8)
    return torch.from_numpy(codes).to(DEVICE), np.exp2(codes.astype(np.float64) - 127)


def same(found: torch.Tensor, expected: np.ndarray, bound: float) -> None:
    """Compare a result with the expected result; their differences must be within a bound relative to the largest
    value.
    """
    off = np.abs(wide(found) - expected).max() / np.abs(expected).max()
    print(f"largest difference {off:.3g}, bound {bound:.3g}")
    if not off <= bound:
        sys.exit("the result differs from NumPy's")


def run_scaled(a_type, b_type, M=64, N=64, K=128, block=(32, 32, 128), group=32, **options):
    a, a_numbers, a_each = operand(1, (M, K), a_type)
    b, b_numbers, b_each = operand(2, (N, K), b_type)
    (a_scales, a_sizes), (b_scales, b_sizes) = (
        scales(seed, (rows, K // group), group) for seed, rows in ((3, M), (4, N))
    )
    c = torch.zeros((M, N), dtype=torch.float32, device=DEVICE)
    BM, BN, BK = block
    types = BM, BN, BK, a_type, b_type, a_each, b_each, group
    scaled_product[(M // BM, N // BN)](a, a_scales, b, b_scales, c, N, K, *types, **options)
    left, right = a_numbers * np.repeat(a_sizes, group, axis=1), b_numbers * np.repeat(b_sizes, group, axis=1)
    same(c, left @ right.T, 2.0**-20)


def run_product(dtype, out=torch.float32, M=64, N=64, K=128):
    a, b = small(1, (M, K), dtype), small(2, (N, K), dtype)
    c = torch.zeros((M, N), dtype=out, device=DEVICE)
    total = tl.int32 if out == torch.int32 else tl.float32
    product[(M // 32, N // 32)](a, b, c, N, K, 32, 32, 64, total)
    same(c, wide(a) @ wide(b).T, 0.0)


CASES = {
    "mxfp8-e4m3": lambda: run_scaled("e4m3", "e4m3"),
    "mxfp8-e5m2": lambda: run_scaled("e5m2", "e5m2"),
    "mxfp8-e5m2-e4m3": lambda: run_scaled("e5m2", "e4m3"),
    "mxfp8-large": lambda: run_scaled("e4m3", "e5m2", 128, 128, 256, (64, 128, 128)),
    "mxfp8-8-warps": lambda: run_scaled("e4m3", "e4m3", 128, 128, 128, (128, 128, 64), num_warps=8),
    "mxfp4": lambda: run_scaled("e2m1", "e2m1"),
    "mxfp4-large": lambda: run_scaled("e2m1", "e2m1", 128, 128, 512, (64, 64, 256)),
    "nvfp4": lambda: run_scaled("e2m1", "e2m1", group=16),
    "nvfp4-large": lambda: run_scaled("e2m1", "e2m1", 128, 128, 512, (64, 64, 256), group=16),
    "nvfp4-8-warps": lambda: run_scaled("e2m1", "e2m1", 128, 128, 256, (128, 64, 128), group=16, num_warps=8),
    "mixed-e4m3-e2m1": lambda: run_scaled("e4m3", "e2m1"),
    "mixed-e2m1-e5m2": lambda: run_scaled("e2m1", "e5m2"),
    "f16": lambda: run_product(torch.float16),
    "bf16": lambda: run_product(torch.bfloat16),
    "e4m3": lambda: run_product(torch.float8_e4m3fn),
    "s8": lambda: run_product(torch.int8, torch.int32),
}

if __name__ == "__main__":
    if len(sys.argv) == 1:
        print("\n".join(CASES))
    else:
        CASES[sys.argv[1]]()
