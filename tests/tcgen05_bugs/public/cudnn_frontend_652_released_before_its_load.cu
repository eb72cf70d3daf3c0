// source: NVIDIA/cudnn-frontend#652
// bug: the epilogue releases the stage of sums that two tiles share, and loads its last columns afterwards.
// kind: tcgen05-order
// block: 160

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64, 1, 128), x = 0, y = 0;
    if (warp == 4) {
        for (int i = 0; i < 2; ++i) {
            if (i) WAIT(&s.empty[0], 0);
            if (lane == 0) {
                MMA(t, s.a[0], s.b[0], 0);  // culprit
                COMMIT(&s.full[i]);
            }
            __syncwarp();
        }
        WAIT(&s.full[1], 0);
    } else {
        WAIT(&s.full[0], 0);
        LD(x, lanes(t));
        WAIT_LD();
#ifdef FIXED
        LD(y, lanes(t + 15));
        WAIT_LD();
        ARRIVE(&s.empty[0]);
#else
        ARRIVE(&s.empty[0]);  // culprit
        LD(y, lanes(t + 15));  // culprit
        WAIT_LD();
#endif
    }
    end(t, 64);
    out[threadIdx.x] = x + y + warp + lane;
}
