// wrong: missing-proxy-fence
// fence.proxy.async precedes the shared stores instead of following them, so the stores are not ordered before the read of the async proxy (PTX ISA, membar/fence: a proxy fence orders the accesses before it in program order).
// launch: {"grid": [2], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [128], "dtype": "int32"}]}
// lowered as Triton would: every lane computes, predicates pick the one that issues
extern "C" __global__ void __launch_bounds__(32, 1) kernel(int* out) {
  __shared__ __align__(128) int global_smem[64];
  unsigned tid, pid;
  asm("mov.u32 %0, %%tid.x;" : "=r"(tid));
  asm("mov.u32 %0, %%ctaid.x;" : "=r"(pid));
  unsigned base = (unsigned)__cvta_generic_to_shared(global_smem);
  unsigned ptr = base + tid * 8;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(ptr), "r"(pid * 1000 + tid), "r"(tid) : "memory");  // <-- here
  asm volatile("bar.sync 0;" ::: "memory");
  asm volatile(
      "{\n\t.reg .pred %%issue;\n\t"
      "setp.eq.u32 %%issue, %3, 0;\n\t"
      "@%%issue cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n\t}"  // <-- here
      ::"l"(out + pid * 64), "r"(base), "r"(256), "r"(tid) : "memory");  // <-- here
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
