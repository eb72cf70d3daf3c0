// source: PTX ISA 9.0, "Memory Consistency Model"
// bug: one warp converts the scales for all warps, and the other warps read them without a barrier of the CTA.
// kind: race

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    float d[4] = {};
    if (threadIdx.x < 32)
        for (u32 i = 0; i < 4; ++i) s.scales[0][4 * threadIdx.x + i] = ONE_SCALES;  // culprit
#ifdef FIXED
    __syncthreads();
#else
    __syncwarp();
#endif
    const u32 scales = s.scales[0][threadIdx.x];  // culprit
    MULTIPLY(MXF4, d, ONES, ONES, scales, 0, 0, scales, 2, 3);
    write(out, d);
}
