// right
// The receiver reads data of another block with relaxed loads and without a fence. One store writes a 64-bit word with value and flag, so a word with the new flag has the new value (NCCL's LL protocol; PTX ISA, Memory consistency model: no tearing within a strong scalar access).
// launch: {"grid": [2], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [3, 64], "dtype": "uint32"}, {"zeros": [3, 64], "dtype": "uint32"}, {"zeros": [2, 64], "dtype": "uint64"}, {"zeros": [64], "dtype": "uint32"}]}
// result: argument 1 equals a0 * 7
typedef unsigned long long u64;
constexpr int kSlots = 2, kSteps = 3;

struct LLFifo {
  u64* lines;      // The array [kSlots][64] has the data in the low half of a word and the flag in the high half.
  unsigned* head;  // The array [64] contains the number of received steps.
  __device__ void send(int step, unsigned data) const {
    if (step >= kSlots) {
      unsigned taken;
      do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(taken) : "l"(head + threadIdx.x) : "memory");
      while (taken < step - kSlots + 1u);
    }
    const u64 line = (u64)(step + 1) << 32 | data;
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(lines + step % kSlots * 64 + threadIdx.x), "l"(line) : "memory");
  }
  __device__ unsigned receive(int step) const {
    u64 line;
    do asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(line) : "l"(lines + step % kSlots * 64 + threadIdx.x) : "memory");
    while (line >> 32 != step + 1u);
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(head + threadIdx.x), "r"(step + 1) : "memory");
    return (unsigned)line;
  }
};

extern "C" __global__ void kernel(const unsigned* in, unsigned* out, u64* lines, unsigned* head) {
  const LLFifo fifo{lines, head};
  for (int step = 0; step < kSteps; ++step) {
    const int i = step * 64 + threadIdx.x;
    if (blockIdx.x == 0) fifo.send(step, in[i] * 7);
    else out[i] = fifo.receive(step);
  }
}
