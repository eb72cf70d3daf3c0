"""A program of cuda.core whose kernel waits for a phase that never completes, because the copy of an empty tile signals
no barrier."""

from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = r"""
extern "C" __global__ void copy(const float* in, float* out, int count) {
    __shared__ alignas(128) float tile[64];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned at = (unsigned)__cvta_generic_to_shared(&barrier), to = (unsigned)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at));
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __syncthreads();
    if (threadIdx.x == 0 && count > 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" :: "r"(at) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                     :: "r"(to), "l"(in), "r"(at) : "memory");
    }
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra again; }"  // wrong
                 :: "r"(at) : "memory");
    out[threadIdx.x] = tile[threadIdx.x];
}
"""
device = Device()
device.set_current()
stream = device.create_stream()
program = Program(SOURCE, code_type="c++", options=ProgramOptions(arch=f"sm_{device.arch}"))
kernel = program.compile("cubin").get_kernel("copy")
given, out = device.allocate(256, stream=stream), device.allocate(256, stream=stream)
launch(stream, LaunchConfig(grid=1, block=64), kernel, given, out, 0)
stream.sync()
