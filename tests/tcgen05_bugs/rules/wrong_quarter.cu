// source: PTX ISA 9.0, "tcgen05.ld": a warp accesses the lanes of its quarter
// bug: warp 1 loads lanes 64 to 95.
// kind: tensor-memory

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    ST(lanes(t), 1u);
    WAIT_ST();
    __syncthreads();
#ifdef FIXED
    LD(x, lanes(t));
#else
    if (warp == 1) LD(x, t + (64 << 16));  // culprit
#endif
    WAIT_LD();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
