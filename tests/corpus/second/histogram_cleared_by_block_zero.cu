// wrong: race
// Block 0 clears the global histogram with ordinary stores, while other blocks may already add with atomics. The clears and the additions are unordered (PTX ISA, Conflict and data races: a weak write and an atomic to the same bytes).
// launch: {"grid": [3], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"random": [192], "dtype": "int32"}, {"zeros": [16], "dtype": "int32"}]}
template <int Bins>
struct Histogram {
  int* bins;
  __device__ void clear() const {
    for (int b = threadIdx.x; b < Bins; b += blockDim.x) bins[b] = 0;  // <-- here
    __syncthreads();
  }
  __device__ void add(int value) const { atomicAdd(bins + value % Bins, 1); }  // <-- here
};

extern "C" __global__ void kernel(const int* __restrict__ samples, int* bins) {
  Histogram<16> histogram{bins};
  if (blockIdx.x == 0) histogram.clear();  // <-- here
  __threadfence();
  histogram.add(samples[blockIdx.x * blockDim.x + threadIdx.x]);  // <-- here
}
