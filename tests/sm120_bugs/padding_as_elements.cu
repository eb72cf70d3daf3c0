// source: PTX ISA 9.0, "ldmatrix": the last 64 bits of a row of b4x16_p64 are padding
// bug: the form of ldmatrix for elements of 16 bits also loads the padding, which no thread has written.
// kind: uninitialized-read
// block: 32

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    float d[4] = {};
    u32 x;
    u64* rows = reinterpret_cast<u64*>(s.tile);
    for (u32 i = threadIdx.x; i < 256; i += 32) rows[2 * i] = ONES | u64(ONES) << 32;  // 8 of 16 bytes
    __syncthreads();
#ifdef FIXED
    LDMATRIX_FP4(x, shared(s.tile) + 16 * threadIdx.x);
    x <<= 2;
#else
    LDMATRIX(x, shared(s.tile) + 16 * threadIdx.x);  // culprit
#endif
    MULTIPLY(MXF8, d, x, x, ONE_SCALES, 0, 0, ONE_SCALES, 0, 0);
    write(out, d);
}
