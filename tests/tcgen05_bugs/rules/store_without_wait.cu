// source: PTX ISA 9.0, "tcgen05 Memory Consistency Model"
// bug: an A operand in tensor memory is stored, and the product starts without tcgen05.wait::st.
// kind: tcgen05-order

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    for (int c = 0; c < 8; ++c) ST(lanes(t + 32 + c), 0x3c003c00u);  // culprit
#ifdef FIXED
    WAIT_ST();
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        MMA_LEFT(t, t + 32, s.b[0], 0);  // culprit
        COMMIT(&s.done);
    }
    WAIT(&s.done, 0);
    WAIT_ST();
    LD(x, lanes(t));
    WAIT_LD();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
