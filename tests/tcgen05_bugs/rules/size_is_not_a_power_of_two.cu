// source: PTX ISA 9.0, "tcgen05.alloc"
// bug: a warp allocates 48 columns, which is not a power of two from 32 on.
// kind: tensor-memory

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    __shared__ u32 second;
#ifdef FIXED
    const u32 columns = 32;
#else
    const u32 columns = 48;
#endif
    if (warp == 0) {
        ALLOC(&second, columns);  // culprit
        DEALLOC(second, columns);  // culprit
    }
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
