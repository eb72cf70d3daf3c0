// wrong: uninitialized-read
// The thread keeps its candidates in a local array of eight, and stores only candidates above the threshold. The final loop reads all eight (C++: an automatic array has no initial value).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"random": [256], "dtype": "int32"}, {"zeros": [32], "dtype": "int32"}, {"scalar": 50, "dtype": "int32"}]}
extern "C" __global__ void kernel(const int* x, int* best, int threshold) {
  int candidate[8];
  int found = 0;
#pragma unroll 1
  for (int i = 0; i < 8; ++i) {
    const int v = x[32 * i + threadIdx.x];
    if (v >= threshold) candidate[found++] = v;
  }
  int top = 0;
#pragma unroll 1
  for (int i = 0; i < 8; ++i) top = max(top, candidate[(i + found) % 8]);  // <-- here
  best[threadIdx.x] = top;
}
