// wrong: barrier-divergence, deadlock, race
// Producers arrive at barrier 3 with a count of 64, and the consumer waits with a count of 96. All threads at a barrier must have the same count (PTX ISA, bar: the thread count b must be the same for all threads of one barrier).
// launch: {"grid": [1], "block": [96], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [64], "dtype": "int32"}, {"zeros": [32], "dtype": "int32"}]}
constexpr int kFilled = 3;
constexpr int kProducers = 64, kConsumers = 32;

extern "C" __global__ void kernel(const int* x, int* y) {
  __shared__ int buf[kProducers];
  if (threadIdx.x < kProducers) {
    buf[threadIdx.x] = x[threadIdx.x];  // <-- here
    asm volatile("barrier.cta.arrive %0, %1;" ::"n"(kFilled), "n"(kProducers) : "memory");  // <-- here
  } else {
    const int lane = threadIdx.x - kProducers;
    asm volatile("barrier.cta.sync %0, %1;" ::"n"(kFilled), "n"(kProducers + kConsumers) : "memory");  // <-- here
    y[lane] = buf[lane] + buf[lane + 32];  // <-- here
  }
}
