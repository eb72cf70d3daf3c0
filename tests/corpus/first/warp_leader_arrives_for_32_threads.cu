// wrong: barrier-use, deadlock, race
// The barrier counts one arrival per warp, but the leader of each warp arrives with a count of 32 (PTX ISA, mbarrier.arrive: the count must not exceed the phase's pending count).
// launch: {"grid": [1], "block": [128], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [128], "dtype": "int32"}, {"zeros": [128], "dtype": "int32"}]}
extern "C" __global__ void kernel(const int* a, int* b) {
  __shared__ int s[128];
  __shared__ unsigned long long arrived;
  const unsigned bar = (unsigned)__cvta_generic_to_shared(&arrived);
  const int warps = blockDim.x / 32;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(warps) : "memory");
  __syncthreads();
  s[threadIdx.x] = a[threadIdx.x];  // <-- here
  __syncwarp();
  if (threadIdx.x % 32 == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 32;" ::"r"(bar) : "memory");  // <-- here
  asm volatile("{\n\t.reg .pred ok;\n\tpoll:\n\tmbarrier.try_wait.parity.shared::cta.b64 ok, [%0], 0;\n\t@!ok bra poll;\n\t}" ::"r"(bar) : "memory");  // <-- here
  b[threadIdx.x] = s[127 - threadIdx.x];  // <-- here
}
