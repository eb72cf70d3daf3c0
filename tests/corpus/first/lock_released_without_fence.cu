// wrong: race
// The spin lock uses relaxed atomics around a critical section of ordinary accesses. Neither the acquisition nor the release of the lock orders these accesses, so updates are lost (PTX ISA, Causality order: relaxed atomics do not synchronize without fences).
// launch: {"grid": [3], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [1], "dtype": "int32"}, {"zeros": [2], "dtype": "float32"}]}
struct SpinLock {
  int* word;
  __device__ void lock() { while (atomicCAS(word, 0, 1) != 0) {} }
  __device__ void unlock() { atomicExch(word, 0); }
};

extern "C" __global__ void kernel(int* lock_word, float* stats) {
  SpinLock lock{lock_word};
  if (threadIdx.x == 0) {
    lock.lock();
    stats[0] += 1.f + blockIdx.x;                                          // <-- here
    stats[1] = stats[1] < blockIdx.x ? (float)blockIdx.x : stats[1];  // <-- here
    lock.unlock();
  }
}
