// source: NVIDIA/cudnn-frontend#396
// bug: two results share columns. The multiplying warp waits for the release of another result, of an older
//   generation, and overwrites the columns that threads still read.
// kind: tcgen05-order
// block: 160

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64, 1, 128), x = 0, y = 0;
    if (warp == 4) {
        if (lane == 0) {
            MMA(t + 16, s.a[0], s.b[0], 0);
            COMMIT(&s.full[1]);
            MMA(t, s.a[0], s.b[0], 0);  // culprit
            COMMIT(&s.full[0]);
        }
        __syncwarp();
        WAIT(&s.empty[1], 0);
#ifdef FIXED
        WAIT(&s.empty[0], 0);
#endif
        if (lane == 0) {
            MMA(t, s.a[1], s.b[1], 0);  // culprit
            COMMIT(&s.done);
        }
        __syncwarp();
        WAIT(&s.done, 0);
    } else {
        WAIT(&s.full[1], 0);
        LD(y, lanes(t + 16));
        WAIT_LD();
        ARRIVE(&s.empty[1]);
        WAIT(&s.full[0], 0);
        LD(x, lanes(t));  // culprit
        WAIT_LD();
        ARRIVE(&s.empty[0]);
    }
    end(t, 64);
    out[threadIdx.x] = x + y + warp + lane;
}
