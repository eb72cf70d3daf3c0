// source: PTX ISA 9.0, "Scale Factor Layout": row 0 is in lane 0
// bug: the address of the scales of A has lane 16.
// kind: tensor-memory

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    for (u32 c = 0; c < 8; ++c) ST(lanes(t + 32 + c), 0x7f7f7f7fu);
    WAIT_ST();
    __syncthreads();
#ifdef FIXED
    const u32 of_a = t + 32;
#else
    const u32 of_a = t + 32 + (16 << 16);
#endif
    if (threadIdx.x == 0) {
        MMA_SCALED(t, s.a[0], s.b[0], SCALED_FORM, of_a, t + 36);  // culprit
        COMMIT(&s.done);
    }
    WAIT(&s.done, 0);
    LD(x, lanes(t));
    WAIT_LD();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
