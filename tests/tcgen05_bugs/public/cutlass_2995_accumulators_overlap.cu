// source: NVIDIA/cutlass#2995
// bug: two accumulators overlap in half of their columns: the second product starts while threads read the first.
// kind: tcgen05-order
// block: 160

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
#ifdef FIXED
    const u32 second = 16;
#else
    const u32 second = 8;
#endif
    if (warp == 4) {
        if (lane == 0) {
            MMA(t, s.a[0], s.b[0], 0);
            COMMIT(&s.full[0]);
            MMA(t + second, s.a[1], s.b[1], 0);  // culprit
            COMMIT(&s.full[1]);
        }
        __syncwarp();
        WAIT(&s.full[1], 0);
    } else {
        WAIT(&s.full[0], 0);
        for (int c = 0; c < 16; ++c) LD(x, lanes(t + c));  // culprit
        WAIT_LD();
    }
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
