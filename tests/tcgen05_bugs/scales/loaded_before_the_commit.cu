// source: PTX ISA 9.0, "tcgen05.cp"
// bug: a warp loads the copied scales, and does not wait for the commit of tcgen05.cp.
// kind: tcgen05-order

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    __shared__ alignas(128) u32 scales[128];
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    scales[threadIdx.x] = 0x7f7f7f7fu;
    FENCE_PROXY();
    __syncthreads();
    if (threadIdx.x == 0) {
        CP_SCALES(t, scales);  // culprit
        COMMIT(&s.done);
    }
#ifdef FIXED
    WAIT(&s.done, 0);
#endif
    LD(x, lanes(t));  // culprit
    WAIT_LD();
    WAIT(&s.done, 0);
    LD(x, lanes(t));
    WAIT_LD();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
