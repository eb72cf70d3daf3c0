"""The functions and values that several tests of the wgmma headers share."""

from __future__ import annotations

from itertools import product

from cuda_tma.enums import TensorMapSwizzle

COLUMNS = (64, 192, 256)
SWIZZLES = (TensorMapSwizzle.SWIZZLE_32B, TensorMapSwizzle.SWIZZLE_64B, TensorMapSwizzle.SWIZZLE_128B)
MULTIPLICATIONS = [
    f"{{ float (&sums)[{n // 2}] = *reinterpret_cast<float (*)[{n // 2}]>(all); wgmma_fence();"
    f" wgmma<Input::{t}, Major::{a}, Major::{b}>(sums, x, y, flag); wgmma_commit(); wgmma_wait<0>(sums); }}"
    for n, t, a, b in product(COLUMNS, ("bf16", "f16"), ("K", "MN"), ("K", "MN"))
]
OTHER_STATEMENTS = [
    *(f"x = k_major<{mode.name}>(tile); y = mn_major<{mode.name}>(tile, 64).advance(32);" for mode in SWIZZLES),
    "x = k_major<SWIZZLE_NONE>(tile, 1024, 128); y = mn_major<SWIZZLE_NONE>(tile, 128, 1024);",
    "x.bits = matrix_descriptor_bits<SWIZZLE_NONE>(0, 128, 256);",
    "wgmma_wait<1>(); unsigned word = 0; int number = 0; pin(all); pin(word); pin(number);",
]


def kernel(statements: list[str]) -> str:
    return f"""
#include <cuda_tma/wgmma.cuh>
using namespace cuda_tma;
extern "C" __global__ void __launch_bounds__(384, 1) kernel(float* out, bool flag) {{
    __shared__ alignas(1024) char tile[1 << 13];
    float all[128];
    for (int i = 0; i < 128; ++i) all[i] = out[i];
    MatrixDescriptor x = k_major(tile), y = x;
    {" ".join(statements)}
    for (int i = 0; i < 128; ++i) out[i] = all[i] + (x.bits ^ y.bits);
}}
"""
