// source: PTX ISA 9.0, "Tensor Memory"
// bug: a column is loaded that no instruction wrote.
// kind: tensor-memory, uninitialized-read

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
#ifdef FIXED
    ST(lanes(t + 1), 1u);
    WAIT_ST();
#endif
    LD(x, lanes(t + 1));  // culprit
    WAIT_LD();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
