// source: PTX ISA 9.0, "mma": all threads of a warp execute mma.sync.aligned
// bug: only the lanes with scales of A, two of four lanes, execute the product.
// kind: barrier-divergence, deadlock
// block: 32

extern "C" __global__ void k(u32* out, const u32* in) {
    float d[4] = {};
#ifdef FIXED
    const bool has_scales = true;
#else
    const bool has_scales = threadIdx.x % 4 < 2;
#endif
    if (has_scales) MULTIPLY(MXF8, d, ONES, ONES, ONE_SCALES, 0, 0, ONE_SCALES, 0, 0);  // culprit
    write(out, d);
}
