// source: tile-ai/tilelang#1980
// bug: stores to tensor memory are handed to the thread that multiplies by a relaxed arrival, with no tcgen05.fence.
// kind: tcgen05-order

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64, 128, 1), x = 0;
    for (int c = 0; c < 8; ++c) ST(lanes(t + 32 + c), 0x3c003c00u);  // culprit
    WAIT_ST();
#ifdef FIXED
    FENCE_BEFORE();
#endif
    ARRIVE_RELAXED(&s.full[0]);  // culprit
    if (threadIdx.x == 0) {
        WAIT_RELAXED(&s.full[0], 0);
#ifdef FIXED
        FENCE_AFTER();
#endif
        MMA_LEFT(t, t + 32, s.b[0], 0);  // culprit
        COMMIT(&s.done);
    }
    WAIT(&s.done, 0);
    LD(x, lanes(t));
    WAIT_LD();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
