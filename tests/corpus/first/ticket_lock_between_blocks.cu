// right
// A ticket lock protects ordinary reads and writes of shared statistics by all blocks. The accesses do not race, because an acquire of the serving counter and a release at its increment order the critical sections.
// launch: {"grid": [4], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [2], "dtype": "uint32"}, {"zeros": [2], "dtype": "int32"}]}
// result: argument 1 equals np.array([4, 106])
struct TicketLock {
  unsigned *next, *serving;
  __device__ unsigned lock() {
    const unsigned mine = atomicAdd(next, 1);
    unsigned now;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(serving) : "memory"); while (now != mine);
    return mine;
  }
  __device__ void unlock(unsigned mine) { asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(serving), "r"(mine + 1) : "memory"); }
};

extern "C" __global__ void kernel(unsigned* words, int* stats) {
  if (threadIdx.x) return;
  TicketLock lock{words, words + 1};
  const unsigned mine = lock.lock();
  stats[0] = stats[0] + 1;
  stats[1] = stats[1] + blockIdx.x + (mine == 3 ? 100 : 0);
  lock.unlock(mine);
}
