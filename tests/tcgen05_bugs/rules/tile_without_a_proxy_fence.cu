// source: PTX ISA 9.0, "Async Proxy": tcgen05.mma reads shared memory through it
// bug: threads store a tile, and execute no fence.proxy.async before the product.
// kind: missing-proxy-fence

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    for (int i = threadIdx.x; i < 256; i += 128) s.b[1][i] = 0x4000;  // culprit
#ifdef FIXED
    FENCE_PROXY();
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        MMA(t, s.a[0], s.b[1], 0);  // culprit
        COMMIT(&s.done);
    }
    WAIT(&s.done, 0);
    LD(x, lanes(t));
    WAIT_LD();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
