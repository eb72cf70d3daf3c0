// wrong: wgmma-order
// After the first wgmma, the kernel loads the second fragment of A into the registers of the first fragment, which the wgmma may still read. The registers are free only after wait_group (PTX ISA, wgmma.mma_async: modifying its registers before wgmma.wait_group is undefined).
// launch: {"grid": [1], "block": [128], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [2, 128, 4], "dtype": "uint32"}, {"arange": [8, 16], "dtype": "float16"}, {"zeros": [128, 4], "dtype": "float32"}]}
// hand-scheduled RS main loop: one fragment's registers for every k block
typedef unsigned long long u64;
static __device__ u64 k_major(const void* p) {
  return (u64)((unsigned)__cvta_generic_to_shared(p) >> 4 & 0x3FFF) | (u64)8 << 16 | (u64)8 << 32;
}

extern "C" __global__ void __launch_bounds__(128) kernel(const uint4* fragments, const unsigned short* B, float* D) {
  __shared__ alignas(128) unsigned short sB[128];
  const int t = threadIdx.x;
  sB[t % 16 / 8 * 64 + t / 16 * 8 + t % 8] = B[t];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  asm volatile("{\n"  // <-- here
               ".reg .b32 a<4>;\n"  // <-- here
               "ld.global.v4.b32 {a0, a1, a2, a3}, [%4];\n"  // <-- here
               "wgmma.fence.sync.aligned;\n"  // <-- here
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {a0, a1, a2, a3}, %5, 1, 1, 1, 0;\n"  // <-- here
               "wgmma.commit_group.sync.aligned;\n"  // <-- here
               "ld.global.v4.b32 {a0, a1, a2, a3}, [%4 + 2048];\n"  // <-- here
               "wgmma.fence.sync.aligned;\n"  // <-- here
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {a0, a1, a2, a3}, %5, 1, 1, 1, 0;\n"  // <-- here
               "wgmma.commit_group.sync.aligned;\n"  // <-- here
               "wgmma.wait_group.sync.aligned 0;\n"  // <-- here
               "}"  // <-- here
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)  // <-- here
               : "l"(fragments + t), "l"(k_major(sB)) : "memory");  // <-- here
  reinterpret_cast<float4*>(D)[t] = make_float4(d0, d1, d2, d3);
}
