// source: PTX ISA 9.0, "Block Scaling" of "mma"; ptxas 13.0 refuses the constant
// bug: a loop of scale_vec::2X selects bytes 0 and 2, but the product has scale_vec::4X, whose scales fill 4 bytes.
// kind: fault
// block: 32

extern "C" __global__ void k(u32* out, const u32* in) {
    float d[4] = {};
#ifdef FIXED
    const u32 step = 0;
#else
    const u32 step = 2;
#endif
    for (u32 i = 0; i < 2; ++i)
        MULTIPLY(NVF4, d, ONES, ONES, 0x38383838, i * step, 0, 0x38383838, i * step, 0);  // culprit
    write(out, d);
}
