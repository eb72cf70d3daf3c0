// source: facebookexperimental/triton#2024
// bug: a product writes columns that alias scores which another warpgroup still reads: the wait for their release is
//   missing.
// kind: tcgen05-order
// block: 160

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64, 1, 128), x = 0;
    if (warp == 4) {
        if (lane == 0) {
            MMA(t, s.a[0], s.b[0], 0);  // culprit
            COMMIT(&s.full[0]);
        }
        __syncwarp();
        WAIT(&s.full[0], 0);
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
        WAIT(&s.full[0], 0);
        LD(x, lanes(t));  // culprit
        WAIT_LD();
        ARRIVE(&s.empty[0]);
    }
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
