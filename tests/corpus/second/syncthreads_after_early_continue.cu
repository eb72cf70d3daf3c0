// wrong: barrier-divergence, deadlock
// Lanes whose row is empty skip the body of the loop, which contains an aligned bar.sync. Other lanes of their warp execute it (PTX ISA, barrier.sync.aligned: all threads of the warp must execute the same one).
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [64], "dtype": "int32"}, {"zeros": [64], "dtype": "int32"}]}
extern "C" __global__ void kernel(const int* length, int* out) {
  __shared__ int stash[64];
  for (int pass = 0; pass < 2; ++pass) {
    if (length[threadIdx.x] % 5 == pass) continue;  // nothing to do for this row  // <-- here
    stash[threadIdx.x] = length[threadIdx.x] + pass;
    asm volatile("bar.sync 0;" ::: "memory");  // <-- here
    out[threadIdx.x] += stash[(threadIdx.x + 1) % 64];
    asm volatile("bar.sync 0;" ::: "memory");  // <-- here
  }
}
