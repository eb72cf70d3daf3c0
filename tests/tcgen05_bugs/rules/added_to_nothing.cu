// source: PTX ISA 9.0, "tcgen05.mma": enable-input-d
// bug: the first product adds to an accumulator that was never written.
// kind: tensor-memory, uninitialized-read

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
#ifdef FIXED
    const int adds = 0;
#else
    const int adds = 1;
#endif
    if (threadIdx.x == 0) {
        MMA(t, s.a[0], s.b[0], adds);  // culprit
        COMMIT(&s.done);
    }
    WAIT(&s.done, 0);
    LD(x, lanes(t));  // culprit
    WAIT_LD();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
