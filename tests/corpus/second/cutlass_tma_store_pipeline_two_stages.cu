// right
// The kernel overwrites a staging tile while one TMA store is still pending. wait_group.read 1 by the committing thread leaves only the store of the other stage pending, and all writers wait at the barrier that follows (CUTLASS, PipelineTmaStore; PTX ISA, cp.async.bulk.wait_group).
// launch: {"grid": [2], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [48, 32], "dtype": "float32"}, {"map": 0, "box_dim": [4, 32], "swizzle": "NONE"}, {"arange": [48, 32], "dtype": "float32"}]}
// result: argument 0 equals 2 * a2 + 1
struct alignas(64) TmaDescriptor { unsigned long long d[16]; };
template <int Stages>
struct PipelineTmaStore {
  bool leader;
  __device__ void producer_acquire() const {
    if (leader) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Stages - 1) : "memory");
    asm volatile("bar.sync 1, 64;" ::: "memory");
  }
  __device__ void producer_commit() const { if (leader) asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
  __device__ void producer_tail() const { if (leader) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
};

extern "C" __global__ void kernel(float*, const __grid_constant__ TmaDescriptor desc, const float* x) {
  constexpr int kStages = 2, kTiles = 6, kRows = 4;
  __shared__ alignas(128) float smem_d[kStages][kRows][32];
  const PipelineTmaStore<kStages> pipeline{threadIdx.x == 0};
  for (int tile = 0; tile < kTiles; ++tile) {
    const int row0 = (blockIdx.x * kTiles + tile) * kRows, stage = tile % kStages;
    pipeline.producer_acquire();
    for (int i = threadIdx.x; i < kRows * 32; i += 64) smem_d[stage][i / 32][i % 32] = 2 * x[row0 * 32 + i] + 1;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync 1, 64;" ::: "memory");
    if (threadIdx.x == 0)
      asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
                   ::"l"(&desc), "r"(0), "r"(row0), "r"((unsigned)__cvta_generic_to_shared(smem_d[stage])) : "memory");
    pipeline.producer_commit();
  }
  pipeline.producer_tail();
}
