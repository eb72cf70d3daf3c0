// source: PTX ISA 9.0, "ldmatrix": a row of b4x16_p64 has 16 bytes
// bug: the rows of 16 elements of 4 bits have a distance of 8 bytes, as in a tile without padding.
// kind: misaligned
// block: 32

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    float d[4] = {};
    u32 x;
    for (u32 i = threadIdx.x; i < 1024; i += 32) reinterpret_cast<u32*>(s.tile)[i] = ONES;
    __syncthreads();
#ifdef FIXED
    const u32 pitch = 16;
#else
    const u32 pitch = 8;
#endif
    LDMATRIX_FP4(x, shared(s.tile) + pitch * threadIdx.x);  // culprit
    MULTIPLY(MXF8, d, x << 2, x << 2, ONE_SCALES, 0, 0, ONE_SCALES, 0, 0);
    write(out, d);
}
