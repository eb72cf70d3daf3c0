// wrong: barrier-divergence, uninitialized-read
// Twenty lanes reduce with a mask of twenty lanes, but the source lane of the first step is 16 lanes further. So lanes 4 to 19 read lanes that do not execute the shuffle (PTX ISA, shfl.sync: a source lane that is inactive or not in membermask gives an undefined value).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [20], "dtype": "int32"}, {"zeros": [1], "dtype": "int32"}, {"scalar": 20, "dtype": "int32"}]}
__device__ int reduce_rows(int v, unsigned members) {
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) v += __shfl_down_sync(members, v, offset);  // <-- here
  return v;
}

extern "C" __global__ void kernel(const int* rows, int* sum, int n) {
  const int lane = threadIdx.x & 31;
  const unsigned members = __ballot_sync(0xffffffffu, lane < n);
  if (lane < n) {
    int total = reduce_rows(rows[lane], members);  // <-- here
    if (lane == 0) *sum = total;
  }
}
