// source: PTX ISA 9.0, "tcgen05 Memory Consistency Model"
// bug: scales are stored, and the product starts without tcgen05.wait::st.
// kind: tcgen05-order

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    for (u32 c = 0; c < 8; ++c) ST(lanes(t + 32 + c), 0x7f7f7f7fu);  // culprit
#ifdef FIXED
    WAIT_ST();
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        MMA_SCALED(t, s.a[0], s.b[0], SCALED_FORM, t + 32, t + 36);  // culprit
        COMMIT(&s.done);
    }
    WAIT(&s.done, 0);
    WAIT_ST();
    LD(x, lanes(t));
    WAIT_LD();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
