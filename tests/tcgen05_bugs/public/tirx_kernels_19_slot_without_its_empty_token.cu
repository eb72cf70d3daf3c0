// source: mlc-ai/TIRx-kernels#19
// bug: a producer stores the next operand into a slot of one stage and never waits for the token that the product
//   returned for it.
// kind: tcgen05-order
// block: 160

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64, 128, 1), x = 0;
    if (warp == 4) {
        for (int i = 0; i < 2; ++i) {
            WAIT(&s.full[i], 0);
            if (lane == 0) {
                MMA_LEFT(t, t + 32, s.b[0], i);  // culprit
                COMMIT(&s.empty[0]);
            }
            __syncwarp();
        }
        WAIT(&s.empty[0], 1);
    } else {
        for (int i = 0; i < 2; ++i) {
#ifdef FIXED
            if (i) WAIT(&s.empty[0], 0);
#endif
            for (int c = 0; c < 8; ++c) ST(lanes(t + 32 + c), 0x3c003c00u);  // culprit
            WAIT_ST();
            ARRIVE(&s.full[i]);
        }
    }
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
