// wrong: race, missing-proxy-fence
// The loop writes the staging tile again while the bulk store of the last iteration may still read it. commit_group has no cp.async.bulk.wait_group.read (PTX ISA, cp.async.bulk.wait_group).
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [4, 64], "dtype": "float32"}]}
class StorePipeline {
  unsigned src_;
  bool leader_;
 public:
  __device__ StorePipeline(const void* smem, bool leader) : src_((unsigned)__cvta_generic_to_shared(smem)), leader_(leader) {}
  __device__ void fence() const { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
  __device__ void store(float* dst, int bytes) const {
    if (!leader_) return;
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst), "r"(src_), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  }
  __device__ void drain() const { if (leader_) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
};

extern "C" __global__ void kernel(float* out) {
  __shared__ alignas(16) float staging[64];
  StorePipeline pipe(staging, threadIdx.x == 0);
  for (int it = 0; it < 4; ++it) {
    staging[threadIdx.x] = it * 100.f + threadIdx.x;  // <-- here
    pipe.fence();
    __syncthreads();
    pipe.store(out + 64 * it, 256);  // <-- here
    __syncthreads();
  }
  pipe.drain();
}
