// source: mlc-ai/TIRx-kernels#7
// bug: tcgen05.alloc stores an address with a weak store, and another warp reads it without a barrier in between.
// kind: race, uninitialized-read

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    __shared__ u32 second;
    if (warp == 0) ALLOC(&second, 32);  // culprit
#ifdef FIXED
    __syncthreads();
#endif
    const u32 early = second;  // culprit
    __syncthreads();
    const u32 u = second;
    ST(lanes(u), 1u);
    WAIT_ST();
    LD(x, lanes(u));
    WAIT_LD();
    x += early;
    __syncthreads();
    if (warp == 0) DEALLOC(u, 32);
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
