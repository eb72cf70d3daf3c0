// source: PTX ISA 9.0, "Scale factor data ID": 0 or 2 with scale_vec::2X
// bug: the ID of the scales of A is 1, and the two scales would be in bytes 1 and 2.
// kind: fault

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    for (u32 c = 0; c < 8; ++c) ST(lanes(t + 32 + c), 0x7f7f7f7fu);
    WAIT_ST();
    __syncthreads();
#ifdef FIXED
    const u32 form = FOUR_BIT_FORM | 2u << 29;
#else
    const u32 form = FOUR_BIT_FORM | 1u << 29;
#endif
    if (threadIdx.x == 0) {
        MMA_FOUR_BITS(t, s.a[0], s.b[0], form, t + 32, t + 36);  // culprit
        COMMIT(&s.done);
    }
    WAIT(&s.done, 0);
    LD(x, lanes(t));
    WAIT_LD();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
