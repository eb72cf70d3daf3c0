// source: PTX ISA 9.0, "tcgen05.dealloc"
// bug: 64 columns were allocated at an address, and 32 are freed there.
// kind: tensor-memory

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    __shared__ u32 second;
    if (warp == 0) {
        ALLOC(&second, 64);  // culprit
#ifdef FIXED
        DEALLOC(second, 64);
#else
        DEALLOC(second, 32);  // culprit
#endif
    }
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
