// right
// Two warpgroups exchange one probability tile only by bar.arrive and bar.sync. A last wait follows the last arrival at the empty barrier. bar.arrive synchronizes with the bar.sync of the same barrier (FlashAttention-3's named barriers; PTX ISA, barrier.cta; Synchronizes-with).
// launch: {"grid": [1], "block": [256], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [5, 128], "dtype": "float32"}, {"zeros": [128], "dtype": "float32"}, {"zeros": [128], "dtype": "float32"}]}
// result: argument 1 equals (a0 * np.array([[1], [2], [3], [4], [5]], np.float32))[:, ::-1].sum(axis=0)
enum class FwdNamedBarriers { PFull = 2, PEmpty = 3 };
namespace flash {
template <FwdNamedBarriers B> __device__ __forceinline__ void sync() { asm volatile("bar.sync %0, 256;" ::"n"((int)B) : "memory"); }
template <FwdNamedBarriers B> __device__ __forceinline__ void arrive() { asm volatile("bar.arrive %0, 256;" ::"n"((int)B) : "memory"); }
}  // namespace flash

struct SharedStorage { float smem_p[128]; float row_max[128]; };

__device__ void softmax_warpgroup(SharedStorage& s, const float* scores, int n_blocks) {
  float m = -1;
  for (int n = 0; n < n_blocks; ++n) {
    const float score = scores[n * 128 + threadIdx.x];
    m = fmaxf(m, score);
    flash::sync<FwdNamedBarriers::PEmpty>();
    s.smem_p[threadIdx.x] = score * (n + 1);
    s.row_max[threadIdx.x] = m;
    flash::arrive<FwdNamedBarriers::PFull>();
  }
  flash::sync<FwdNamedBarriers::PEmpty>();
}

__device__ void mma_warpgroup(SharedStorage& s, float* o, float* lse, int n_blocks) {
  const int t = threadIdx.x - 128;
  float acc = 0, m = 0;
  flash::arrive<FwdNamedBarriers::PEmpty>();
  for (int n = 0; n < n_blocks; ++n) {
    flash::sync<FwdNamedBarriers::PFull>();
    acc += s.smem_p[127 - t];
    m = s.row_max[127 - t];
    flash::arrive<FwdNamedBarriers::PEmpty>();
  }
  o[t] = acc;
  lse[t] = m;
}

extern "C" __global__ void kernel(const float* scores, float* o, float* lse) {
  __shared__ SharedStorage s;
  if (threadIdx.x < 128) softmax_warpgroup(s, scores, 5);
  else mma_warpgroup(s, o, lse, 5);
}
