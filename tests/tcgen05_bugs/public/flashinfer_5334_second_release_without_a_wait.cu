// source: flashinfer-ai/flashinfer#5334
// bug: two sites release the one stage of sums. The first waits for its load; the second arrives while its
//   tcgen05.ld is in flight, and uses the registers afterwards.
// kind: tcgen05-order
// block: 160

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64, 1, 128), x = 0, y = 0;
    if (warp == 4) {
        for (int i = 0; i < 3; ++i) {
            if (i) WAIT(&s.empty[0], i - 1);
            if (lane == 0) {
                MMA(t, s.a[i % 2], s.b[0], 0);  // culprit
                COMMIT(&s.full[0]);
            }
            __syncwarp();
        }
        WAIT(&s.full[0], 0);
    } else {
        WAIT(&s.full[0], 0);
        LD(x, lanes(t));
        WAIT_LD();
        ARRIVE(&s.empty[0]);
        WAIT(&s.full[0], 1);
        LD(y, lanes(t + 1));  // culprit
#ifdef FIXED
        WAIT_LD();
#endif
        ARRIVE(&s.empty[0]);  // culprit
        WAIT_LD();
        x -= y;
    }
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
