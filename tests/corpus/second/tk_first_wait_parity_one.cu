// wrong: race, deadlock
// The consumer's first wait for a fresh semaphore has parity 1, like the producer's first wait. The phase before the first phase counts as complete, so the wait returns at once (PTX ISA, mbarrier.test_wait: waiting on the parity of the immediately preceding phase returns true).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 1024, "arguments": [{"arange": [16, 16], "dtype": "float32"}, {"map": 0, "box_dim": [16, 16], "swizzle": "NONE"}, {"zeros": [256], "dtype": "float32"}]}
namespace kittens {
struct alignas(64) tma_descriptor { unsigned long long opaque[16]; };
struct semaphore { unsigned long long value; };
template <int R, int C> struct alignas(128) st_fl { float data[R * C]; static constexpr unsigned bytes = R * C * 4; };
__device__ static inline unsigned addr(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ static inline void init_semaphore(semaphore& s, int threads, int transactions) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(addr(&s)), "r"(threads + transactions));
}
__device__ static inline void wait(semaphore& s, int kPhaseBit) {
  asm volatile("{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
               "@P1 bra.uni DONE;\nbra.uni LAB_WAIT;\nDONE:\n}\n" ::"r"(addr(&s)), "r"(kPhaseBit) : "memory");
}
namespace tma {
__device__ static inline void expect_bytes(semaphore& s, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(addr(&s)), "r"(bytes) : "memory");
}
template <typename ST> __device__ static inline void load_async(ST& dst, const tma_descriptor& src, int r, int c, semaphore& s) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
               ::"r"(addr(&dst)), "l"(&src), "r"(addr(&s)), "r"(c), "r"(r) : "memory");
}
}  // namespace tma
}  // namespace kittens
using namespace kittens;

extern "C" __global__ void kernel(const float*, const __grid_constant__ tma_descriptor gl, float* out) {
  extern __shared__ __align__(128) int shm[];
  auto& tile = *reinterpret_cast<st_fl<16, 16>*>(shm);
  __shared__ semaphore arrived;
  if (threadIdx.x == 0) {
    init_semaphore(arrived, 0, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    tma::expect_bytes(arrived, tile.bytes);
    tma::load_async(tile, gl, 0, 0, arrived);  // <-- here
  }
  __syncthreads();
  int tic = 1;
  wait(arrived, tic);  // <-- here
  for (int i = threadIdx.x; i < 256; i += 32) out[i] = tile.data[i] * 2.f;  // <-- here
}
