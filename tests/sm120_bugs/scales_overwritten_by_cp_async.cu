// source: PTX ISA 9.0, "cp.async": the copy is asynchronous, and not ordered with accesses of other threads
// bug: a thread copies the next scales into the stage before all warps have loaded the current ones.
// kind: race

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    float d[4] = {};
    for (u32 step = 0; step < 3; ++step) {
        if (threadIdx.x < 32) CP_ASYNC(&s.scales[0][4 * threadIdx.x], in + 4 * threadIdx.x);  // culprit
        CP_COMMIT();
        CP_WAIT(0);
        __syncthreads();
        const u32 scales = s.scales[0][127 - threadIdx.x];  // culprit
        MULTIPLY(MXF4, d, ONES, ONES, scales, 0, 0, scales, 0, 0);
#ifdef FIXED
        __syncthreads();
#endif
    }
    write(out, d);
}
