// source: PTX ISA 9.0, "tcgen05 Memory Consistency Model"
// bug: a tile is written by ordinary stores while the product reads it.
// kind: tcgen05-order

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    if (threadIdx.x == 0) {
        MMA(t, s.a[0], s.b[0], 0);  // culprit
        COMMIT(&s.done);
    }
#ifdef FIXED
    WAIT(&s.done, 0);
#endif
    s.b[0][threadIdx.x] = 0;  // culprit
    WAIT(&s.done, 0);
    LD(x, lanes(t));
    WAIT_LD();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
