// right
// One lane repeatedly overwrites the tile index, an ordinary shared word, without a CTA barrier. The arrive at the full mbarrier releases the word, and the consumers' arrivals at the empty mbarrier order their reads before the next write (PTX ISA, mbarrier.arrive: .release; mbarrier.try_wait: .acquire).
// launch: {"grid": [3], "block": [96], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [8, 64], "dtype": "int32"}, {"zeros": [8, 64], "dtype": "int32"}, {"zeros": [1], "dtype": "uint32"}, {"scalar": 8, "dtype": "int32"}]}
// result: argument 1 equals a0 * 5 + np.arange(8, dtype=np.int32)[:, None]
struct DynamicPersistentTileScheduler {
  struct SharedStorage {
    int tile;
    unsigned long long full, empty;
  };
  SharedStorage& s;
  unsigned phase = 0;
  __device__ static unsigned addr(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
  __device__ static void wait(unsigned long long& b, unsigned parity) {
    unsigned done;
    do asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(addr(&b)), "r"(parity) : "memory");
    while (!done);
  }
  __device__ static void arrive(unsigned long long& b) { asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(addr(&b)) : "memory"); }
  __device__ void init() {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(addr(&s.full)) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(addr(&s.empty)) : "memory");
  }
  __device__ void publish(int tile) {  // This branch is for the lane of the scheduler.
    wait(s.empty, phase ^ 1);
    s.tile = tile;
    arrive(s.full);
    phase ^= 1;
  }
  __device__ int get_next_work() {  // This branch is for the consumer warps.
    wait(s.full, phase);
    const int tile = s.tile;
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(s.empty);
    phase ^= 1;
    return tile;
  }
};

extern "C" __global__ void kernel(const int* in, int* out, unsigned* tile_counter, int tiles) {
  __shared__ DynamicPersistentTileScheduler::SharedStorage storage;
  DynamicPersistentTileScheduler scheduler{storage};
  if (threadIdx.x == 0) scheduler.init();
  __syncthreads();
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0)
      for (int tile = 0; tile < tiles;) {
        tile = atomicAdd(tile_counter, 1u);
        scheduler.publish(tile);
      }
    return;
  }
  for (int tile; (tile = scheduler.get_next_work()) < tiles;) {
    const int i = tile * 64 + threadIdx.x - 32;
    out[i] = in[i] * 5 + tile;
  }
}
