// right
// In CUB's decoupled look-back, status and value are in one 64-bit word, so relaxed polling without a fence is sufficient. Predecessors change their status from aggregate to inclusive while other blocks read it.
// launch: {"grid": [5], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [160], "dtype": "int32"}, {"zeros": [5], "dtype": "uint64"}, {"zeros": [1], "dtype": "int32"}, {"zeros": [160], "dtype": "int32"}]}
// result: argument 3 equals np.cumsum(a0)
using word = unsigned long long;
enum : unsigned { kInvalid, kAggregate, kInclusive };
struct TileState {
  word* tiles;
  __device__ void set(int t, unsigned status, int v) { asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(tiles + t), "l"((word)status << 32 | (unsigned)v) : "memory"); }
  __device__ word get(int t) {
    word w;
    do asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(w) : "l"(tiles + t) : "memory"); while (w >> 32 == kInvalid);
    return w;
  }
};

extern "C" __global__ void kernel(const int* x, word* tiles, int* next_tile, int* y) {
  TileState state{tiles};
  const int lane = threadIdx.x;
  int tile = lane == 0 ? atomicAdd(next_tile, 1) : 0;
  tile = __shfl_sync(~0u, tile, 0);
  int v = x[32 * tile + lane];
  for (int o = 1; o < 32; o *= 2) {
    const int up = __shfl_up_sync(~0u, v, o);
    if (lane >= o) v += up;
  }
  int before = 0;
  if (lane == 31) {
    if (tile) state.set(tile, kAggregate, v);
    for (int t = tile - 1; t >= 0; --t) {
      const word w = state.get(t);
      before += (int)(unsigned)w;
      if (w >> 32 == kInclusive) break;
    }
    state.set(tile, kInclusive, before + v);
  }
  y[32 * tile + lane] = v + __shfl_sync(~0u, before, 31);
}
