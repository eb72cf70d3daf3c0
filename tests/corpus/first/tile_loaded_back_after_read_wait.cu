// wrong: race
// The second pass loads the tile that the first pass stored by TMA, after only wait_group.read. That wait covers the reads of the source, not the writes to global memory (PTX ISA, cp.async.bulk.wait_group: without .read the writes are visible).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [8, 8], "dtype": "int32"}, {"map": 0, "box_dim": [8, 8], "swizzle": "NONE"}, {"zeros": [64], "dtype": "int32"}]}
struct alignas(64) Map { unsigned long long d[16]; };
__device__ unsigned sh(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

extern "C" __global__ void kernel(int*, const __grid_constant__ Map m, int* out) {
  __shared__ alignas(128) int first[64], second[64];
  __shared__ unsigned long long bar;
  first[threadIdx.x] = threadIdx.x;
  first[threadIdx.x + 32] = threadIdx.x * 3;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(sh(&bar)) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {0, 0}], [%1];" ::"l"(&m), "r"(sh(first)) : "memory");  // <-- here
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;" ::: "memory");  // <-- here
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(sh(&bar)) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {0, 0}], [%2];" ::"r"(sh(second)), "l"(&m), "r"(sh(&bar)) : "memory");  // <-- here
  }
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra L; }" ::"r"(sh(&bar)) : "memory");
  out[threadIdx.x] = second[threadIdx.x];
  out[threadIdx.x + 32] = second[threadIdx.x + 32];
}
