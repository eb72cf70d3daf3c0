// right
// The producer's first waits for the fresh barriers have parity 1, and its warp returns before the consumers. At its end, the producer waits until every stage is released, so no later signal and no copy is pending (CUTLASS, PipelineTmaAsync::producer_tail; PTX ISA, mbarrier.test_wait.parity).
// launch: {"grid": [2], "block": [96], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [2, 7, 64], "dtype": "float32"}, {"zeros": [2, 64], "dtype": "float32"}]}
// result: argument 1 equals a0.sum(axis=1)
__device__ __forceinline__ unsigned cast_smem(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

template <int Stages>
struct PipelineState {
  int index_ = 0;
  unsigned phase_ = 0;
  __device__ void operator++() {
    if (++index_ == Stages) { index_ = 0; phase_ ^= 1; }
  }
};

template <int Stages, int Elements>
struct PipelineTmaAsync {
  struct alignas(128) SharedStorage {
    float smem[Stages][Elements];
    unsigned long long full[Stages], empty[Stages];
  };
  SharedStorage& s;
  __device__ static void wait(unsigned long long& b, unsigned phase) {
    asm volatile("{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n@P1 bra DONE;\nbra LAB_WAIT;\nDONE:\n}"
                 ::"r"(cast_smem(&b)), "r"(phase) : "memory");
  }
  __device__ void init(unsigned consumers) {
    for (int i = 0; i < Stages; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(cast_smem(&s.full[i])) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(cast_smem(&s.empty[i])), "r"(consumers) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __device__ void producer_acquire(PipelineState<Stages> p) {
    wait(s.empty[p.index_], p.phase_ ^ 1);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(cast_smem(&s.full[p.index_])), "n"(Elements * 4) : "memory");
  }
  __device__ void producer_copy(PipelineState<Stages> p, const float* src) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(cast_smem(s.smem[p.index_])), "l"(src), "n"(Elements * 4), "r"(cast_smem(&s.full[p.index_])) : "memory");
  }
  __device__ void producer_tail(PipelineState<Stages> p) {
    for (int i = 0; i < Stages; ++i, ++p) wait(s.empty[p.index_], p.phase_ ^ 1);
  }
  __device__ void consumer_wait(PipelineState<Stages> p) { wait(s.full[p.index_], p.phase_); }
  __device__ void consumer_release(PipelineState<Stages> p) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(cast_smem(&s.empty[p.index_])) : "memory");
  }
};

extern "C" __global__ void kernel(const float* x, float* sums) {
  using Pipeline = PipelineTmaAsync<3, 64>;
  __shared__ Pipeline::SharedStorage storage;
  Pipeline pipeline{storage};
  if (threadIdx.x == 0) pipeline.init(64);
  __syncthreads();
  constexpr int k_tiles = 7;
  PipelineState<3> state;
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0) {
      for (int k = 0; k < k_tiles; ++k, ++state) {
        pipeline.producer_acquire(state);
        pipeline.producer_copy(state, x + (blockIdx.x * k_tiles + k) * 64);
      }
      pipeline.producer_tail(state);
    }
    return;
  }
  float sum = 0;
  for (int k = 0; k < k_tiles; ++k, ++state) {
    pipeline.consumer_wait(state);
    sum += storage.smem[state.index_][threadIdx.x - 32];
    pipeline.consumer_release(state);
  }
  sums[blockIdx.x * 64 + threadIdx.x - 32] = sum;
}
