"""A program of cuda.core with a bulk store from shared memory that threads wrote without a fence of the async proxy."""

from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = r"""
extern "C" __global__ void store(const float* in, float* out) {
    __shared__ alignas(128) float tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    unsigned from = (unsigned)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" :: "l"(out), "r"(from)); // wrong
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
"""
device = Device()
device.set_current()
stream = device.create_stream()
program = Program(SOURCE, code_type="c++", options=ProgramOptions(arch=f"sm_{device.arch}"))
kernel = program.compile("cubin").get_kernel("store")
given, out = device.allocate(256, stream=stream), device.allocate(256, stream=stream)
given.fill(0, stream=stream)
launch(stream, LaunchConfig(grid=1, block=64), kernel, given, out)
stream.sync()
