// source: PTX ISA 9.0, "tcgen05.relinquish_alloc_permit"
// bug: columns are allocated after the CTA gave its permit back.
// kind: tensor-memory

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    __shared__ u32 second;
    if (warp == 0) {
#ifndef FIXED
        RELINQUISH();
#endif
        ALLOC(&second, 32);  // culprit
        DEALLOC(second, 32);
#ifdef FIXED
        RELINQUISH();
#endif
    }
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
