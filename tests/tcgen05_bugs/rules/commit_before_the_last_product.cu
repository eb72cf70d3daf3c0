// source: PTX ISA 9.0, "tcgen05.commit": it tracks prior operations
// bug: the commit comes before the second product, which the wait does not cover.
// kind: tcgen05-order

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    if (threadIdx.x == 0) {
        MMA(t, s.a[0], s.b[0], 0);
#ifndef FIXED
        COMMIT(&s.done);
#endif
        MMA(t, s.a[1], s.b[1], 1);  // culprit
#ifdef FIXED
        COMMIT(&s.done);
#endif
    }
    WAIT(&s.done, 0);
    LD(x, lanes(t));  // culprit
    WAIT_LD();
    __syncthreads();
    if (threadIdx.x == 0) COMMIT(&s.full[0]);
    WAIT(&s.full[0], 0);
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
