// wrong: missing-proxy-fence
// The epilogue writes its tile through the generic proxy and synchronizes the CTA, but no thread executes fence.proxy.async before the TMA store reads the tile (PTX ISA, Async proxy; fence.proxy.async).
// launch: {"grid": [2, 2], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [16, 32], "dtype": "float32"}, {"map": 0, "box_dim": [8, 16], "swizzle": "NONE"}, {"scalar": 3.0, "dtype": "float32"}]}
struct alignas(64) TmaDescriptor { unsigned long long d[16]; };
struct SM90_TMA_STORE_2D {
  __device__ static void copy(TmaDescriptor const* desc, void const* smem, int c0, int c1) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
                 ::"l"(desc), "r"((unsigned)__cvta_generic_to_shared(smem)), "r"(c0), "r"(c1) : "memory");
  }
};
template <int Count> __device__ void tma_store_wait() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Count) : "memory"); }
__device__ void tma_store_arrive() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

template <int M, int N>
struct Epilogue {
  float* smem_d;
  template <typename Fn>
  __device__ void operator()(Fn fn, TmaDescriptor const& desc) const {
    for (int i = threadIdx.x; i < M * N; i += blockDim.x) {
      smem_d[i] = fn(i / N, i % N);  // <-- here
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      SM90_TMA_STORE_2D::copy(&desc, smem_d, blockIdx.x * N, blockIdx.y * M);  // <-- here
      tma_store_arrive();
      tma_store_wait<0>();
    }
  }
};

extern "C" __global__ void kernel(float*, const __grid_constant__ TmaDescriptor desc, float alpha) {
  __shared__ alignas(128) float smem_d[8 * 16];
  Epilogue<8, 16>{smem_d}([alpha](int m, int n) { return alpha * (m + n); }, desc);  // <-- here
}
