// source: mlc-ai/TIRx-kernels#7
// bug: operand columns that a committed product still reads are stored again, without a wait for its mbarrier.
// kind: tcgen05-order

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    for (int i = 0; i < 2; ++i) {
#ifdef FIXED
        if (i) WAIT(&s.full[0], 0);
#endif
        for (int c = 0; c < 8; ++c) ST(lanes(t + 32 + c), 0x3c003c00u);  // culprit
        WAIT_ST();
        __syncthreads();
        if (threadIdx.x == 0) {
            MMA_LEFT(t, t + 32, s.b[0], i);  // culprit
            COMMIT(&s.full[0]);
        }
    }
#ifndef FIXED
    WAIT(&s.full[0], 0);
#endif
    WAIT(&s.full[0], 1);
    LD(x, lanes(t));
    WAIT_LD();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
