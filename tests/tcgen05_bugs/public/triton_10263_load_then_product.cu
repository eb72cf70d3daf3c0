// source: triton-lang/triton#10263
// bug: threads load columns, and one of them starts a product that writes these columns without a barrier.
// kind: tcgen05-order

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    for (int c = 0; c < 16; ++c) ST(lanes(t + c), 1u);
    WAIT_ST();
    __syncthreads();
    if (warp) __nanosleep(1000);
    LD(x, lanes(t));  // culprit
    WAIT_LD();
#ifdef FIXED
    __syncthreads();
#endif
    if (threadIdx.x == 0) {
        MMA(t, s.a[0], s.b[0], 0);  // culprit
        COMMIT(&s.done);
    }
    WAIT(&s.done, 0);
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
