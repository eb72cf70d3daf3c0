// source: PTX ISA 9.0, "Tensor Memory Addressing"
// bug: the 16 columns of D begin at the last column of the scales of A.
// kind: tensor-memory

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    for (u32 c = 0; c < 8; ++c) ST(lanes(t + 32 + c), 0x7f7f7f7fu);
    WAIT_ST();
    __syncthreads();
#ifdef FIXED
    const u32 d = t;
#else
    const u32 d = t + 35;
#endif
    if (threadIdx.x == 0) {
        MMA_SCALED(d, s.a[0], s.b[0], SCALED_FORM, t + 32, t + 36);  // culprit
        COMMIT(&s.done);
    }
    WAIT(&s.done, 0);
    ST(lanes(t), 0u);
    WAIT_ST();
    LD(x, lanes(t));
    WAIT_LD();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
