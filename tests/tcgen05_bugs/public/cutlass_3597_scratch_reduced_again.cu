// source: NVIDIA/cutlass#3597, the Blackwell example 93
// bug: the warps publish their maxima in a scratch, and the next reduction writes it before all threads read the first.
// kind: race

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    __shared__ u32 scratch[4];
    u32 t = begin(s, 32), x = 0;
    ST(lanes(t), threadIdx.x);
    WAIT_ST();
    LD(x, lanes(t));
    WAIT_LD();
    for (int i = 0; i < 2; ++i) {
        const u32 most = __reduce_max_sync(~0u, x);
        if (lane == 0) scratch[warp] = most;  // culprit
        __syncthreads();
        for (int w = 0; w < 4; ++w) x += scratch[w];  // culprit
#ifdef FIXED
        __syncthreads();
#endif
    }
    end(t, 32);
    out[threadIdx.x] = x + warp + lane;
}
