"""Tests of tensor maps with 4-bit elements, and of the matrix products that read the tiles (NVIDIA/cutlass#3236)."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate._matrix.padded import decoded_packed

from ._kernels import PRELUDE, form

# The map loads 128 rows of 128 elements, which are 8192 bytes without gaps. The matrix B consists of the first 16 rows
# of A, and all scales are 1.
SOURCE = """
#include <cuda_tma/tma.cuh>
using cuda_tma::TensorMap;
extern "C" __global__ void k(const __grid_constant__ TensorMap map, u32* out, u32 form) {
    __shared__ alignas(1024) unsigned char tile[128 * ROW_BYTES];
    __shared__ alignas(8) u64 full, done;
    __shared__ u32 base;
    const int t = threadIdx.x;
    if (t == 0) {
        INIT(&full, 1);
        INIT(&done, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (t < 32) ALLOC(&base, 64);
    __syncthreads();
    for (u32 c = 0; c < 8; ++c) ST(base + quarter() + 32 + c, 0x7f7f7f7f);
    WAIT_ST();
    __syncthreads();
    if (t == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 8192;" :: "r"(at(&full)) : "memory");
        asm volatile("cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes"
            " [%0], [%1, {%2, %2, %2}], [%3];" :: "r"(at(tile)), "l"(&map), "r"(0), "r"(at(&full)) : "memory");
        WAIT(&full, 0);
        for (u32 step = 0; step < ROW_BYTES / 32; ++step) {
            const u64 start = (u64(at(tile) + 32 * step) & 0x3ffff) >> 4;
            const u64 matrix = start | u64(8 * ROW_BYTES / 16) << 32 | 1ull << 46 | SWIZZLE << 61;
            asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 0; tcgen05.mma.cta_group::1.kind::KIND.block_scale"
                " [%0], %1, %1, %2, [%4], [%5], p; }" :: "r"(base), "l"(matrix), "r"(form), "r"(step), "r"(base + 32),
                "r"(base + 36) : "memory");
        }
        COMMIT(&done);
    }
    WAIT(&done, 0);
    for (u32 c = 0; c < 16; ++c) {
        u32 x;
        LD(x, base + quarter() + c);
        WAIT_LD();
        out[t * 16 + c] = x;
    }
    __syncthreads();
    if (t < 32) DEALLOC(base, 64);
}
"""
CASES = [  # Each case has a type of the map, a swizzle, the code of the swizzle, the bytes of a row, and a product.
    ("16U4_ALIGN16B", "128B", 2, 128, "mxf8f6f4", 5),
    ("16U4_ALIGN8B", "64B", 4, 64, "mxf4", 1),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_each_type_of_the_map_has_its_kind_of_product(case):
    type_, swizzle, code, row_bytes, kind, element = case
    gpu = simulate.Device("10.0", schedules=1)
    packed = np.random.default_rng(1).integers(0, 256, (1, 128, 64), np.uint8)
    tensor_map = gpu.create_tensor_map(packed, box_dim=(1, 128, 128), data_type=type_, swizzle=swizzle)
    assert tensor_map.params.global_strides == (64, 8192)
    source = SOURCE.replace("KIND", kind).replace("ROW_BYTES", str(row_bytes)).replace("SWIZZLE", f"{code}ull")
    out = np.zeros((128, 16), np.uint32)
    bits = form(128, 16, 0, element, element, 1 << 23)
    gpu.launch(simulate.Config(1, 128), gpu.compile(PRELUDE + source, "k"), tensor_map, out, bits).raise_for_errors()
    numbers = decoded_packed(packed[0])
    assert np.array_equal(out.view(np.float32), numbers @ numbers[:16].T)
