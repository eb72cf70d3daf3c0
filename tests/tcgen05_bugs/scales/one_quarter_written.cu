// source: PTX ISA 9.0, "Scale Factor Layout": each quarter of the lanes contains the scales
// bug: only the first warp writes the scales, in its quarter of the lanes.
// kind: tensor-memory, uninitialized-read

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
#ifdef FIXED
    const bool writes = true;
#else
    const bool writes = warp == 0;
#endif
    if (writes) {
        for (u32 c = 0; c < 8; ++c) ST(lanes(t + 32 + c), 0x7f7f7f7fu);
        WAIT_ST();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        MMA_SCALED(t, s.a[0], s.b[0], SCALED_FORM, t + 32, t + 36);  // culprit
        COMMIT(&s.done);
    }
    WAIT(&s.done, 0);
    LD(x, lanes(t));
    WAIT_LD();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
