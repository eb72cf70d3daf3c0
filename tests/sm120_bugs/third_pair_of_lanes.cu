// source: PTX ISA 9.0, "Block Scaling" of "mma"; ptxas 13.0 refuses the constant
// bug: the thread-id of A is the number of a lane, 2, but it selects one of two pairs of lanes.
// kind: fault
// block: 32

extern "C" __global__ void k(u32* out, const u32* in) {
    float d[4] = {};
#ifdef FIXED
    const u32 thread = 2 / 2;
#else
    const u32 thread = 2;
#endif
    MULTIPLY(MXF8, d, ONES, ONES, ONE_SCALES, 3, thread, ONE_SCALES, 3, 2);  // culprit
    write(out, d);
}
