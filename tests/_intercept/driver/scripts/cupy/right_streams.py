"""A CuPy program with streams, events, pinned and managed memory, asynchronous copies, and a kernel that waits for a
TMA copy."""

import cupy as cp
import numpy as np

stream = cp.cuda.Stream(non_blocking=True)
pinned = cp.cuda.alloc_pinned_memory(400)
host = np.frombuffer(pinned, np.float32, 100)
host[...] = np.arange(100)
device = cp.empty(100, np.float32)
begin, end = cp.cuda.Event(), cp.cuda.Event()
with stream:
    begin.record()
    device.set(host)
    doubled = device * 2
    end.record()
end.synchronize()
assert cp.cuda.get_elapsed_time(begin, end) >= 0
assert (doubled.get(stream=stream) == 2 * host).all()

with cp.cuda.using_allocator(cp.cuda.MemoryPool(cp.cuda.malloc_managed).malloc):
    managed = cp.arange(8)
assert (managed.get() == np.arange(8)).all()

copy = cp.RawKernel(
    r"""
extern "C" __global__ void copy(const float* in, float* out) {
    __shared__ alignas(128) float tile[32];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned at = (unsigned)__cvta_generic_to_shared(&barrier), to = (unsigned)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 128;" :: "r"(at) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"
                     :: "r"(to), "l"(in), "r"(at) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra again; }"
                 :: "r"(at) : "memory");
    out[threadIdx.x] = tile[threadIdx.x];
}
""",
    "copy",
)
out = cp.zeros(32, np.float32)
copy((1,), (32,), (device, out))
assert (out.get() == host[:32]).all()
