// source: PTX ISA 9.0, "Async proxy"
// bug: threads write the results to shared memory, and the TMA unit stores them without a proxy fence.
// kind: missing-proxy-fence

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    float d[4] = {};
    MULTIPLY(NVF4, d, ONES, ONES, 0x38383838, 0, 1, 0x38383838, 0, 3);
    u32* sums = reinterpret_cast<u32*>(s.tile);
    write(sums, d);  // culprit
#ifdef FIXED
    FENCE_PROXY();
#endif
    __syncthreads();
    if (threadIdx.x == 0) BULK_STORE(out, sums, 2048);  // culprit
}
