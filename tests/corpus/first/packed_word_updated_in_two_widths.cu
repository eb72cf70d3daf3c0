// wrong: race
// One block adds to the low half of a packed (sum, count) word with a 32-bit atomic, and the other block replaces the whole word with a 64-bit compare-and-swap. Atomics of different sizes are not atomic with respect to each other (PTX ISA, Conflict and Morally strong: both must overlap completely).
// launch: {"grid": [2], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [1], "dtype": "uint64"}]}
using u64 = unsigned long long;

struct Packed {
  u64* word;
  __device__ void add_one() {
    u64 seen = atomicAdd(word, 0ull), want;  // <-- here
    do {
      want = seen;
      seen = atomicCAS(word, want, want + (1ull << 32) + 2);  // <-- here
    } while (seen != want);
  }
  __device__ void add_sum(unsigned n) { atomicAdd(reinterpret_cast<unsigned*>(word), n); }  // <-- here
};

extern "C" __global__ void kernel(u64* packed) {
  Packed p{packed};
  if (threadIdx.x) return;
  if (blockIdx.x == 0) p.add_one();  // <-- here
  else p.add_sum(5);                 // <-- here
}
