"""A TMA copy whose barrier expects more bytes than the copy delivers."""

import cupy as cp
import numpy as np

device = cp.arange(100, dtype=np.float32)
copy = cp.RawKernel(
    r"""
extern "C" __global__ void copy(const float* in, float* out) {
    __shared__ alignas(128) float tile[32];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned at = (unsigned)__cvta_generic_to_shared(&barrier), to = (unsigned)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" :: "r"(at) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"
                     :: "r"(to), "l"(in), "r"(at) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra again; }"  // wrong
                 :: "r"(at) : "memory");
    out[threadIdx.x] = tile[threadIdx.x];
}
""",
    "copy",
)
out = cp.zeros(32, np.float32)
copy((1,), (32,), (device, out))
