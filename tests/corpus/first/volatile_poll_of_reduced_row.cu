// wrong: race, missing-proxy-fence
// Block 0 polls the last word of a row with a volatile load, and treats a change as the end of the whole bulk reduction. The elements of the reduction have no order and no release (PTX ISA, cp.reduce.async.bulk: each element is relaxed.gpu, async proxy).
// launch: {"grid": [2], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [32], "dtype": "uint32"}, {"zeros": [32], "dtype": "uint32"}]}
typedef unsigned u32;

extern "C" __global__ void kernel(u32* row, u32* copy) {
  __shared__ alignas(16) u32 stage[32];
  if (blockIdx.x == 1) {
    stage[threadIdx.x] = threadIdx.x + 1;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (threadIdx.x == 0)
      asm volatile("{\n\t"  // <-- here
                   "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 128;\n\t"  // <-- here
                   "cp.async.bulk.commit_group;\n\t"
                   "cp.async.bulk.wait_group 0;\n\t}"
                   ::"l"(__cvta_generic_to_global(row)), "r"((u32)__cvta_generic_to_shared(stage)) : "memory");  // <-- here
    return;
  }
  while (*(volatile u32*)&row[31] == 0) {}  // <-- here
  copy[threadIdx.x] = row[threadIdx.x];     // <-- here
}
