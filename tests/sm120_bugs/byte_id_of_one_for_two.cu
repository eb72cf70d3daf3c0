// source: PTX ISA 9.0, "Block Scaling" of "mma"; ptxas 13.0 refuses the constant
// bug: the byte-id of the scales of A is 1, and the two scales would be in bytes 1 and 2.
// kind: fault
// block: 32

extern "C" __global__ void k(u32* out, const u32* in) {
    float d[4] = {};
#ifdef FIXED
    const u32 byte = 2;
#else
    const u32 byte = 1;
#endif
    MULTIPLY(MXF4, d, ONES, ONES, ONE_SCALES, byte, 0, ONE_SCALES, 0, 0);  // culprit
    write(out, d);
}
