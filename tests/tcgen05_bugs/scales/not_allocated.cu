// source: PTX ISA 9.0, "Tensor Memory Allocation"
// bug: the scales of B are in columns that follow the allocation.
// kind: tensor-memory

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 32), x = 0;
    for (u32 c = 0; c < 8; ++c) ST(lanes(t + 24 + c), 0x7f7f7f7fu);
    WAIT_ST();
    __syncthreads();
#ifdef FIXED
    const u32 of_b = t + 28;
#else
    const u32 of_b = t + 32;
#endif
    if (threadIdx.x == 0) {
        MMA_SCALED(t, s.a[0], s.b[0], SCALED_FORM, t + 24, of_b);  // culprit
        COMMIT(&s.done);
    }
    WAIT(&s.done, 0);
    LD(x, lanes(t));
    WAIT_LD();
    end(t, 32);
    out[threadIdx.x] = x + warp + lane;
}
