// source: PTX ISA 9.0, "Scale Factor Layout": M = 128 has 4 columns of scales
// bug: no instruction writes the scales of the last 32 rows of A.
// kind: tensor-memory, uninitialized-read

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
#ifdef FIXED
    const u32 count = 4;
#else
    const u32 count = 3;
#endif
    for (u32 c = 0; c < count; ++c) ST(lanes(t + 32 + c), 0x7f7f7f7fu);
    ST(lanes(t + 36), 0x7f7f7f7fu);
    WAIT_ST();
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
