// source: PTX ISA 9.0, "tcgen05.dealloc"
// bug: columns are stored after they were freed.
// kind: tensor-memory

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    __shared__ u32 second;
    if (warp == 0) {
        ALLOC(&second, 32);
        const u32 u = second;
#ifndef FIXED
        DEALLOC(u, 32);
#endif
        ST(lanes(u), 1u);  // culprit
        WAIT_ST();
#ifdef FIXED
        DEALLOC(u, 32);
#endif
    }
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
