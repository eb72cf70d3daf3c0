// source: mlc-ai/TIRx-kernels#19
// bug: one of four warps frees the columns after its own loop, while other warps still load from them.
// kind: tensor-memory, tcgen05-order

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    ST(lanes(t), 1u);
    WAIT_ST();
    __syncthreads();
    if (warp) __nanosleep(1000);
    LD(x, lanes(t));  // culprit
    WAIT_LD();
#ifdef FIXED
    __syncthreads();
#endif
    if (warp == 0) DEALLOC(t, 64);  // culprit
    __syncthreads();
    if (warp == 0) ALLOC(&s.base, 64);
    __syncthreads();
    t = s.base;
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
