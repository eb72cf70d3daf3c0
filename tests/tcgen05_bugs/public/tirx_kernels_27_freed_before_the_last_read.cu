// source: mlc-ai/TIRx-kernels#27
// bug: the correction warpgroup reads the output after the first warpgroup freed all columns.
// kind: tensor-memory, tcgen05-order
// block: 256

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    if (warp < 4) {
        ST(lanes(t), 1u);
        WAIT_ST();
    }
    __syncthreads();
#ifdef FIXED
    if (warp >= 4) {
        LD(x, lanes(t));
        WAIT_LD();
    }
    __syncthreads();
#endif
    if (warp == 0) DEALLOC(t, 64);  // culprit
#ifndef FIXED
    if (warp >= 4) {
        LD(x, lanes(t));  // culprit
        WAIT_LD();
    }
#endif
    __syncthreads();
    if (warp == 0) ALLOC(&s.base, 64);
    __syncthreads();
    t = s.base;
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
