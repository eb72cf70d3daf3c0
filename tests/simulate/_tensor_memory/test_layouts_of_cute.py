"""Tests that compare a report of `cuda_tma.layouts` about a store to tensor memory with a kernel that contains the
store."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from cuda_tma import layouts, simulate
from tests.tcgen05_bugs import PRELUDE

# The kernel loads sums of f32 from columns 0 to 127, packs pairs as bf16, and stores them from column 32 on. Operand A
# has the size 128 x 64.
KERNEL = (
    PRELUDE.replace("1 << 4;  // f16", "1 << 4 | 1 << 7 | 1 << 10;  // bf16")
    + """
extern "C" __global__ void k(const float* sums, const u16* b, float* out, int base) {
    __shared__ Shared s;
    __shared__ alignas(128) u16 factor[4][256];
    const u32 t = begin(s, 256), row = threadIdx.x;
    for (int i = row; i < 1024; i += 128) factor[0][i] = b[i];
    FENCE_PROXY();
    for (int c = 0; c < 128; ++c) ST(lanes(t + c), __float_as_uint(sums[row * 128 + c]));
    WAIT_ST();
    for (int c = 0; c < 64; ++c) {
        u32 low, high, packed;
        LD(low, lanes(t + 2 * c));
        LD(high, lanes(t + 2 * c + 1));
        WAIT_LD();
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
            : "=r"(packed) : "f"(__uint_as_float(high)), "f"(__uint_as_float(low)));
        ST(lanes(t + 192 + c), packed);
    }
    WAIT_ST();
    for (int c = 0; c < 64; ++c) {  // after all loads: the target overlaps the sums
        u32 packed;
        LD(packed, lanes(t + 192 + c));
        WAIT_LD();
        ST(lanes(t + 32 + c), packed);
    }
    WAIT_ST();
    __syncthreads();
    if (row == 0) {
        for (int k = 0; k < 4; ++k) MMA_LEFT(t + 160, t + base + 8 * k, factor[k], k);
        COMMIT(&s.done);
    }
    WAIT(&s.done, 0);
    for (int n = 0; n < 16; ++n) {
        u32 x;
        LD(x, lanes(t + 160 + n));
        WAIT_LD();
        out[row * 16 + n] = __uint_as_float(x);
    }
    end(t, 256);
}
"""
)
STORE, FACTOR = "tmem:bf16x2:(128,64):(65536,1)+32", "tmem.a:bf16:((128,16),1,4):((64,1),0,16)"


@pytest.mark.parametrize("base", [0, 32])
def test_a_product_is_right_if_the_layouts_are_equal(base):
    gpu = simulate.Device("10.0")
    rng = np.random.default_rng(0)
    sums = rng.integers(-4, 5, (128, 128)).astype(np.float32)
    factor = rng.integers(-4, 5, (16, 64)).astype(np.float32)
    # The operand has four blocks of K. Each block has two core matrices side by side in K, with 8 rows of 16 bytes.
    blocks = factor.reshape(16, 4, 2, 8).transpose(1, 2, 0, 3).astype(ml_dtypes.bfloat16).view(np.uint16)
    out = np.zeros((128, 16), np.float32)
    report = gpu.launch(simulate.Config(1, 128), gpu.compile(KERNEL, "k"), sums, blocks.ravel(), out, base)
    report.raise_for_errors()
    found = layouts.compare(STORE, f"{FACTOR}+{base}" if base else FACTOR)
    assert found.equal == np.array_equal(out, sums[:, :64] @ factor.T) == (base == 32)
