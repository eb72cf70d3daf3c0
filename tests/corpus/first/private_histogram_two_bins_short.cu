// wrong: out-of-bounds, uninitialized-read
// The private histogram has eight bins, but values from 0 to 99 divided by 11 need ten bins (C++: an index past the end of an array is undefined; CUDA guide, local memory).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"random": [128], "dtype": "int32"}, {"zeros": [8], "dtype": "int32"}]}
struct PrivateHistogram {
  int bins[8];
  __device__ void clear() {
#pragma unroll 1
    for (int b = 0; b < 8; ++b) bins[b] = 0;
  }
  __device__ void add(int v) { bins[v / 11] += 1; }  // <-- here
};

extern "C" __global__ void kernel(const int* x, int* total) {
  PrivateHistogram h;
  h.clear();
#pragma unroll 1
  for (int i = 0; i < 4; ++i) h.add(x[32 * i + threadIdx.x]);  // <-- here
#pragma unroll 1
  for (int b = 0; b < 8; ++b) atomicAdd(total + b, h.bins[b]);
}
