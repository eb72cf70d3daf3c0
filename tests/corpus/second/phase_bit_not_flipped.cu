// wrong: race
// The phase bit of the ring does not flip when the stage index returns to 0. From the second round on, the consumer waits for the parity of the preceding phase, which has completed (PTX ISA, mbarrier.test_wait: phaseParity of the current or the immediately preceding phase).
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [6, 32], "dtype": "float32"}, {"zeros": [6, 32], "dtype": "float32"}]}
typedef unsigned int u32;
typedef unsigned long long u64;
__device__ u32 s2u(const void* p) { return (u32)__cvta_generic_to_shared(p); }

template <int N>
struct Ring {
  u64 full[N], empty[N];
  __device__ void init(u32 consumers) {
    for (int i = 0; i < N; ++i) {
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(s2u(&full[i])));
      asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(s2u(&empty[i])), "r"(consumers));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __device__ static void wait(u64& b, u32 parity) {
    u32 ok;
    do asm volatile("{.reg .pred q; mbarrier.try_wait.parity.shared.b64 q, [%1], %2; selp.b32 %0, 1, 0, q;}"
                    : "=r"(ok) : "r"(s2u(&b)), "r"(parity) : "memory");
    while (!ok);
  }
};

struct Cursor {
  u32 stage = 0, phase;
  __device__ explicit Cursor(u32 p) : phase(p) {}
  __device__ void advance_producer() { if (++stage == 2) { stage = 0; phase ^= 1; } }
  __device__ void advance_consumer() { if (++stage == 2) { stage = 0; } }  // <-- here
};

extern "C" __global__ void kernel(const float* in, float* out) {
  __shared__ alignas(128) float buf[2][32];
  __shared__ Ring<2> ring;
  if (threadIdx.x == 0) ring.init(32);
  __syncthreads();
  if (threadIdx.x == 32) {
    Cursor at(1);
    for (int k = 0; k < 6; ++k, at.advance_producer()) {
      ring.wait(ring.empty[at.stage], at.phase);
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 128;" ::"r"(s2u(&ring.full[at.stage])) : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"  // <-- here
                   ::"r"(s2u(buf[at.stage])), "l"(in + 32 * k), "r"(s2u(&ring.full[at.stage])) : "memory");  // <-- here
    }
  } else if (threadIdx.x < 32) {
    Cursor at(0);
    for (int k = 0; k < 6; ++k, at.advance_consumer()) {
      ring.wait(ring.full[at.stage], at.phase);  // <-- here
      out[32 * k + threadIdx.x] = buf[at.stage][threadIdx.x];  // <-- here
      asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(s2u(&ring.empty[at.stage])) : "memory");
    }
  }
}
