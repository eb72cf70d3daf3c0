// source: PTX ISA 9.0, "Instruction descriptor": kind mxf8f6f4 has scales of ue8m0
// bug: bit 23 of the instruction descriptor is 0, the code of ue4m3.
// kind: fault

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    for (u32 c = 0; c < 8; ++c) ST(lanes(t + 32 + c), 0x7f7f7f7fu);
    WAIT_ST();
    __syncthreads();
#ifdef FIXED
    const u32 form = SCALED_FORM;
#else
    const u32 form = SCALED_FORM & ~(1u << 23);
#endif
    if (threadIdx.x == 0) {
        MMA_SCALED(t, s.a[0], s.b[0], form, t + 32, t + 36);  // culprit
        COMMIT(&s.done);
    }
    WAIT(&s.done, 0);
    LD(x, lanes(t));
    WAIT_LD();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
