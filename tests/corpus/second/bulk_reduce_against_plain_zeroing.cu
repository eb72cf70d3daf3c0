// wrong: race
// Each CTA adds its row to the output by cp.reduce.async.bulk. The first CTA first clears the output with ordinary stores, which are not ordered before the reductions of the other CTAs (PTX ISA, cp.reduce.async.bulk; Data races).
// launch: {"grid": [3], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [3, 32], "dtype": "float32"}, {"zeros": [32], "dtype": "float32"}]}
#define TO_SMEM(x) (unsigned)__cvta_generic_to_shared(x)

extern "C" __global__ void kernel(const float* rows, float* sum) {
  __shared__ __align__(16) float row[32];
  const int lane = threadIdx.x;
  if (blockIdx.x == 0) sum[lane] = 0.f;  // <-- here
  row[lane] = rows[32 * blockIdx.x + lane];
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncwarp();
  if (lane == 0) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 128;"  // <-- here
                 ::"l"(sum), "r"(TO_SMEM(row)) : "memory");  // <-- here
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
  }
}
