// source: PTX ISA 9.0, "Async Proxy": tcgen05.cp reads shared memory through it
// bug: threads store a tile of scales, and execute no fence.proxy.async before the copy.
// kind: missing-proxy-fence

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    __shared__ alignas(128) u32 scales[128];
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    scales[threadIdx.x] = 0x7f7f7f7fu;  // culprit
#ifdef FIXED
    FENCE_PROXY();
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        CP_SCALES(t + 32, scales);  // culprit
        CP_SCALES(t + 36, scales);  // culprit
        MMA_SCALED(t, s.a[0], s.b[0], SCALED_FORM, t + 32, t + 36);
        COMMIT(&s.done);
    }
    WAIT(&s.done, 0);
    LD(x, lanes(t));
    WAIT_LD();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
