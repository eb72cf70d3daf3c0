// source: PTX ISA 9.0, "cp.async.wait_group"
// bug: the wait for copies leaves one group pending, which contains the scales of this step.
// kind: race, uninitialized-read

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    float d[4] = {};
    CP_ASYNC(&s.tile[0][16 * threadIdx.x], in + 4 * threadIdx.x);
    CP_COMMIT();
    if (threadIdx.x < 32) CP_ASYNC(&s.scales[0][4 * threadIdx.x], in + 4 * threadIdx.x);  // culprit
    CP_COMMIT();
#ifdef FIXED
    CP_WAIT(0);
#else
    CP_WAIT(1);
#endif
    __syncthreads();
    const u32 scales = s.scales[0][threadIdx.x];  // culprit
    MULTIPLY(MXF4, d, ONES, ONES, scales, 0, 0, scales, 0, 0);
    write(out, d);
}
