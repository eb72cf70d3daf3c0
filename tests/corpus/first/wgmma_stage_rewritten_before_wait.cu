// wrong: wgmma-order, race
// The loop refills the only A tile with the next K step directly after the commit. wgmma may still read the tile, because only the end of the loop waits (PTX ISA, wgmma.wait_group: reads of shared memory are complete only after the wait).
// launch: {"grid": [1], "block": [128], "cluster": null, "shmem_size": 0, "arguments": [{"random": [2, 1024], "dtype": "float16"}, {"random": [2, 128], "dtype": "float16"}, {"zeros": [128, 4], "dtype": "float32"}]}
#define SMEM(p) ((unsigned)__cvta_generic_to_shared(p))
#define DESC(p, l, s) ((unsigned long long)(SMEM(p) >> 4) | ((unsigned long long)((l) >> 4) << 16) | ((unsigned long long)((s) >> 4) << 32))

extern "C" __global__ void __launch_bounds__(128) kernel(const unsigned short* A, const unsigned short* B, float* C) {
  __shared__ alignas(128) unsigned short sA[1024];
  __shared__ alignas(128) unsigned short sB[2][128];
  float acc0 = 0, acc1 = 0, acc2 = 0, acc3 = 0;
  for (int i = 0; i < 2; ++i) sB[i][threadIdx.x] = B[128 * i + threadIdx.x];
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    for (int i = threadIdx.x; i < 1024; i += 128) sA[i] = A[1024 * k + i];  // <-- here
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync 0;" ::: "memory");
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"  // <-- here
                 : "+f"(acc0), "+f"(acc1), "+f"(acc2), "+f"(acc3) : "l"(DESC(sA, 1024, 128)), "l"(DESC(sB[k], 128, 128)) : "memory");  // <-- here
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  float* row = C + 4 * threadIdx.x;
  row[0] = acc0, row[1] = acc1, row[2] = acc2, row[3] = acc3;
}
