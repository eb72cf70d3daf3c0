// wrong: uninitialized-read
// The kernel fills the ring in local memory only for the existing samples (n = 5 of 8), and the filter reads all 8 taps (C++: an automatic array without initializer has indeterminate values; PTX ISA, .local variables).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [32, 8], "dtype": "float32"}, {"arange": [32], "dtype": "int32"}, {"zeros": [32], "dtype": "float32"}, {"scalar": 5, "dtype": "int32"}]}
constexpr int kTaps = 8;

extern "C" __global__ void kernel(const float* samples, const int* start, float* filtered, int n) {
  float window[kTaps];
  const int row = threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < n; ++i) window[(start[row] + i) % kTaps] = samples[row * kTaps + i];
  float sum = 0;
#pragma unroll 1
  for (int tap = 0; tap < kTaps; ++tap) {
    sum += window[(start[row] + tap) % kTaps];  // <-- here
  }
  filtered[row] = sum / n;
}
