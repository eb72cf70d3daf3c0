// source: PTX ISA 9.0, "Tensor Memory Allocation"
// bug: a column beyond the allocation is stored and loaded.
// kind: tensor-memory

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
#ifdef FIXED
    const u32 u = t + 63;
#else
    const u32 u = t + 64;
#endif
    ST(lanes(u), 1u);  // culprit
    WAIT_ST();
    LD(x, lanes(u));  // culprit
    WAIT_LD();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
